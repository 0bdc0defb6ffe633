"""One query on its way to an answer: embed it if that is possible now, search, check the disk."""

from dataclasses import dataclass
from pathlib import Path

import anyio

from vector_index_mcp.codebase.ledger import Ledger
from vector_index_mcp.codebase.run import Kind, Run
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import Hit, Vector
from vector_index_mcp.errors import EmbeddingError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.scan import stamp_of

_QUERY_PATIENCE_SECONDS = 0.4  # for the query's vector, while the worker is busy
_LOADING_PATIENCE_SECONDS = 120.0  # for the model, of somebody who would rather wait


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found."""

    hits: list[Hit]
    stale: frozenset[str]
    """Files among the hits that changed since they were indexed; they are queued."""
    mode: str
    """`hybrid`, or `lexical` when only the full text was searched."""
    note: str
    """What whoever asked should know about the answer; empty when there is nothing."""
    seconds: float
    """How long the search took."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How hits compare with the disk."""

    gone: frozenset[str]
    stale: frozenset[str]


class Question:
    """A query that is embedded once, if that is possible now."""

    def __init__(
        self, embedder: Embedder, text: str, index: Index, ledger: Ledger, *, wait_for_model: bool
    ) -> None:
        self.text = text
        self.lack = ""
        """Why there is no vector; empty before `embed`, and if there is one."""
        self._embedder = embedder
        self._index = index
        self._ledger = ledger
        self._wait_for_model = wait_for_model
        self._vector: Vector | None = None

    async def embed(self) -> Vector | None:
        """The query's vector; None if something is lacking."""
        if self._vector is None and not self.lack:
            self._vector, self.lack = await self._embed()
        return self._vector

    async def _embed(self) -> tuple[Vector | None, str]:
        embedder, model = self._embedder, self._index.manifest.model
        if model is None or self._ledger.unembedded_count >= self._ledger.chunk_count:
            return None, embedder.reason or "no chunk has been embedded yet"
        if embedder.state != "ready" and not self._wait_for_model:
            embedder.start()
            return None, embedder.reason or "the embedding model is still loading"
        patience = _LOADING_PATIENCE_SECONDS if self._wait_for_model else _QUERY_PATIENCE_SECONDS
        try:
            with anyio.fail_after(patience):
                [vector] = await embedder.embed([self.text], urgent=True)
                identity = await embedder.identity()
        except EmbeddingError as error:
            return None, str(error)
        except TimeoutError:
            return None, "the embedding model is busy"
        if identity.digest != model.digest:
            return None, "the index holds vectors of another model and is being embedded anew"
        return vector, ""


def check_against_disk(root: Path, ledger: Ledger, hits: list[Hit]) -> Verdict:
    """Which of the files among `hits` are gone or have changed since the hits were indexed.

    That may be before the ledger's last commit. A file that cannot be looked at may have changed.
    """
    gone: set[str] = set()
    stale: set[str] = set()
    for key, content_hash in {(hit.chunk.key, hit.chunk.content_hash) for hit in hits}:
        record = ledger.get(key)
        try:
            stamp = stamp_of(beneath.status(root, key))
        except OSError as error:
            (gone if beneath.tells_absence(error) else stale).add(key)
            continue
        if record is None or (record.stamp, record.content_hash) != (stamp, content_hash):
            stale.add(key)
    return Verdict(frozenset(gone), frozenset(stale))


def note(lack: str, ledger: Ledger, run: Run | None) -> str:
    """What limits an answer: vectors that are lacking, files that are not indexed yet."""
    notes = []
    if lack:
        notes.append(f"Searched by words only, not by meaning: {lack}.")
    elif ledger.unembedded_count:
        share = 1 - ledger.unembedded_count / ledger.chunk_count
        notes.append(f"{share:.0%} of the chunks can be found by meaning yet, all by words.")
    if run is not None and run.kind is not Kind.REBUILD and run.files_done < run.files_to_do:
        notes.append(f"Indexing is under way: {run.files_done} of {run.files_to_do} files done.")
    return " ".join(notes)

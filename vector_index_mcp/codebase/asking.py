"""One query on its way to an answer: embed it if that is possible now, search, check the disk."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio

from vector_index_mcp.codebase.recent import Mode
from vector_index_mcp.codebase.wanted import Wanted
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import Hit, Vector
from vector_index_mcp.errors import (
    DamagedIndexError,
    EmbeddingError,
    StorageError,
    StoreError,
)
from vector_index_mcp.files import read
from vector_index_mcp.indexing.indexer import Indexer
from vector_index_mcp.indexing.ledger import FAILED, Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.remedies import with_remedy
from vector_index_mcp.indexing.run import Kind, Run
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.indexing.state import State

_QUERY_PATIENCE_SECONDS = 0.4  # for the query's vector, while the worker is busy
_MOST_LOOKED_AT = 20  # of the paths that wait, 0.3 ms
_LOADING_PATIENCE_SECONDS = 120.0  # for the model, of somebody who would rather wait


@dataclass(frozen=True, slots=True)
class Answer:
    """What a search found."""

    wanted: Wanted
    """What was asked."""
    hits: list[Hit]
    stale: frozenset[str]
    """Files among the hits that changed since they were indexed; they are queued."""
    mode: Mode
    note: str
    """What whoever asked should know about the answer; empty when there is nothing."""
    seconds: float
    """How long the search took."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """What keeps an index from being as its project is now."""

    run: Run | None = None
    pending: int = 0
    """Changed paths that are not indexed yet."""
    error: str = ""
    """Why the index cannot be brought up to date."""
    is_kept: bool = True
    """Whether any process follows the changes."""
    unreadable: int = 0
    """Folders of which nothing is known."""
    failed: int = 0
    """Files that could not be indexed."""
    left_out: int = 0
    """Files for which there is no room."""
    polling: str = ""
    """Why changes are not noticed at once."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a question is asked: an index as it is just now."""

    root: Path
    """The project."""
    index: Index
    ledger: Ledger


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

    @property
    def mode(self) -> Mode:
        """How it is answered, once `embed` has been tried."""
        return "lexical" if self.lack else "hybrid"

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
            return None, with_remedy(error)
        except TimeoutError:
            return None, "the embedding model is busy"
        if identity.digest != model.digest:
            return None, "the index holds vectors of another model and is being embedded anew"
        return vector, ""


async def best_hits(
    what: Wanted, question: Question, place: Place, limit: int, live: Live | None
) -> tuple[list[Hit], str]:
    """Search; once more if the index was replaced meanwhile, or if the error says little.

    Args:
        what: What to look for and where.
        question: Gives the query's vector.
        place: The index as it was when the search began.
        limit: How many hits at most.
        live: The index that we keep; None if we do not.

    Returns:
        The hits; and if there are none, why, as far as that is known.

    Raises:
        QueryError: If it is not clear which files are wanted.
        DamagedIndexError: If the index we keep turns out to be damaged.
        StoreError: If it cannot be read.
    """
    store = place.index.store
    for is_last in (False, True):
        try:
            found = await what.find(store, place.ledger, place.root, question.embed, limit)
        except StorageError:
            raise
        except StoreError as error:
            if live is not None and live.index.store is not store:
                store = live.index.store
                continue
            if not isinstance(error, DamagedIndexError):
                await what.raise_if_path_fails(store, question.embed, error)
            if live is not None and live.is_damage(error):
                raise DamagedIndexError(str(error), error.problem) from error
            if is_last:
                raise
        else:
            if live is not None:
                live.note_success()
            return found
    return await what.find(store, place.ledger, place.root, question.embed, limit)


def backlog_of(index: LiveIndex) -> Backlog:
    """What keeps an index from being as its project is now."""
    indexer, freshness, state = index.indexer, index.freshness, index.state
    if indexer is None:
        return Backlog(error=state.error or "", is_kept=state.current is State.WATCHING)
    return Backlog(
        run=indexer.runs.current,
        pending=_pending(indexer),
        error=state.error or "",
        unreadable=len(indexer.outlook.unreadable),
        failed=indexer.live.ledger.count(FAILED),
        left_out=indexer.outlook.left_out,
        polling=freshness.problem if freshness is not None else "",
    )


def _pending(indexer: Indexer) -> int:
    """How many paths wait to be indexed, without those that have not really changed.

    Of a few, the disk is asked: a file that a walk has just indexed has its event still to come.
    """
    touched = indexer.queue.touched
    if len(touched) > _MOST_LOOKED_AT:
        return indexer.pending_path_count
    return indexer.pending_path_count - sum(_is_settled(indexer, key) for key in touched)


def _is_settled(indexer: Indexer, key: str) -> bool:
    view, record = indexer.outlook.view_of(key), indexer.live.ledger.get(key)
    if view is None:
        return False
    if record is not None:
        return record.stamp == read.stamp_now(view.folder, key)
    path = view.folder.path_of(key)
    return path != "" and view.ignore.is_ignored(path, is_folder=False)


def note(lack: str, ledger: Ledger, backlog: Backlog, untrue: int = 0) -> str:
    """What limits an answer: why something may be missing from it."""
    notes = _lacking_vectors(lack, ledger), _lacking_changes(backlog), _lacking_files(backlog)
    sentences = [sentence for kind in notes for sentence in kind]
    if untrue:
        sentences.append(
            f"The index was wrong about {_count(untrue, 'file')}; hits in there were left out, "
            "and it is indexed again."
        )
    return " ".join(sentences)


def _lacking_vectors(lack: str, ledger: Ledger) -> Iterator[str]:
    if lack:
        yield f"Searched by words only, not by meaning: {lack}."
    elif ledger.unembedded_count:
        share = 1 - ledger.unembedded_count / ledger.chunk_count
        yield f"{share:.0%} of the chunks can be found by meaning so far, all by words."


def _lacking_changes(backlog: Backlog) -> Iterator[str]:
    run = backlog.run
    if backlog.error:
        yield f"Recent changes may be missing: {backlog.error}."
    elif not backlog.is_kept:
        yield "Recent changes may be missing: no process keeps this index up to date now."
    elif run is not None and run.kind is not Kind.REBUILD and run.files_done < run.files_to_do:
        yield f"Indexing is under way: {run.files_done} of {run.files_to_do} files done."
    elif run is not None and run.kind is Kind.START and not run.files_seen:
        yield "Recent changes may be missing: the project is still being compared with the index."
    elif backlog.pending:
        yield f"Recent changes may be missing: {_count(backlog.pending, 'changed path')} to index."
    if backlog.polling:
        yield f"Recent changes may be missing: {backlog.polling}."


def _lacking_files(backlog: Backlog) -> Iterator[str]:
    if backlog.unreadable:
        yield f"{_count(backlog.unreadable, 'folder')} cannot be read (see get_status)."
    if backlog.failed:
        yield f"{_count(backlog.failed, 'file')} could not be indexed (see get_status)."
    if backlog.left_out:
        yield f"{_count(backlog.left_out, 'file')} did not fit into the index."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"

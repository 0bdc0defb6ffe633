"""The index of one software project: which folder it is of, and how questions are answered.

Knows nothing of who asks and how: whoever serves it calls its methods while its `index` is running.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from vector_index_mcp.codebase.asking import Answer, backlog_of, note
from vector_index_mcp.codebase.judge import Judge
from vector_index_mcp.codebase.recent import Asker, RecentQueries, asked
from vector_index_mcp.codebase.wanted import Findings, Sample, wanted
from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Hit, StoredChunk
from vector_index_mcp.errors import DamagedIndexError, QueryError, StorageError, StoreError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing import place
from vector_index_mcp.indexing.asking import Question, ask
from vector_index_mcp.indexing.keeper import Options, Role
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.service import LiveIndex

_LEAST_SCORE = 0.005  # what is less is shown as 0.00
_MOST_NEAREST = 3


class Codebase:
    """The searchable project in one folder. Constructing it does nothing yet."""

    def __init__(
        self,
        project: Folder,
        lancedb_uri: str,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        crew: Crew | None = None,
        rerank_seconds: float = 1.0,
    ) -> None:
        """Make one.

        Args:
            project: The folder, without a name.
            lancedb_uri: Where its index lies; a relative path counts from the project.
            options: What a user may set about the index.
            embedder: Makes vectors.
            cache: Keeps them.
            crew: Prepares files; None for a new one.
            rerank_seconds: How long a search waits for a cross-encoder, if there is one.
        """
        where = place.Place.in_project(project.path, lancedb_uri)
        self.project = project
        self.index = LiveIndex([project], where, options, embedder, cache, crew)
        self.recent = RecentQueries()
        self._judge = Judge(embedder, rerank_seconds)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.project.path

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done that does not wait for a model."""
        return self.index.progress.is_busy

    @property
    def pending(self) -> int:
        """Paths that changed and are not indexed yet, without those that only look so."""
        return backlog_of(self.index).pending

    @property
    def state(self) -> str:
        """The `status` of `get_status`."""
        return self.index.state.current

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """The time in which questions are answered."""
        async with self.index.running(role):
            yield

    async def search(
        self,
        query: str,
        limit: int,
        *,
        path: str = "",
        language: str = "",
        kind: str = "",
        similar_to: str = "",
        offset: int = 0,
        wait_for_model: bool = False,
        asker: Asker = Asker.CLIENT,
    ) -> Answer:
        """The best chunks for `query`.

        Args:
            query: Words, identifiers or a sentence.
            limit: How many hits at most.
            path: The file or folder to search, or a glob that the hits' paths match; empty for all.
            language: The language they are written in; empty for all.
            kind: What sort of files, one of `kinds.Kind`; empty for all.
            similar_to: `path:line` of code that is to be found again elsewhere; empty for none.
            offset: How many of the best to pass over.
            wait_for_model: Whether to wait until the model is loaded. Otherwise it is loaded in
                the background and the full text alone must do meanwhile.
            asker: Who asks; kept with the query in `recent`.

        Raises:
            QueryError: If the query is empty or too long, or a filter means nothing.
            StoreError: If there is no index that could be read.
        """
        what = wanted(query, path, language, kind, similar_to)
        began, found, unjudged = time.monotonic(), Findings(), ""

        async def find(store: Store, question: Question, most: int) -> list[Hit]:
            nonlocal found, unjudged
            try:
                found = await what.find(store, question, self.root, self._judge.most(what, most))
            except StoreError as error:
                if not isinstance(error, StorageError | DamagedIndexError):
                    await what.raise_if_path_fails(store, question.embed, error)
                raise
            hits, unjudged = await self._judge.ranked(what, found.hits)
            return hits[:most]

        most = limit + offset
        asked_for = ask(self.index, what.query.text, find, most, wait_for_model=wait_for_model)
        answered = await asked_for
        ledger, hits = answered.ledger, answered.hits
        if found.names:
            hits = _nearest(hits)
        hits = hits[offset:]
        answer = Answer(
            wanted=what,
            hits=hits,
            stale=answered.stale,
            mode="lexical" if answered.lack else "hybrid",
            masked=frozenset(hit.chunk.key for hit in hits if _has_masked(ledger, hit)),
            absent=found.names,
            missing=found.words,
            why_none=found.why_none,
            note=note(answered.lack, ledger, backlog_of(self.index), answered.untrue, unjudged),
            seconds=time.monotonic() - began,
        )
        self.recent.note(asked(answer, asker))
        return answer

    async def sample(self, similar_to: str) -> StoredChunk:
        """The chunk at `path:line`.

        Raises:
            QueryError: If no indexed chunk lies there.
            StoreError: If there is no index that could be read.
        """
        sample = Sample.of(similar_to)
        if sample is None:
            raise QueryError("similar_to is empty")
        async with self.index.reading() as (index, ledger):
            chunk, _ = await sample.chunk(index.store, ledger, self.root)
        return chunk


def _nearest(hits: Sequence[Hit]) -> list[Hit]:
    """What to show instead of an identifier that stands nowhere: hits whose score says something.

    Where none is worth anything, the first few are shown.
    """
    return [hit for hit in hits if hit.likelihood >= _LEAST_SCORE] or [*hits[:_MOST_NEAREST]]


def _has_masked(ledger: Ledger, hit: Hit) -> bool:
    record = ledger.get(hit.chunk.key)
    return record is not None and record.masked > 0

"""The index of one software project: which folder it is of, and how questions are answered.

Knows nothing of who asks and how: whoever serves it calls its methods while its `index` is running.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.codebase.asking import (
    Answer,
    Place,
    Question,
    backlog_of,
    best_hits,
    note,
)
from vector_index_mcp.codebase.recent import Asker, RecentQueries, asked
from vector_index_mcp.codebase.wanted import Wanted, wanted
from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.errors import DamagedIndexError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing import place
from vector_index_mcp.indexing.checking import Checked, check_against_disk
from vector_index_mcp.indexing.keeper import Options, Role
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.run import Kind
from vector_index_mcp.indexing.service import LiveIndex

_SPARE_HITS = 5  # in place of hits whose file turns out to be gone


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
    ) -> None:
        """Make one.

        Args:
            project: The folder, without a name.
            lancedb_uri: Where its index lies; a relative path counts from the project.
            options: What a user may set about the index.
            embedder: Makes vectors.
            cache: Keeps them.
            crew: Prepares files; None for a new one.
        """
        where = place.Place.in_project(project.path, lancedb_uri)
        self.project = project
        self.index = LiveIndex([project], where, options, embedder, cache, crew)
        self.recent = RecentQueries()
        self._embedder = embedder

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
        wait_for_model: bool = False,
        asker: Asker = Asker.CLIENT,
    ) -> Answer:
        """The best chunks for `query`.

        Args:
            query: Words, identifiers or a sentence.
            limit: How many hits at most.
            path: The file or folder to search, or a glob that the hits' paths match; empty for all.
            language: The language they are written in; empty for all.
            wait_for_model: Whether to wait until the model is loaded. Otherwise it is loaded in
                the background and the full text alone must do meanwhile.
            asker: Who asks; kept with the query in `recent`.

        Raises:
            QueryError: If the query is empty or too long, or a filter means nothing.
            StoreError: If there is no index that could be read.
        """
        live_index = self.index
        what = wanted(query, path, language)
        began = time.monotonic()
        await live_index.make_sure()
        await live_index.wait_for_first_scan()
        if live_index.vectors is not None:
            live_index.vectors.check_model()
        async with live_index.reading() as (index, ledger):
            question = Question(
                self._embedder, what.query.text, index, ledger, wait_for_model=wait_for_model
            )
            where = Place(self.root, index, ledger)
            hits, why_none = await self._best_hits(what, question, where, limit + _SPARE_HITS)
        if live_index.indexer is not None:
            # Newer than the one the search began with: it knows the commits since.
            ledger = live_index.ledger
        checked = await self._checked(ledger, hits, limit)
        backlog = backlog_of(live_index)
        if live_index.indexer is not None:
            live_index.indexer.live.distrust(checked.untrue)
            live_index.indexer.look_again(checked.gone | checked.stale | checked.untrue)
        limits = note(question.lack, ledger, backlog, len(checked.untrue))
        answer = Answer(
            wanted=what,
            hits=checked.hits,
            stale=frozenset(checked.stale),
            mode=question.mode,
            note=" ".join(filter(None, (why_none, limits))),
            seconds=time.monotonic() - began,
        )
        self.recent.note(asked(answer, asker))
        return answer

    async def _best_hits(
        self, what: Wanted, question: Question, where: Place, limit: int
    ) -> tuple[list[Hit], str]:
        indexer = self.index.indexer
        try:
            return await best_hits(
                what, question, where, limit, indexer.live if indexer is not None else None
            )
        except DamagedIndexError:
            if self.index.indexer is not None:
                self.index.indexer.begin_run(Kind.REBUILD)
            raise

    async def _checked(self, ledger: Ledger, hits: Sequence[Hit], limit: int) -> Checked:
        checked = await anyio.to_thread.run_sync(
            check_against_disk, self.index.folders, ledger, hits, limit
        )
        if checked.gone:
            await self.index.make_sure()
        return checked

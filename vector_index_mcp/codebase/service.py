"""The live index of one project: opens it, keeps it fresh, answers questions about it.

Knows nothing of who asks and how: whoever serves it calls its methods inside `running`. One
process at a time is the writer of an index; another one that opens it answers from what the
writer commits, and takes over when the writer is gone.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
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
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import Hit
from vector_index_mcp.errors import (
    BusyError,
    DamagedIndexError,
    StoreError,
)
from vector_index_mcp.files.scan import absence_of
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.checking import Checked, check_against_disk
from vector_index_mcp.indexing.freshness import Freshness
from vector_index_mcp.indexing.indexer import Indexer
from vector_index_mcp.indexing.keeper import Keeper, Options, Role
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.pipeline import Pipeline
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.run import Kind, Run
from vector_index_mcp.indexing.state import StateMachine
from vector_index_mcp.indexing.vectors import CachedEmbedder
from vector_index_mcp.indexing.verify import Report, verify

# How long a search waits for the scan that follows opening: an empty index has nothing to say,
# another one is as it was when the service last ended.
_EMPTY_INDEX_PATIENCE_SECONDS = 5.0
_FIRST_SCAN_PATIENCE_SECONDS = 1.0
_PROGRESS_SECONDS = 1.0  # longest silence of `embedding_progressed`
_SPARE_HITS = 5  # in place of hits whose file turns out to be gone


class Codebase:
    """The service of the project at `root`. Constructing it does nothing yet."""

    def __init__(
        self,
        root: Path,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        crew: Crew | None = None,
    ) -> None:
        crew = crew or Crew(root, options.recipe)
        self.root = root
        self.embedder = embedder
        self.state = StateMachine()
        self.activity = Activity()
        self.pipeline = Pipeline(crew, cache, self.activity)
        self.cached_embedder = CachedEmbedder(embedder, cache, self.activity)
        self.recent = RecentQueries()
        self._options = options
        self._cache = cache
        self._keeper = Keeper(
            root, options, self.pipeline, self.cached_embedder, self.activity, self.state
        )

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """The time in which the service answers; the index is opened in the background."""
        try:
            async with self.embedder.running(), anyio.create_task_group() as tasks:
                tasks.start_soon(self._keeper.work, role)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await self.pipeline.crew.end()  # a task may wait for one of them
        finally:  # not before the last task has ended: it may be writing, or starting a child
            with anyio.CancelScope(shield=True):
                await self.pipeline.crew.end()
                await anyio.to_thread.run_sync(self._release)

    def _release(self) -> None:
        self._cache.close()
        self._keeper.release()

    @property
    def indexer(self) -> Indexer | None:
        """None until the index is open for writing, and while another process is its writer."""
        return self._keeper.indexer

    @property
    def freshness(self) -> Freshness | None:
        """None like the indexer, and for a visitor."""
        return self._keeper.freshness

    @property
    def uri(self) -> str:
        """Where the index lies."""
        return self._keeper.opener.uri

    @property
    def displaced(self) -> str:
        """Why the index does not lie where it was configured to; empty if it does."""
        return self._keeper.opener.displaced

    # -- indexing --------------------------------------------------------------------------

    async def trigger(self, *, force_reindex: bool) -> Run:
        """Begin a run or join the one under way; a rebuild may have to wait for that first.

        Args:
            force_reindex: Read and cut every file again, into a new index that replaces the
                current one when it is complete.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened.
        """
        await self._keeper.opened.wait()
        await self._keeper.try_now()
        if self.indexer is None:
            if self.state.error:
                raise StoreError(self.state.error)
            raise BusyError(
                "another process keeps this index and follows every change by itself; "
                "nothing needs to be triggered, see get_status"
            )
        self.indexer.vectors.look_for_model()
        self.indexer.vectors.check_model()
        return self.indexer.begin_run(Kind.REBUILD if force_reindex else Kind.REQUEST)

    async def catching_up(self) -> Run | None:
        """The run under way, once the index is open; None if there is none."""
        await self._keeper.opened.wait()
        return self.indexer.run if self.indexer is not None else None

    async def embedding_progressed(self) -> None:
        """Wait until more chunks have vectors, or for a second."""
        with anyio.move_on_after(_PROGRESS_SECONDS):
            if self.indexer is None:
                await anyio.sleep_forever()
            else:
                await self.indexer.vectors.progressed.wait()

    @property
    def ledger(self) -> Ledger:
        """What is known of every file; empty while the index is not open for writing."""
        return self.indexer.live.ledger if self.indexer is not None else Ledger()

    @property
    def is_busy(self) -> bool:
        """Whether anything is still to be done that does not wait for a model."""
        if self.indexer is None:
            return False
        embedding = self.lacks_vectors and self.embedder.state != "unavailable"
        return self.indexer.run is not None or self.indexer.pending_path_count > 0 or embedding

    @property
    def lacks_vectors(self) -> bool:
        """Whether chunks wait for their vectors, or may turn out to."""
        return self.indexer is not None and self.indexer.vectors.are_lacking

    async def verify(self) -> Report:
        """Compare the index with the project, reading and cutting every file.

        Raises:
            ProjectError: If the project's folder cannot be read.
            StoreError: If there is no index that could be read.
        """
        async with self.reading() as (index, _):
            return await verify(self.root, index, self._keeper.make_ignore(), self._options.recipe)

    # -- questions -------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[tuple[Index, Ledger]]:
        """The index as it is now: our own, or the one another process writes.

        Raises:
            StoreError: If there is none, or none that can be read.
        """
        await self._keeper.opened.wait()
        if self.indexer is not None:
            yield self.indexer.live.index, self.indexer.live.ledger
            return
        is_ours = await anyio.to_thread.run_sync(self._keeper.opener.is_readable)
        index = await Index.open(self.uri) if is_ours else None
        if index is None:
            raise StoreError(
                self.state.error or "this project is not indexed yet; call trigger_index"
            )
        try:
            records, holdings = await index.store.records(), await index.store.holdings()
            yield index, Ledger.reconciled(records, holdings)
        finally:
            index.close()

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
        what = wanted(query, path, language)
        began = time.monotonic()
        await self._make_sure()
        await self._wait_for_first_scan()
        if self.indexer is not None:
            self.indexer.vectors.check_model()
        async with self.reading() as (index, ledger):
            question = Question(
                self.embedder, what.text, index, ledger, wait_for_model=wait_for_model
            )
            place = Place(self.root, index, ledger)
            hits, why_none = await self._best_hits(what, question, place, limit + _SPARE_HITS)
        if self.indexer is not None:
            # Newer than the one the search began with: it tells of the commits since.
            ledger = self.indexer.live.ledger
        checked = await self._checked(ledger, hits, limit)
        backlog = backlog_of(self.root, self.indexer, self.freshness, self.state)
        if self.indexer is not None:
            self.indexer.live.distrust(checked.untrue)
            self.indexer.look_again(checked.gone | checked.stale | checked.untrue)
        limits = note(question.lack, ledger, backlog, len(checked.untrue))
        answer = Answer(
            hits=checked.hits,
            stale=frozenset(checked.stale),
            mode="lexical" if question.lack else "hybrid",
            note=" ".join(filter(None, (why_none, limits))),
            seconds=time.monotonic() - began,
        )
        self.recent.note(asked(what.text, asker, path, language, answer))
        return answer

    async def _best_hits(
        self, what: Wanted, question: Question, place: Place, limit: int
    ) -> tuple[list[Hit], str]:
        live = self.indexer.live if self.indexer is not None else None
        try:
            return await best_hits(what, question, place, limit, live)
        except DamagedIndexError:
            if self.indexer is not None:
                self.indexer.begin_run(Kind.REBUILD)
            raise

    async def _checked(self, ledger: Ledger, hits: list[Hit], limit: int) -> Checked:
        most = self._options.recipe.max_file_bytes
        checked = await anyio.to_thread.run_sync(
            check_against_disk, self.root, ledger, hits, limit, most
        )
        if checked.gone:
            await self._make_sure()
        return checked

    async def _make_sure(self) -> None:
        """Raise ProjectError if the project is out of reach: nothing can be compared with it."""
        await self._keeper.try_now()
        if (problem := absence_of(self.root)) is not None:
            if self.indexer is not None:
                self.indexer.look_again([""])
            raise problem

    async def _wait_for_first_scan(self) -> None:
        """Let an index that has just been opened catch up, for a moment."""
        run = await self.catching_up()
        if run is None:
            return
        if not self.ledger.chunk_count:
            patience = _EMPTY_INDEX_PATIENCE_SECONDS
        elif run.kind is Kind.START:
            patience = _FIRST_SCAN_PATIENCE_SECONDS
        else:
            return
        with anyio.move_on_after(patience):
            await run.finished.wait()

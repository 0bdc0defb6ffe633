"""The live index of one project: opens it, keeps it fresh, answers questions about it.

Knows nothing of who asks and how: whoever serves it calls its methods inside `running`. One
process at a time is the writer of an index; another one that opens it answers from what the
writer commits, and takes over when the writer is gone.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.codebase.activity import Activity
from vector_index_mcp.codebase.asking import (
    Answer,
    Question,
    check_against_disk,
    filters_of,
    note,
)
from vector_index_mcp.codebase.freshness import Freshness
from vector_index_mcp.codebase.indexer import Indexer
from vector_index_mcp.codebase.ledger import Ledger
from vector_index_mcp.codebase.opening import Opened, Opener
from vector_index_mcp.codebase.pipeline import Pipeline
from vector_index_mcp.codebase.prepare import Recipe
from vector_index_mcp.codebase.preparers import Preparers
from vector_index_mcp.codebase.project import index_uri
from vector_index_mcp.codebase.queue import DirtyQueue
from vector_index_mcp.codebase.recent import Asker, RecentQueries, asked
from vector_index_mcp.codebase.run import Kind, Run
from vector_index_mcp.codebase.state import State, StateMachine
from vector_index_mcp.codebase.verify import Report, verify
from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.search import search
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import is_local
from vector_index_mcp.engine.types import Filters, Hit
from vector_index_mcp.errors import BusyError, DamagedIndexError, QueryError, StoreError
from vector_index_mcp.files.ignore import Ignore

_TAKEOVER_SECONDS = 1.0  # between two looks whether the writer is gone
_REOPEN_SECONDS = 5.0  # between two tries to open an index that cannot be opened
# How long a search waits for the scan that follows opening: an empty index has nothing to say,
# another one is as it was when the service last ended.
_EMPTY_INDEX_PATIENCE_SECONDS = 5.0
_FIRST_SCAN_PATIENCE_SECONDS = 1.0
_PROGRESS_SECONDS = 1.0  # longest silence of `embedding_progressed`
_SPARE_HITS = 5  # in place of hits whose file turns out to be gone


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may set about one project's index."""

    lancedb_uri: str
    recipe: Recipe
    ignore_patterns: tuple[str, ...]
    quiet_seconds: float
    longest_seconds: float
    rescan_seconds: float
    state_folder: Path
    """Where locks lie whose index has no folder."""


class Role(StrEnum):
    """What a process does for the index beyond answering."""

    KEEPER = "keeper"
    """Watches the project and becomes the writer as soon as there is no other."""
    VISITOR = "visitor"
    """Brings the index up to date once, unless another process keeps it."""
    READER = "reader"
    """Changes nothing."""


class Codebase:
    """The service of the project at `root`. Constructing it does nothing yet."""

    def __init__(
        self,
        root: Path,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        preparers: Preparers | None = None,
    ) -> None:
        preparers = preparers or Preparers(root, options.recipe)
        self.root = root
        self.uri = index_uri(root, options.lancedb_uri)
        self.embedder = embedder
        self.state = StateMachine()
        self.activity = Activity()
        self.pipeline = Pipeline(preparers, embedder, cache, self.activity)
        self.recent = RecentQueries()
        self.indexer: Indexer | None = None
        """None until the index is open for writing, and while another process is its writer."""
        self.freshness: Freshness | None = None
        """None like the indexer, and for a visitor."""
        self._options = options
        self._cache = cache
        self._opener = Opener(root, self.uri, options.recipe.version, options.state_folder)
        self._opened = anyio.Event()

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """The time in which the service answers; the index is opened in the background."""
        try:
            async with self.embedder.running(), anyio.create_task_group() as tasks:
                tasks.start_soon(self._work, role)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await self.pipeline.preparers.end()  # a task may wait for one of them
        finally:  # not before the last task has ended: it may be writing, or starting a child
            with anyio.CancelScope(shield=True):
                await self.pipeline.preparers.end()
                await anyio.to_thread.run_sync(self._release)

    def _release(self) -> None:
        if self.freshness is not None:
            self.freshness.stop()
        self._cache.close()
        self._opener.release()

    async def _work(self, role: Role) -> None:
        opened = await self._open_as_writer(role)
        if opened is None:
            return
        queue = DirtyQueue(self._options.quiet_seconds, self._options.longest_seconds)
        self.pipeline.revision = opened.last_revision
        self.indexer = indexer = Indexer(
            self.root,
            opened,
            chunker=self._options.recipe.version,
            pipeline=self.pipeline,
            embedder=self.embedder,
            activity=self.activity,
            queue=queue,
            state=self.state,
            make_ignore=self._make_ignore,
            start_over=self._opener.start_over,
        )
        indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.START)
        self._opened.set()
        async with anyio.create_task_group() as preparations:
            preparations.start_soon(indexer.vectors.expect_model)
            if role is Role.KEEPER:
                # Before the first walk: what changes behind its back is an event then.
                self.freshness = Freshness(self.root, queue, self._options.rescan_seconds)
                indexer.on_rules_changed = self.freshness.resync
                preparations.start_soon(self.freshness.start, indexer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.activity.tell_of_stalls)
            if self.freshness is not None:
                tasks.start_soon(self.freshness.rescan_forever, indexer)
            tasks.start_soon(indexer.write_forever)
            tasks.start_soon(self.pipeline.preparers.finish_late_forever, queue.touch)
            tasks.start_soon(indexer.vectors.embed_forever)

    async def _open_as_writer(self, role: Role) -> Opened | None:
        """Open the index as soon as it has no other writer; None for a role that does not wait."""
        while True:
            delay = _TAKEOVER_SECONDS
            try:
                if role is Role.READER:
                    if await anyio.to_thread.run_sync(self._opener.is_taken):
                        self.state.enter(State.WATCHING)
                elif await anyio.to_thread.run_sync(self._opener.acquire):
                    return await self._opener.open()
                else:
                    self.state.enter(State.WATCHING)
            except StoreError as error:
                self.state.enter(State.ERROR, str(error))
                delay = _REOPEN_SECONDS
            self._opened.set()
            if role is not Role.KEEPER:
                return None
            await (
                self.pipeline.preparers.end()
            )  # its processes may have been started for us already
            await anyio.sleep(delay)

    def _make_ignore(self) -> Ignore:
        """The ignore rules as they are on disk now; the index itself is never indexed."""
        folder = Path(self.uri)
        is_inside = is_local(self.uri) and folder.is_relative_to(self.root)
        excluded = [folder.relative_to(self.root).as_posix()] if is_inside else []
        return Ignore(self.root, self._options.ignore_patterns, excluded)

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
        await self._opened.wait()
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
        await self._opened.wait()
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
            return await verify(self.root, index, self._make_ignore(), self._options.recipe)

    # -- questions -------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[tuple[Index, Ledger]]:
        """The index as it is now: our own, or the one another process writes.

        Raises:
            StoreError: If there is none, or none that can be read.
        """
        await self._opened.wait()
        if self.indexer is not None:
            yield self.indexer.live.index, self.indexer.live.ledger
            return
        index = await Index.open(self.uri)
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
            path: A glob that the hits' paths match; empty for all.
            language: The language they are written in; empty for all.
            wait_for_model: Whether to wait until the model is loaded. Otherwise it is loaded in
                the background and the full text alone must do meanwhile.
            asker: Who asks; kept with the query in `recent`.

        Raises:
            QueryError: If the query is empty or a filter means nothing.
            StoreError: If there is no index that could be read.
        """
        text = query.strip()
        if not text:
            raise QueryError("the query is empty; say in words or identifiers what to look for")
        filters = filters_of(path, language)
        began = time.monotonic()
        await self._wait_for_first_scan()
        if self.indexer is not None:
            self.indexer.vectors.check_model()
        async with self.reading() as (index, ledger):
            question = Question(self.embedder, text, index, ledger, wait_for_model=wait_for_model)
            hits = await self._search(index, question, limit + _SPARE_HITS, filters)
        stale: frozenset[str] = frozenset()
        if self.indexer is not None:
            # Our ledger may be newer than the one the search began with: it tells of the commits.
            verdict = await anyio.to_thread.run_sync(
                check_against_disk, self.root, self.indexer.live.ledger, hits
            )
            self.indexer.look_again(verdict.gone | verdict.stale)
            hits = [hit for hit in hits if hit.chunk.key not in verdict.gone]
            stale = verdict.stale
        run = self.indexer.run if self.indexer is not None else None
        mode = "lexical" if question.lack else "hybrid"
        limits = note(question.lack, ledger, run)
        answer = Answer(hits[:limit], stale, mode, limits, time.monotonic() - began)
        self.recent.note(asked(text, asker, path, language, answer))
        return answer

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

    async def _search(
        self, index: Index, question: Question, limit: int, filters: Filters
    ) -> list[Hit]:
        store = index.store
        try:
            return await search(store, question.text, question.embed, limit, filters)
        except DamagedIndexError:
            current = self.indexer.live.index if self.indexer is not None else index
            if current.store is not store:  # it has been replaced under our hands
                return await search(current.store, question.text, question.embed, limit, filters)
            if self.indexer is not None:
                self.indexer.begin_run(Kind.REBUILD)
            raise

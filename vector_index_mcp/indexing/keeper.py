"""Keeps an index: becomes its writer, follows the project, and lets go when the index is lost.

One process at a time is the writer of an index. Another one waits until that is gone, and reads
meanwhile what it commits. An index whose folder was moved, deleted or replaced under our hands is
given up and opened again: by then it may be another process's.
"""

import logging
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store.index import is_local
from vector_index_mcp.errors import ProjectError, StoreError
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import absence_of
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.freshness import Freshness
from vector_index_mcp.indexing.indexer import Indexer
from vector_index_mcp.indexing.opening import Opened, Opener
from vector_index_mcp.indexing.pipeline import Pipeline
from vector_index_mcp.indexing.place import index_uri
from vector_index_mcp.indexing.preparing.file import Recipe
from vector_index_mcp.indexing.queue import DirtyQueue
from vector_index_mcp.indexing.remedies import with_remedy
from vector_index_mcp.indexing.run import Kind
from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.vectors import CachedEmbedder

_log = logging.getLogger(__name__)

_LOST = "the index's folder was removed, moved or replaced, and is opened again"
_TAKEOVER_SECONDS = 1.0  # between two looks whether the writer, or our index, is gone
_REOPEN_SECONDS = 5.0  # between two tries to open an index that cannot be opened


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


class Keeper:
    """Keeps the index of the project at `root` while `work` runs."""

    def __init__(
        self,
        root: Path,
        options: Options,
        pipeline: Pipeline,
        embedder: CachedEmbedder,
        activity: Activity,
        state: StateMachine,
    ) -> None:
        """Prepare; `work` does it.

        Args:
            root: The project.
            options: What a user may set.
            pipeline: The stages of a batch.
            embedder: Makes the vectors.
            activity: Told of what is being done.
            state: Told of runs and errors.
        """
        uri = index_uri(root, options.lancedb_uri)
        self.opener = Opener(root, uri, options.recipe.version, options.state_folder)
        self.indexer: Indexer | None = None
        """None until the index is open for writing, and while another process is its writer."""
        self.freshness: Freshness | None = None
        """None like the indexer, and for a visitor."""
        self.opened = anyio.Event()
        """Set once it is known whether the index can be opened for writing."""
        self._root = root
        self._options = options
        self._pipeline = pipeline
        self._embedder = embedder
        self._activity = activity
        self._state = state
        self._wanted = anyio.Event()
        self._tried = anyio.Event()
        self._is_pausing = False

    async def work(self, role: Role) -> None:
        """Keep the index; open it again whenever its folder is gone or another one."""
        while (opened := await self._open_as_writer(role)) is not None:
            indexer = self._indexer_of(opened)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._keep, role, indexer)
                await indexer.live.lost.wait()
                tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._let_go(indexer)
            if role is not Role.KEEPER:
                break
        self._note_try()

    def _indexer_of(self, opened: Opened) -> Indexer:
        self._pipeline.revision = opened.last_revision
        return Indexer(
            self._root,
            opened,
            chunker=self._options.recipe.version,
            pipeline=self._pipeline,
            embedder=self._embedder,
            activity=self._activity,
            queue=DirtyQueue(self._options.quiet_seconds, self._options.longest_seconds),
            state=self._state,
            make_ignore=self.make_ignore,
        )

    async def _keep(self, role: Role, indexer: Indexer) -> None:
        self.indexer = indexer
        self._note_try()
        indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.START)
        self.opened.set()
        async with anyio.create_task_group() as preparations:
            preparations.start_soon(indexer.vectors.expect_model)
            if role is Role.KEEPER:
                # Before the first walk: what changes behind its back is an event then.
                rescan_seconds = self._options.rescan_seconds
                self.freshness = Freshness(self._root, indexer.queue, rescan_seconds)
                indexer.outlook.settle = self.freshness.settle
                preparations.start_soon(self.freshness.start, indexer)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._activity.tell_of_stalls)
            tasks.start_soon(self._notice_loss, indexer)
            if self.freshness is not None:
                tasks.start_soon(self.freshness.rescan_forever, indexer)
                tasks.start_soon(self.freshness.sweep_forever, indexer)
            tasks.start_soon(indexer.write_forever)
            tasks.start_soon(self._pipeline.crew.finish_late_forever, indexer.queue.touch)
            tasks.start_soon(indexer.vectors.embed_forever)

    async def _notice_loss(self, indexer: Indexer) -> None:
        """Look every second whether project and index are where they were: no event tells."""
        while True:
            await anyio.sleep(_TAKEOVER_SECONDS)
            indexer.live.is_lost()
            if absence_of(self._root) is not None and not indexer.is_in_error:
                indexer.look_again([""])

    async def _let_go(self, indexer: Indexer) -> None:
        """Give up an index whose folder is gone: it may be another process's now."""
        problem = absence_of(self._root)
        reason = str(problem) if problem else _LOST
        _log.warning("%s", reason)
        self.indexer = None
        indexer.end(reason)
        if self.freshness is not None:
            await anyio.to_thread.run_sync(self.freshness.stop)
            self.freshness = None
        await anyio.to_thread.run_sync(self.opener.release)

    async def _open_as_writer(self, role: Role) -> Opened | None:
        """Open the index as soon as it has no other writer; None for a role that does not wait."""
        while True:
            delay = _TAKEOVER_SECONDS
            try:
                if role is Role.READER:
                    if await anyio.to_thread.run_sync(self.opener.is_taken):
                        self._state.enter(State.WATCHING)
                elif await anyio.to_thread.run_sync(self.opener.acquire):
                    return await self.opener.open()
                else:
                    self._state.enter(State.WATCHING)
            except ProjectError as error:  # it may come back at any time
                self._state.enter(State.ERROR, str(error))
            except StoreError as error:
                self._state.enter(State.ERROR, with_remedy(error))
                delay = _REOPEN_SECONDS
            self.opened.set()
            if role is not Role.KEEPER:
                return None
            # Its processes may have been started for us already.
            await self._pipeline.crew.end()
            await self._next_try(delay)

    async def try_now(self) -> None:
        """Open the index again if that is due: somebody needs it."""
        is_lost = self.indexer is not None and self.indexer.live.is_lost()
        if is_lost or (self._is_pausing and self._state.error):
            self._wanted.set()
            await self._tried.wait()

    async def _next_try(self, delay: float) -> None:
        self._note_try()
        self._is_pausing, self._wanted = True, anyio.Event()
        with anyio.move_on_after(delay):
            await self._wanted.wait()
        self._is_pausing = False

    def _note_try(self) -> None:
        """Tell who waits for it that the index was opened, or could not be."""
        self._tried.set()
        self._tried = anyio.Event()

    def release(self) -> None:
        """Let another process become the writer; called when `work` has ended."""
        if self.freshness is not None:
            self.freshness.stop()
        self.opener.release()

    def make_ignore(self) -> Ignore:
        """The ignore rules as they are on disk now; the index itself is never indexed."""
        folder = Path(self.opener.uri)
        is_inside = is_local(self.opener.uri) and folder.is_relative_to(self._root)
        excluded = [folder.relative_to(self._root).as_posix()] if is_inside else []
        return Ignore(self._root, self._options.ignore_patterns, excluded)

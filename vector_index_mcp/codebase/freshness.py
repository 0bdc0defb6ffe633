"""How changes are noticed: events where the system gives them, scans where it does not."""

import asyncio
import contextlib
import logging
import os
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.codebase.indexer import Indexer
from vector_index_mcp.codebase.queue import DirtyQueue
from vector_index_mcp.codebase.run import Kind
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.mounts import silent_file_system
from vector_index_mcp.files.watch import WATCH_LIMIT, Watch

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_SCANS_AFTER_ERROR = 5.0  # a folder that is gone may come back at any time
# Without events, changes are found by scanning; a scan may take this share of the time.
_POLLING_SHARE = 0.05
_POLLING_LEAST_SECONDS = 2.0
_LIMIT_REACHED = (
    "the system's limit of watched folders is reached; raise fs.inotify.max_user_watches, "
    "changes are found by scanning meanwhile"
)
_CHANGED_ELSEWHERE = (
    "the file system ({}) does not tell of changes that other machines make; these are found by "
    "scanning, others at once"
)


class Freshness:
    """Turns what happens below `root` into dirty paths. Used inside the service's event loop."""

    def __init__(self, root: Path, queue: DirtyQueue, rescan_seconds: float) -> None:
        self.mode = "off"
        """`events`, `polling` or `off`."""
        self.problem = ""
        """Why it is not events, and the remedy."""
        self._root = root
        self._queue = queue
        self._rescan_seconds = rescan_seconds
        self._rescan_wanted = anyio.Event()
        self._watch: Watch | None = None
        self._lacks_watches = False
        self._silent = ""  # the type of a file system that does not tell of every change

    async def start(self, indexer: Indexer) -> None:
        """Set the watches on every folder that `indexer` does not ignore."""
        loop = asyncio.get_running_loop()

        def on_problem(problem: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended
                loop.call_soon_threadsafe(self._note_problem, problem)

        watch = Watch(
            self._root,
            lambda path: indexer.ignore.is_ignored(path, True),
            self._queue.touch_from_thread,
            on_problem,
        )
        self._lacks_watches = False
        self._watch = watch  # before it starts: if we are cancelled meanwhile, `stop` must find it
        try:
            await anyio.to_thread.run_sync(watch.start)
        except ProjectError as error:
            self._watch, self.mode, self.problem = None, "polling", str(error)
            return
        self._silent = await anyio.to_thread.run_sync(silent_file_system, self._root)
        self._note_mode()

    async def rescan_forever(self, indexer: Indexer) -> None:
        """Find what events did not tell, and set the watches anew where they are gone."""
        while True:
            with anyio.move_on_after(self._seconds_to_rescan(indexer)):
                await self._rescan_wanted.wait()
            self._rescan_wanted = anyio.Event()
            is_watching = self._watch is not None and self._watch.is_alive
            if not is_watching and await anyio.to_thread.run_sync(os.path.isdir, self._root):
                await anyio.to_thread.run_sync(self.stop)
                await self.start(indexer)
            if indexer.run is not None:  # its walk may have been before the events were lost
                await indexer.run.finished.wait()
            run = indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.RESCAN)
            await run.finished.wait()
            await self.resync()

    async def resync(self) -> None:
        """Watch the folders that are not ignored now, and no others."""
        if self._watch is not None:
            lacked, self._lacks_watches = self._lacks_watches, False
            await anyio.to_thread.run_sync(self._watch.resync)
            if lacked and not self._lacks_watches:
                self._note_mode()

    def stop(self) -> None:
        """Remove the watches. Blocks until their threads have ended."""
        if self._watch is not None:
            self._watch.stop()
            self._watch, self.mode = None, "off"

    def _note_problem(self, problem: str) -> None:
        is_known = problem == WATCH_LIMIT and self.problem == _LIMIT_REACHED
        self._lacks_watches |= problem == WATCH_LIMIT
        if is_known:  # every folder tells of it, at every resync
            return
        self._note_mode()
        _log.warning("watching %s: %s", self._root, problem)
        self._rescan_wanted.set()

    def _note_mode(self) -> None:
        if self._lacks_watches:
            self.mode, self.problem = "polling", _LIMIT_REACHED
        elif self._silent:
            self.mode, self.problem = "polling", _CHANGED_ELSEWHERE.format(self._silent)
        else:
            self.mode, self.problem = "events", ""

    def _seconds_to_rescan(self, indexer: Indexer) -> float:
        if indexer.is_in_error:
            return min(self._rescan_seconds, _SECONDS_BETWEEN_SCANS_AFTER_ERROR)
        if self.mode == "events":
            return self._rescan_seconds
        took = indexer.last_run.seconds if indexer.last_run else 0.0
        return min(self._rescan_seconds, max(_POLLING_LEAST_SECONDS, took / _POLLING_SHARE))

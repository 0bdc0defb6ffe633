"""Notices changes: by events where the system reports them, by scans where it does not.

Some changes cause no event although all folders are watched: a write by a hard link elsewhere or
through a memory map that stays open, or a mount over a folder. A sweep finds these. It compares
the stamps of the indexed files only, which costs a third of a scan, so it runs more often.

That a whole folder is gone is found by `looks`.
"""

import asyncio
import contextlib
import logging
import time
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import repository, scan
from vector_index_mcp.files.folder import Folder, Folders, absence_of
from vector_index_mcp.files.ignore import RULES
from vector_index_mcp.files.mounts import places_below, silent_file_system
from vector_index_mcp.files.watch import WATCH_LIMIT, Watch
from vector_index_mcp.indexing.indexer import Indexer
from vector_index_mcp.indexing.outlook import Outlook
from vector_index_mcp.indexing.queue import DirtyQueue
from vector_index_mcp.indexing.run import Kind

_log = logging.getLogger(__name__)

_SECONDS_BETWEEN_SCANS_AFTER_ERROR = 5.0  # a folder that is gone may come back at any time
# Without events, scans find changes. They may take this share of the time.
_POLLING_SHARE = 0.05
_POLLING_LEAST_SECONDS = 2.0
# A sweep of 10,000 files takes 25 ms of a processor.
SWEEP_LEAST_SECONDS = 30.0
_SWEEP_SHARE = 0.001
_LIMIT_REACHED = (
    "the system's limit of watched folders is reached; raise fs.inotify.max_user_watches, until "
    "then scans find changes a little later"
)
_BLIND_SPOT = (
    "the system does not report writes through a memory map that stays open or a hard link from "
    "outside, nor new mounts; they are found within {seconds:.0f} s, and changes of files that "
    "git's settings include within {rescan:.0f} s"
)
_CHANGED_ELSEWHERE = (
    "the file system ({}) does not report changes that other machines make; scans find these, "
    "other changes are noticed at once"
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The identity of a folder on disk, and the file systems that are mounted below it."""

    device: int
    number: int
    mounts: frozenset[tuple[Path, str]]

    @classmethod
    def of(cls, folder: Folder) -> "_Place":
        try:
            status = folder.path.stat()
        except OSError:
            return cls(0, 0, frozenset())
        return cls(status.st_dev, status.st_ino, places_below(folder.path))


class Freshness:
    """Queues dirty keys for what changes in the folders. Use it only inside the event loop."""

    def __init__(self, folders: Folders, queue: DirtyQueue, rescan_seconds: float) -> None:
        """Prepare; `start` sets watches.

        Args:
            folders: The folders of the index; they may change.
            queue: Receives the dirty keys.
            rescan_seconds: The time between two scans while events report changes.
        """
        self.mode = "off"
        """`events`, `polling` or `off`."""
        self.problem = ""
        """Why the mode is `polling`, and what to do about it; empty in other modes."""
        self._folders = folders
        self._queue = queue
        self._rescan_seconds = rescan_seconds
        self._rescan_wanted = anyio.Event()
        self._outlook: Outlook | None = None
        self._watch: Watch | None = None
        self._lacks_watches = False
        self._silent = ""  # the type of a file system that does not report all changes, if any
        self._sweep_seconds = SWEEP_LEAST_SECONDS
        # The repositories whose rules are watched.
        self._repositories: frozenset[tuple[str, str]] = frozenset()
        self._places: dict[str, _Place] = {}

    async def start(self, outlook: Outlook) -> None:
        """Set the watches on every folder that `outlook` does not ignore."""
        loop = asyncio.get_running_loop()

        def on_problem(problem: str) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended
                loop.call_soon_threadsafe(self._note_problem, problem)

        watch = Watch(
            self._folders,
            outlook.is_ignored_folder,
            self._queue.touch_from_thread,
            on_problem,
            self._queue.touch_unfinished_from_thread,
        )
        self._outlook, self._repositories = outlook, frozenset()
        self._lacks_watches = False
        self._watch = watch  # set before it starts, so that `stop` finds it after a cancellation
        try:
            await anyio.to_thread.run_sync(lambda: watch.start(outlook.sources))
        except ProjectError as error:
            self._watch, self.mode, self.problem = None, "polling", str(error)
            return
        await anyio.to_thread.run_sync(self._look_at_places)
        self._note_mode()

    async def rescan_forever(self, indexer: Indexer) -> None:
        """Scan for changes that no event reported, and set watches anew if they are gone."""
        while True:
            await self._wait_for_rescan(indexer)
            self._rescan_wanted = anyio.Event()
            if self._watch is not None and self._watch.is_alive:
                # A silent file system may have been unmounted. Its drive may also hang.
                await anyio.to_thread.run_sync(self._look_at_places, abandon_on_cancel=True)
                self._note_mode()
            elif await anyio.to_thread.run_sync(self._is_anything_there):
                await anyio.to_thread.run_sync(self.stop)
                await self.start(indexer.outlook)
            if indexer.runs.current is not None:  # it may have walked before the events were lost
                await indexer.runs.current.finished.wait()
            repository.forget_settings()
            run = indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.RESCAN)
            await run.finished.wait()

    def _is_anything_there(self) -> bool:
        return any(absence_of(folder) is None for folder in self._folders)

    async def _wait_for_rescan(self, indexer: Indexer) -> None:
        began = anyio.current_time()
        while (left := began + self._seconds_to_rescan(indexer) - anyio.current_time()) > 0:
            # Wait in short steps: after an error, the time to the next scan becomes shorter.
            with anyio.move_on_after(min(left, _SECONDS_BETWEEN_SCANS_AFTER_ERROR)):
                await self._rescan_wanted.wait()
                return

    async def sweep_forever(self, indexer: Indexer) -> None:
        """Sweep from time to time, as long as events report the other changes."""
        while True:
            await anyio.sleep(self._sweep_seconds)
            if self.mode == "events" and indexer.runs.current is None and not indexer.is_in_error:
                await self.sweep(indexer)

    async def sweep(self, indexer: Indexer) -> None:
        """Look once whether files, rules or the folders' places changed without an event."""
        known, outlook = indexer.live.ledger.stamps(), indexer.outlook
        present = [view.folder for view in outlook.views if view.problem is None]

        def find() -> tuple[list[str], bool, bool, float]:
            began = time.thread_time()
            changed: list[str] = []
            for folder in present:
                ours = {k: stamp for k, stamp in known.items() if folder.holds(k)}
                changed += scan.sweep(folder, ours)
            is_outdated = outlook.is_outdated()
            is_moved = self._look_at_places()
            return changed, is_outdated, is_moved, time.thread_time() - began

        changed, is_outdated, is_moved, took = await anyio.to_thread.run_sync(find)
        self._sweep_seconds = max(SWEEP_LEAST_SECONDS, took / _SWEEP_SHARE)
        if is_moved:  # or something is mounted there; only a walk finds which files there are
            self._note_mode()
            self._rescan_wanted.set()
        self._queue.touch([*changed, *([RULES] if is_outdated else [])])

    async def settle(self, everywhere: bool) -> list[str]:
        """Watch the folders that are not ignored now, and no others; see `outlook.Watches`."""
        watch, outlook = self._watch, self._outlook
        if watch is None or outlook is None:
            return []
        repositories = outlook.repositories
        are_new = not self._repositories.issuperset(repositories)
        if not everywhere and not are_new and watch.is_settled:
            return []
        lacked = everywhere and self._lacks_watches
        self._lacks_watches &= not everywhere
        self._repositories = repositories

        def settle() -> list[str]:
            signs = outlook.sources if everywhere or are_new else None
            return watch.settle(everywhere=everywhere, signs=signs)

        others = await anyio.to_thread.run_sync(settle)
        if are_new:  # their rules may have changed between being read and being watched
            self._queue.touch([RULES])
        if lacked and not self._lacks_watches:
            self._note_mode()
        return others

    @property
    def blind_spot(self) -> str:
        """Which changes events do not report, and how soon they are found; empty without events."""
        if self.mode != "events":
            return ""
        seconds = min(self._sweep_seconds, self._rescan_seconds)
        return _BLIND_SPOT.format(seconds=seconds, rescan=self._rescan_seconds)

    def _look_at_places(self) -> bool:
        """Whether a folder was replaced, or file systems were mounted or unmounted below it."""
        former, self._places = self._places, {f.name: _Place.of(f) for f in self._folders}
        silent = (silent_file_system(folder.path) for folder in self._folders)
        self._silent = next(filter(None, silent), "")
        return any(former.get(name, place) != place for name, place in self._places.items())

    def stop(self) -> None:
        """Remove the watches. Blocks until their threads have ended."""
        if self._watch is not None:
            self._watch.stop()
            self._watch, self.mode = None, "off"

    def _note_problem(self, problem: str) -> None:
        is_known = problem == WATCH_LIMIT and self.problem == _LIMIT_REACHED
        self._lacks_watches |= problem == WATCH_LIMIT
        if is_known:  # every folder reports the limit again at every resync
            return
        self._note_mode()
        _log.warning("watching: %s", problem)
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
        last = indexer.runs.last
        took = last.seconds if last else 0.0
        return min(self._rescan_seconds, max(_POLLING_LEAST_SECONDS, took / _POLLING_SHARE))

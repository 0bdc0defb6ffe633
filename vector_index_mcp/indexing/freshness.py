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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import repository, scan
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import RULES
from vector_index_mcp.files.mounts import places_below, silent_file_system
from vector_index_mcp.files.watch import WATCH_LIMIT, Watch
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.looking.outlook import Outlook
from vector_index_mcp.indexing.noticing import Noticing
from vector_index_mcp.indexing.writing.indexer import Indexer
from vector_index_mcp.indexing.writing.queue import DirtyQueue
from vector_index_mcp.indexing.writing.run import Kind
from vector_index_mcp.processes import detached
from vector_index_mcp.processes.detached import Detached, Work

_log = logging.getLogger(__name__)
T = TypeVar("T")

_SECONDS_BETWEEN_SCANS_AFTER_ERROR = 5.0  # a folder that is gone may come back at any time
# Without events, scans find changes. They may take this share of the time.
_POLLING_SHARE = 0.05
_POLLING_LEAST_SECONDS = 2.0
# A sweep of 10,000 files takes 25 ms of a processor.
SWEEP_LEAST_SECONDS = 30.0
_SWEEP_SHARE = 0.001
_HANGS = "the drive of a folder does not answer, so scans find changes until it does"
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


def _place_of(folder: Folder) -> tuple[_Place, str]:
    """The place of a folder, and the type of a silent file system in it; see `mounts`."""
    return _Place.of(folder), silent_file_system(folder.path)


def _swept(folder: Folder, known: Mapping[str, scan.Stamp]) -> tuple[list[str], float]:
    """The files that a sweep finds changed, and the processor's time that it took."""
    began = time.thread_time()
    return scan.sweep(folder, known), time.thread_time() - began


class Freshness:
    """Queues dirty keys for what changes in the folders. Use it only inside the event loop."""

    def __init__(
        self, folders: Folders, queue: DirtyQueue, rescan_seconds: float, looks: Looks
    ) -> None:
        """Prepare; `start` sets watches.

        Args:
            folders: The folders of the index; they may change.
            queue: Receives the dirty keys.
            rescan_seconds: The time between two scans while events report changes.
            looks: Looks at folders, whose drives may hang.
        """
        self._mode = "off"
        self._problem = ""
        self._folders = folders
        self._queue = queue
        self._rescan_seconds = rescan_seconds
        self._looks = looks
        self._threads = Detached(1, "watches")
        self._rescan_wanted = anyio.Event()
        self._outlook: Outlook | None = None
        self._watch: Watch | None = None
        self._lacks_watches = False
        self._is_unsettled = False  # whether the last try to settle the watches hung
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

        def begin(work: Work[None]) -> None:
            watch.start(outlook.sources)
            if work.is_abandoned:
                watch.stop()

        try:
            await self._at_folders(begin)
        except (ProjectError, TimeoutError) as error:
            self._watch, self._mode = None, "polling"
            self._problem = str(error) or _HANGS
            return
        await self._look_at_places()
        self._note_mode()

    async def _at_folders(self, do: Callable[[Work[T]], T]) -> T:
        """Call `do`, which uses the drives of all folders, in a thread, as long as they answer.

        Raises:
            TimeoutError: If one of them does not answer.
        """
        answer = partial(self._looks.all_answer, self._folders)
        return await self._threads.run(do, detached.DRIVE_SECONDS, answer)

    async def rescan_forever(self, indexer: Indexer) -> None:
        """Scan for changes that no event reported, and set watches anew if they are gone."""
        while True:
            await self._wait_for_rescan(indexer)
            self._rescan_wanted = anyio.Event()
            if self._watch is not None and self._watch.is_alive:
                await self._look_at_places()  # a silent file system may have been unmounted
                self._note_mode()
            elif await self._looks.absence(self._folders) is None:
                await self.stop()
                await self.start(indexer.outlook)
            if indexer.runs.current is not None:  # it may have walked before the events were lost
                await indexer.runs.current.finished.wait()
            repository.forget_settings()
            run = indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.RESCAN)
            await run.finished.wait()

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
            if self._mode == "events" and indexer.runs.current is None and not indexer.is_in_error:
                await self.sweep(indexer)

    async def sweep(self, indexer: Indexer) -> None:
        """Look once whether files, rules or the folders' places changed without an event."""
        ledger, outlook = indexer.live.ledger, indexer.outlook
        known = ledger.stamps()
        present = [view.folder for view in outlook.views if view.problem is None]
        changed: list[str] = []
        took = 0.0
        for folder in present:
            ours = {key: known[key] for key in ledger.below(folder.top) if key in known}
            with contextlib.suppress(ProjectError):  # its drive hangs
                found, seconds = await self._looks.work_in(folder, partial(_swept, folder, ours))
                changed += found
                took += seconds
        is_outdated = await outlook.is_outdated()
        is_moved = await self._look_at_places()
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
        everywhere |= self._is_unsettled
        if not everywhere and not are_new and watch.is_settled:
            return []
        lacked = everywhere and self._lacks_watches
        self._lacks_watches &= not everywhere

        def settle(_: Work[list[str]]) -> list[str]:
            signs = outlook.sources if everywhere or are_new else None
            return watch.settle(everywhere=everywhere, signs=signs)

        self._is_unsettled = True
        try:
            others = await self._at_folders(settle)
        except TimeoutError:  # the next time settles all
            return []
        self._is_unsettled = False
        self._repositories = repositories
        if are_new:  # their rules may have changed between being read and being watched
            self._queue.touch([RULES])
        if lacked and not self._lacks_watches:
            self._note_mode()
        return others

    @property
    def noticing(self) -> Noticing:
        """How changes are noticed now."""
        if self._mode != "events":
            return Noticing(self._mode, self._problem)
        seconds = min(self._sweep_seconds, self._rescan_seconds)
        blind_spot = _BLIND_SPOT.format(seconds=seconds, rescan=self._rescan_seconds)
        return Noticing(self._mode, blind_spot=blind_spot)

    async def _look_at_places(self) -> bool:
        """Whether a folder was replaced, or file systems were mounted or unmounted below it."""
        former, self._places, silent = self._places, {}, []
        for folder in list(self._folders):
            try:
                look = partial(_place_of, folder)
                self._places[folder.name], found = await self._looks.work_in(folder, look)
            except ProjectError:  # its drive hangs
                self._places |= {n: place for n, place in former.items() if n == folder.name}
                found = self._silent
            silent.append(found)
        self._silent = next(filter(None, silent), "")
        return any(former.get(name, place) != place for name, place in self._places.items())

    async def stop(self) -> None:
        """Remove the watches, and wait until their threads have ended, unless a drive hangs."""
        watch, self._watch, self._mode = self._watch, None, "off"
        if watch is not None:
            with contextlib.suppress(TimeoutError):
                await Detached(1, "stop").run(lambda _: watch.stop(), detached.DRIVE_SECONDS)

    def _note_problem(self, problem: str) -> None:
        is_known = problem == WATCH_LIMIT and self._problem == _LIMIT_REACHED
        self._lacks_watches |= problem == WATCH_LIMIT
        if is_known:  # every folder reports the limit again at every resync
            return
        self._note_mode()
        _log.warning("watching: %s", problem)
        self._rescan_wanted.set()

    def _note_mode(self) -> None:
        if self._lacks_watches:
            self._mode, self._problem = "polling", _LIMIT_REACHED
        elif self._silent:
            self._mode, self._problem = "polling", _CHANGED_ELSEWHERE.format(self._silent)
        else:
            self._mode, self._problem = "events", ""

    def _seconds_to_rescan(self, indexer: Indexer) -> float:
        if indexer.is_in_error:
            return min(self._rescan_seconds, _SECONDS_BETWEEN_SCANS_AFTER_ERROR)
        if self._mode == "events":
            return self._rescan_seconds
        last = indexer.runs.last
        took = last.seconds if last else 0.0
        return min(self._rescan_seconds, max(_POLLING_LEAST_SECONDS, took / _POLLING_SHARE))

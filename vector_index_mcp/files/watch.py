"""The observer: turns the operating system's file events into dirty keys.

An event only says where to look. On Linux, `inotify` does the work; elsewhere watchdog's observer,
which sets its own watches. Only this module and `inotify` import watchdog.
"""

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver, ObservedWatch

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import RULES

if sys.platform == "linux":
    from vector_index_mcp.files.inotify import Inotify
else:
    Inotify = None

EVENTS_LOST = "events lost"
WATCH_LIMIT = "watch limit reached"
_LIMITS = frozenset({errno.EMFILE, errno.ENOSPC})  # the user's limit of instances, or of watches

_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
]
Report = Callable[[list[str]], None]


class Watch:
    """Watches the folders of an index, except ignored ones. Its methods block."""

    def __init__(
        self,
        folders: Folders,
        is_ignored_folder: Callable[[Folder, str], bool],
        on_dirty: Report,
        on_problem: Callable[[str], None],
        on_unfinished: Report | None = None,
    ) -> None:
        """Prepare; `start` begins.

        Args:
            folders: The folders of the index; after one is added or removed, the caller settles
                everywhere.
            is_ignored_folder: Returns whether the folder at a path in one of them needs no watch.
            on_dirty: Called on the observer's thread with keys, and with RULES. If a folder was
                made, deleted or moved, only its own key is reported.
            on_problem: Called on any thread with EVENTS_LOST or WATCH_LIMIT.
            on_unfinished: Called like `on_dirty`, with files that are being written and not closed
                yet; None to report these to `on_dirty` as well.
        """
        self._folders = folders
        self._is_ignored_folder = is_ignored_folder
        self._on_dirty = on_dirty
        self._on_problem = on_problem
        self._on_unfinished = on_unfinished or on_dirty
        self._observer: Inotify | BaseObserver | None = None
        self._scheduled: dict[str, ObservedWatch] = {}  # by path, with watchdog's own observer

    def start(self, signs: Iterable[Path] = ()) -> None:
        """Set the watches.

        Args:
            signs: Files anywhere; if one of them changes, RULES is reported.

        Raises:
            ProjectError: If the system gives us no watches; the message says what to do.
        """
        try:
            self._observer = self._started(signs)
        except RuntimeError as error:  # there are as many threads as the system allows
            raise ProjectError(
                f"the folder cannot be watched ({error}); changes are found by polling meanwhile"
            ) from error
        except OSError as error:
            limits = "raise fs.inotify.max_user_instances and max_user_watches; "
            raise ProjectError(
                f"the folder cannot be watched ({error.strerror or error}); "
                f"{limits if error.errno in _LIMITS else ''}changes are found by polling meanwhile"
            ) from error

    @property
    def is_settled(self) -> bool:
        """Whether no event since the last `settle` needs another one."""
        observer = self._observer
        return Inotify is None or not isinstance(observer, Inotify) or observer.is_settled

    def settle(self, *, everywhere: bool = False, signs: Iterable[Path] | None = None) -> list[str]:
        """Make the watches match the folders that exist now.

        Call this after `on_dirty` and before looking at the disk: later changes are then reported.

        Args:
            everywhere: Whether to check all folders, because other folders may be ignored now or
                events were lost; otherwise only folders that an event was about.
            signs: See `start`; None if they are unchanged.

        Returns:
            The keys at which another folder lies than at the last call.
        """
        observer = self._observer  # once: another thread may stop us
        if isinstance(observer, BaseObserver) and everywhere:
            self._schedule(observer)
        if Inotify is None or not isinstance(observer, Inotify):
            return []
        if signs is not None:
            observer.look_out_for(map(str, signs))
        try:
            others = observer.settle_everything() if everywhere else observer.settle()
        except OSError as error:
            if error.errno in _LIMITS:  # if the folder is out of reach, a scan will find that
                self._on_problem(WATCH_LIMIT)
            return []
        return self._keys_of(others)

    @property
    def is_alive(self) -> bool:
        """Whether events are still being delivered."""
        observer = self._observer
        if observer is None:
            return False
        if isinstance(observer, BaseObserver):
            return all(thread.is_alive() for thread in (observer, *observer.emitters))
        return observer.is_watching

    def stop(self) -> None:
        """Remove the watches and end the threads."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _started(self, signs: Iterable[Path]) -> "Inotify | BaseObserver":
        if Inotify is None:
            from watchdog.observers import Observer

            observer = Observer()
            self._schedule(observer)
            observer.start()
            return observer
        watches = Inotify(
            lambda: [os.fsencode(folder.path) for folder in self._folders],
            self._prunes,
            self._report_paths,
            lambda: self._on_problem(EVENTS_LOST),
            lambda: self._on_problem(WATCH_LIMIT),
        )
        watches.start()
        try:
            watches.settle_everything()
            watches.look_out_for(map(str, signs))
        except OSError:
            watches.stop()
            watches.join()
            raise
        return watches

    def _schedule(self, observer: BaseObserver) -> None:
        """Let watchdog's own observer watch the index's current folders, and no others."""
        wanted = {str(folder.path) for folder in self._folders}
        for path in self._scheduled.keys() - wanted:
            observer.unschedule(self._scheduled.pop(path))
        for path in wanted - self._scheduled.keys():
            with contextlib.suppress(OSError):  # it is gone; others look for it every second
                self._scheduled[path] = observer.schedule(
                    _Handler(self._report_event), path, recursive=True, event_filter=_EVENTS
                )

    def _prunes(self, folder: bytes) -> bool:
        path = os.fsdecode(folder)
        return all(self._is_ignored_folder(each, at) for each, at in self._homes_of(path))

    def _report_paths(
        self, dirty: Collection[bytes], unfinished: Collection[bytes], is_sign_seen: bool
    ) -> None:
        self._report([*self._keys_of(dirty), *([RULES] if is_sign_seen else [])], self._on_dirty)
        self._report(self._keys_of(unfinished), self._on_unfinished)

    def _report_event(self, event: FileSystemEvent) -> None:
        # Watchdog's observer also reports events below ignored folders; they are dropped here.
        keys = [
            folder.key_of(path)
            for place in (event.src_path, event.dest_path)
            if place
            for folder, path in self._homes_of(os.fsdecode(place))
            if not self._is_ignored_folder(folder, path.rpartition("/")[0])
        ]
        self._report(keys, self._on_dirty)

    def _report(self, keys: list[str], report: Report) -> None:
        if keys:
            report(keys)

    def _keys_of(self, places: Iterable[bytes]) -> list[str]:
        """Return the keys of `places`; where folders overlap, a place has several."""
        return [
            folder.key_of(path)
            for place in places
            for folder, path in self._homes_of(os.fsdecode(place))
        ]

    def _homes_of(self, place: str) -> Iterator[tuple[Folder, str]]:
        """Yield the folders that `place` lies in, and its path relative to each."""
        for folder in self._folders:
            top = str(folder.path)
            if place == top:
                yield folder, ""
            elif place.startswith(start := top.rstrip(os.sep) + os.sep):
                yield folder, place[len(start) :].replace(os.sep, "/")


class _Handler(FileSystemEventHandler):
    def __init__(self, on_event: Callable[[FileSystemEvent], None]) -> None:
        self._on_event = on_event

    def dispatch(self, event: FileSystemEvent) -> None:
        self._on_event(event)

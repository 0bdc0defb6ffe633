"""The observer: the operating system's file events as dirty paths.

An event only says where to look. On Linux `inotify` does the work; elsewhere watchdog's observer
does, which sets its own watches. These two are the only importers of watchdog.
"""

import os
import sys
from collections.abc import Callable, Collection, Iterable
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
from watchdog.observers.api import BaseObserver

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.ignore import RULES

if sys.platform == "linux":
    from vector_index_mcp.files.inotify import Folders
else:
    Folders = None

EVENTS_LOST = "events lost"
WATCH_LIMIT = "watch limit reached"

_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
]
Tell = Callable[[list[str]], None]


class Watch:
    """Watches the folders of `root` that are not ignored. Its methods block."""

    def __init__(
        self,
        root: Path,
        is_ignored_folder: Callable[[str], bool],
        on_dirty: Tell,
        on_problem: Callable[[str], None],
        on_unfinished: Tell | None = None,
    ) -> None:
        """Prepare; `start` begins.

        Args:
            root: An existing folder.
            is_ignored_folder: Whether the folder at a root-relative path needs no watching.
            on_dirty: Called on a thread of the observer with root-relative paths, and with RULES.
                Of a folder that came, went or was moved, only its own path is told.
            on_problem: Called like that with EVENTS_LOST or WATCH_LIMIT.
            on_unfinished: Called like `on_dirty`, with files that somebody writes into and has not
                closed yet; None if these are as good as others.
        """
        self._root = str(root)
        self._is_ignored_folder = is_ignored_folder
        self._on_dirty = on_dirty
        self._on_problem = on_problem
        self._on_unfinished = on_unfinished or on_dirty
        self._observer: Folders | BaseObserver | None = None

    def start(self, signs: Iterable[Path] = ()) -> None:
        """Set the watches.

        Args:
            signs: Files anywhere; when one of them changes, RULES is told.

        Raises:
            ProjectError: If the system gives us no watches; the message says what to do.
        """
        try:
            self._observer = self._started(signs)
        except OSError as error:
            raise ProjectError(
                f"the folder cannot be watched ({error.strerror or error}); "
                "raise fs.inotify.max_user_instances and max_user_watches, changes are found by "
                "polling meanwhile"
            ) from error

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to `settle` but what the caller knows of."""
        observer = self._observer
        return Folders is None or not isinstance(observer, Folders) or observer.is_settled

    def settle(self, *, everywhere: bool = False, signs: Iterable[Path] | None = None) -> list[str]:
        """Make the watches match the folders there are now.

        To be called after `on_dirty`, before whoever was told looks at the disk: what happens
        later is told then.

        Args:
            everywhere: Whether other folders may have become ignored, or events were lost;
                otherwise only folders are looked at of which an event told.
            signs: As in `start`; None if they are the same.

        Returns:
            Where there are other folders than at the last time, whatever the files in them say.
        """
        folders = self._observer  # once: another thread may stop us
        if Folders is None or not isinstance(folders, Folders):
            return []
        if signs is not None:
            folders.look_out_for(map(str, signs))
        try:
            others = folders.settle_everything() if everywhere else folders.settle()
        except OSError:  # the project is gone: a scan will tell
            return []
        return self._shown(others)

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

    def _started(self, signs: Iterable[Path]) -> "Folders | BaseObserver":
        if Folders is None:
            from watchdog.observers import Observer

            observer = Observer()
            handler = _Handler(self._tell_event)
            observer.schedule(handler, self._root, recursive=True, event_filter=_EVENTS)
            observer.start()
            return observer
        folders = Folders(
            self._root,
            self._prunes,
            self._tell_of_folders,
            lambda: self._on_problem(EVENTS_LOST),
            lambda: self._on_problem(WATCH_LIMIT),
        )
        folders.start()
        try:
            folders.settle_everything()
        except OSError:
            folders.stop()
            folders.join()
            raise
        folders.look_out_for(map(str, signs))
        return folders

    def _prunes(self, folder: bytes) -> bool:
        path = self._relative(os.fsdecode(folder))
        return path is None or self._is_ignored_folder(path)

    def _tell_of_folders(
        self, dirty: Collection[bytes], unfinished: Collection[bytes], is_sign_seen: bool
    ) -> None:
        self._tell([*self._shown(dirty), *([RULES] if is_sign_seen else [])], self._on_dirty)
        self._tell(self._shown(unfinished), self._on_unfinished)

    def _tell_event(self, event: FileSystemEvent) -> None:
        paths = self._shown(os.fsencode(p) for p in (event.src_path, event.dest_path) if p)
        # Where watches cannot be pruned, the events below ignored folders end here.
        shown = [path for path in paths if not self._is_ignored_folder(path.rpartition("/")[0])]
        self._tell(shown, self._on_dirty)

    def _tell(self, paths: list[str], whom: Tell) -> None:
        if paths:
            whom(paths)

    def _shown(self, paths: Iterable[bytes]) -> list[str]:
        relative = (self._relative(os.fsdecode(path)) for path in paths)
        return [path for path in relative if path is not None]

    def _relative(self, path: str) -> str | None:
        if path == self._root:
            return ""
        start = self._root.rstrip(os.sep) + os.sep
        return path[len(start) :].replace(os.sep, "/") if path.startswith(start) else None


class _Handler(FileSystemEventHandler):
    def __init__(self, on_event: Callable[[FileSystemEvent], None]) -> None:
        self._on_event = on_event

    def dispatch(self, event: FileSystemEvent) -> None:
        self._on_event(event)

"""The observer: the operating system's file events as dirty paths. The only importer of watchdog.

An event only says where to look. On Linux this module extends watchdog's inotify observer, for
five measured reasons (watchdog 7.1.0): it sets watches below ignored folders, too; after an
overflow of the kernel's queue it removes and re-adds every watch, which overflows the queue again,
for ever, from about 16,000 folders on; it does not tell that events were lost; it passes over a
reached watch limit in silence; and its reading thread dies of a folder moved away, made again and
deleted in both places. The extension uses watchdog's private names, which is why its
version is bounded.
"""

import contextlib
import ctypes
import errno
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileClosedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import BaseObserver

from vector_index_mcp.errors import ProjectError

# Without a filter our own reads are events, and they alone can overflow the kernel's queue.
_EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    # Only Linux tells when a writer is done.
    FileClosedEvent if sys.platform == "linux" else FileModifiedEvent,
]
EVENTS_LOST = "events lost"
WATCH_LIMIT = "watch limit reached"


class Watch:
    """Watches the folders of `root` that are not ignored. Its methods block."""

    def __init__(
        self,
        root: Path,
        is_ignored_folder: Callable[[str], bool],
        on_dirty: Callable[[list[str]], None],
        on_problem: Callable[[str], None],
    ) -> None:
        """Prepare; `start` begins.

        Args:
            root: An existing folder.
            is_ignored_folder: Whether the folder at a root-relative path needs no watching.
            on_dirty: Called on a thread of the observer with root-relative paths.
            on_problem: Called like that with EVENTS_LOST or WATCH_LIMIT.
        """
        self._root = str(root)
        self._is_ignored_folder = is_ignored_folder
        self._on_dirty = on_dirty
        self._on_problem = on_problem
        self._observer: BaseObserver | None = None

    def start(self) -> None:
        """Set the watches.

        Raises:
            ProjectError: If the system gives us no watches; the message says what to do.
        """
        observer = None
        try:
            observer = self._make_observer()
            observer.schedule(
                _Handler(self._dirty_event), self._root, recursive=True, event_filter=_EVENTS
            )
            observer.start()
        except OSError as error:
            if observer is not None:
                observer.stop()  # the thread that reads the kernel's queue runs already
            raise ProjectError(
                f"the folder cannot be watched ({error.strerror or error}); "
                "raise fs.inotify.max_user_instances and max_user_watches, changes are found by "
                "polling meanwhile"
            ) from error
        self._observer = observer

    def resync(self) -> None:
        """Make the watches match the folders there are now."""
        observer = self._observer  # once: another thread may stop us
        if _PruningObserver is not None and isinstance(observer, _PruningObserver):
            with contextlib.suppress(OSError):  # the project is gone: a scan will tell
                observer.resync()

    @property
    def is_alive(self) -> bool:
        """Whether events are still being delivered."""
        observer = self._observer
        if observer is None:
            return False
        threads = [observer, *observer.emitters]
        if _PruningObserver is not None and isinstance(observer, _PruningObserver):
            threads.append(observer.reader)
        return all(thread.is_alive() for thread in threads)

    def stop(self) -> None:
        """Remove the watches and end the threads."""
        observer, self._observer = self._observer, None
        if observer is not None:
            observer.stop()
            observer.join()

    def _make_observer(self) -> BaseObserver:
        if _PruningObserver is not None:
            return _PruningObserver(self._prunes, self._on_problem)
        from watchdog.observers import Observer

        return Observer()

    def _prunes(self, folder: bytes) -> bool:
        path = self._relative(os.fsdecode(folder))
        return path is None or self._is_ignored_folder(path)

    def _dirty_event(self, event: FileSystemEvent) -> None:
        paths = [self._relative(os.fsdecode(p)) for p in (event.src_path, event.dest_path) if p]
        # Where watches cannot be pruned, the events below ignored folders end here.
        dirty = [
            path
            for path in paths
            if path is not None and not self._is_ignored_folder(path.rpartition("/")[0])
        ]
        if dirty:
            self._on_dirty(dirty)

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


if sys.platform == "linux":
    from watchdog.observers.inotify import InotifyEmitter, InotifyWatchGroup
    from watchdog.observers.inotify_c import (
        InotifyEvent,
        InotifyFD,
        WatchDescriptor,
        inotify_add_watch,
    )
    from watchdog.observers.inotify_c import Watch as _InotifyWatch

    def _prune_nothing(folder: bytes) -> bool:
        return False

    def _tell_nobody(problem: str) -> None:
        pass

    @dataclass
    class _PruningWatchGroup(InotifyWatchGroup):
        """The watches of one root. The overridden methods run with watchdog's lock held."""

        prunes: Callable[[bytes], bool] = field(default=_prune_nothing)
        on_problem: Callable[[str], None] = field(default=_tell_nobody)

        def resync(self) -> None:
            """Watch every folder that should be watched and no other."""
            with self._lock:
                if self.is_active:
                    self._resync()

        def on_queue_overflow(self) -> None:
            """Events were lost: adding watches again is silent, removing them first is not."""
            with self._lock:
                if not self.is_active:
                    return
                self._move_event_grouper.discard_pending_events()
                with contextlib.suppress(OSError):  # the project is gone: a scan will tell
                    self._resync()
            self.on_problem(EVENTS_LOST)

        def _resync(self) -> None:
            wanted = set()
            for folder in self._folders(self.path):
                wanted.add(folder)
                self._add_callback(folder)
            by_path = self._active_callbacks_by_path
            stale = [
                watch
                for watch, folder in self._active_callbacks_by_watch.items()
                # The second: a folder that was moved out of the project, and made again.
                if folder not in wanted or by_path.get(folder) != watch
            ]
            if stale:
                self._remove_callbacks(stale)

        def _remove_watch_internally(self, wd: WatchDescriptor) -> None:
            """As watchdog's, but at peace with several watches that had the same path."""
            path = self._active_callbacks_by_watch.pop(wd, None)
            if path is not None and self._active_callbacks_by_path.get(path) == wd:
                del self._active_callbacks_by_path[path]

        def _add_callback(self, path: bytes) -> None:
            inotify = self._inotify_fd
            with inotify._lock:  # set and register as one, or the first events find nobody
                number = inotify_add_watch(inotify._inotify_fd, path, self.event_mask)
                if number != -1:
                    watch = inotify._watch_for_wd.get(number)
                    if watch is None:
                        watch = _InotifyWatch(number, self.event_mask, path)
                        inotify._watch_for_wd[number] = watch
                    watch.callbacks[self._id] = self._callback
            if number == -1:
                self._note_failure(path, ctypes.get_errno())
                return
            former = self._active_callbacks_by_watch.get(number)
            if former not in (None, path) and self._active_callbacks_by_path.get(former) == number:
                del self._active_callbacks_by_path[former]  # the folder was renamed
            self._active_callbacks_by_path[path] = number
            self._active_callbacks_by_watch[number] = path

        def _note_failure(self, path: bytes, code: int) -> None:
            if path == self.path:
                raise OSError(code, os.strerror(code), os.fsdecode(path))
            if code == errno.ENOSPC:
                self.on_problem(WATCH_LIMIT)

        def _add_all_callbacks(self, path: bytes) -> None:
            if path != self.path and self.prunes(path):
                return
            for folder in self._folders(path):
                self._add_callback(folder)

        def _recursive_simulate(self, src_path: bytes) -> list[InotifyEvent]:
            return [] if self.prunes(src_path) else super()._recursive_simulate(src_path)

        def _folders(self, top: bytes) -> Iterator[bytes]:
            """`top` and the folders below that are not ignored, each before what it holds."""
            yield top
            pending = [top] if self.is_recursive else []
            while pending:
                try:
                    with os.scandir(pending.pop()) as entries:
                        below = [e.path for e in entries if e.is_dir(follow_symlinks=False)]
                except OSError:
                    continue
                for folder in below:
                    if not self.prunes(folder):
                        yield folder  # watched before it is listed: nothing made later is missed
                        pending.append(folder)

    class _PruningObserver(BaseObserver):
        """watchdog's inotify observer with the watch group above."""

        def __init__(
            self, prunes: Callable[[bytes], bool], on_problem: Callable[[str], None]
        ) -> None:
            self.reader = InotifyFD()
            """The thread that reads the kernel's queue."""
            self.reader.start()

            class Emitter(InotifyEmitter):
                def on_thread_start(self) -> None:
                    self._inotify = _PruningWatchGroup(
                        self._inotify_fd,
                        os.fsencode(self.watch.path),
                        is_recursive=self.watch.is_recursive,
                        event_mask=self.get_event_mask_from_filter(),
                        follow_symlink=False,
                        prunes=prunes,
                        on_problem=on_problem,
                    )

            super().__init__(Emitter, timeout=1.0, inotify_fd=self.reader)

        def resync(self) -> None:
            """Make the watches match the folders there are now."""
            for emitter in list(self.emitters):
                group = getattr(emitter, "_inotify", None)
                if group is not None:
                    group.resync()

        def on_thread_stop(self) -> None:
            """End the thread that reads the kernel's queue, too."""
            super().on_thread_stop()
            self.reader.stop()
            self.reader.join()

else:
    _PruningObserver = None

"""Watches the folders of an index with inotify. Linux only; a part of `watch`.

The kernel watches folders, not paths. A folder that was moved goes on reporting events, but not
where it is now. If folders are exchanged, moved twice, or moved away while another takes their
name, the moves cannot be reconstructed from events. So this module does not try: an event about a
folder only marks its path as unsettled, and `settle` reads the disk and corrects the watches there.
A caller that receives a path, then settles, then reads the disk, misses nothing: changes after the
watch was set are events, and earlier ones are on the disk.

From watchdog, this uses only the thread that reads the kernel's queue. Watchdog's own bookkeeping
(in 7.1.0) confuses the names of exchanged folders for good, watches ignored folders, delays every
event for half a second after a file was moved away, and overflows the queue again after an
overflow. `InotifyFD` is private, so the version of watchdog is bounded.
"""

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from watchdog.observers.inotify_c import (
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
    inotify_add_watch,
    inotify_rm_watch,
)

_NAMES = (
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_DELETE
    | InotifyConstants.IN_MOVED_FROM
    | InotifyConstants.IN_MOVED_TO
)
# A writer has closed a file; a writer goes on, or truncated it by its path; times or permissions
# changed. Not that a file was opened or read: our own reads alone could overflow the queue.
_CONTENTS = (
    InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_MODIFY | InotifyConstants.IN_ATTRIB
)
_SELF = InotifyConstants.IN_DELETE_SELF | InotifyConstants.IN_MOVE_SELF
_MASK = Mask(_NAMES | _CONTENTS | _SELF | InotifyConstants.IN_ONLYDIR)
# If we pause, the kernel merges the events of a file that is written all the time. A save, which is
# only a few writes, is not delayed.
_WRITES_OF_A_SAVE = 8
_WRITING_PAUSE_SECONDS = 0.02


class Inotify(InotifyFD):
    """The watches of one index, and the thread that reads their events.

    A folder that lies in several folders of the index has one watch.
    """

    def __init__(
        self,
        roots: Callable[[], Iterable[bytes]],
        prunes: Callable[[bytes], bool],
        report: Callable[[Collection[bytes], Collection[bytes], bool], None],
        on_lost: Callable[[], None],
        on_limit: Callable[[], None],
    ) -> None:
        """Prepare; `start` begins to read, `settle_everything` sets the watches.

        Args:
            roots: Returns the folders of the index as they are now.
            prunes: Returns whether the folder at a path needs no watch.
            report: Called on this thread with the paths at which something happened, the paths of
                files that are still being written, and whether a file of `look_out_for` changed.
            on_lost: Called on this thread if the kernel's queue was full.
            on_limit: Called by `settle` if the system allows no more watches.
        """
        super().__init__()
        self._list_roots = roots
        self._roots = frozenset(roots())
        self._prunes = prunes
        self._report = report
        self._on_lost = on_lost
        self._on_limit = on_limit
        # Watchdog's lock protects these and the descriptor.
        self._path_of: dict[WatchDescriptor, bytes] = {}
        self._number_of: dict[bytes, WatchDescriptor] = {}
        self._signs: dict[WatchDescriptor, set[bytes]] = {}
        self._files: tuple[bytes, ...] = ()
        self._are_signs_old = False
        self._unsettled: set[bytes] = set()
        self._settling = threading.Lock()  # protects `_others`
        self._code = errno.ENOENT  # of the last root that could not be watched
        self._others: set[bytes] = set()
        self._dirty: dict[bytes, None] = {}
        self._unfinished: dict[bytes, None] = {}
        self._is_sign_seen = False

    @property
    def is_watching(self) -> bool:
        """Whether events of at least one of the index's folders are being delivered."""
        return self.is_alive() and any(root in self._number_of for root in self._roots)

    @property
    def is_settled(self) -> bool:
        """Whether no event since the last `settle` was about a folder or a file elsewhere."""
        return not self._unsettled and not self._are_signs_old

    def start(self) -> None:
        """Begin to read; close everything if there can be no thread for it.

        Raises:
            RuntimeError: If there are as many threads as the system allows.
        """
        try:
            super().start()
        except RuntimeError:
            self._is_reading = False  # else `stop` leaves the closing to the thread
            self.stop()
            raise

    # -- what the kernel reports -----------------------------------------------------------

    def run(self) -> None:
        """Read events until stopped."""
        writes = 0  # rounds in a row with unfinished writes only
        while self.should_keep_running():
            for event in self.read_events():
                self.handle_event(event)
            writes = 0 if self._dirty else writes + 1
            self._hand_over()
            if writes > _WRITES_OF_A_SAVE:
                self.stopped_event.wait(_WRITING_PAUSE_SECONDS)

    def handle_event(self, event: InotifyEvent) -> None:
        """Note where something happened."""
        if event.is_queue_overflow:
            with self._lock:
                self._unsettled |= self._roots
            self._on_lost()
            return
        with self._lock:
            self._note_sign(event)
            if event.is_ignored:
                self._forget(event.wd)
                return
            folder = self._path_of.get(event.wd)
            if folder is not None:
                self._note(folder, event)

    def _note_sign(self, event: InotifyEvent) -> None:
        names = self._signs.get(event.wd)
        # An event without a name is about the folder itself, which must then be found again.
        is_end = event.is_ignored or bool(event.mask & _SELF)
        if names is not None and (event.name in names or is_end):
            self._is_sign_seen = self._are_signs_old = True

    def _note(self, folder: bytes, event: InotifyEvent) -> None:
        if not event.name:
            self._note_end(folder, event)
            return
        path = folder + b"/" + event.name
        if event.mask & InotifyConstants.IN_ISDIR:
            self._unsettled.add(path)
        if event.mask & InotifyConstants.IN_MODIFY:
            self._unfinished[path] = None
        else:
            self._dirty[path] = None

    def _note_end(self, folder: bytes, event: InotifyEvent) -> None:
        """Note the end of a root or a mount; for other folders, the folder above reports it."""
        is_root_s = folder in self._roots and bool(event.mask & _SELF)
        if is_root_s or event.mask & InotifyConstants.IN_UNMOUNT:
            self._unsettled.add(folder)
            self._dirty[folder] = None
        if event.is_delete_self:
            self._forget(event.wd)

    def _hand_over(self) -> None:
        dirty, self._dirty = self._dirty, {}
        unfinished, self._unfinished = self._unfinished, {}
        is_sign_seen, self._is_sign_seen = self._is_sign_seen, False
        unfinished = {path: None for path in unfinished if path not in dirty}
        if dirty or unfinished or is_sign_seen:
            self._report(dirty, unfinished, is_sign_seen)

    # -- setting watches -------------------------------------------------------------------

    def settle_everything(self) -> frozenset[bytes]:
        """Watch every folder that should be watched, and no other.

        Returns:
            See `settle`.

        Raises:
            OSError: If none of the index's folders can be watched.
        """
        with self._lock:
            former, self._roots = self._roots, frozenset(self._list_roots())
            self._unsettled |= self._roots | former
        return self.settle()

    def settle(self) -> frozenset[bytes]:
        """Make the watches match the disk wherever an event was about a folder.

        Returns:
            The paths at which another folder lies than at the last call, without paths below them.

        Raises:
            OSError: See `settle_everything`.
        """
        if self._are_signs_old:
            self._set_signs()
        if not self._unsettled:
            return frozenset()
        with self._settling:
            with self._lock:
                tops = _topmost(self._unsettled)
                self._unsettled.clear()
                self._others.clear()
            found: set[bytes] = set()
            # A root may lie in another root, even in a folder that the other one ignores.
            starts = {*tops, *(root for root in self._roots if _lies_in(root, tops))}
            for start in starts:
                found.update(self._watch_from(start))
            if self._roots and self._roots <= starts and found.isdisjoint(self._roots):
                raise OSError(self._code, os.strerror(self._code))
            with self._lock:
                others = [path for path in self._number_of if path not in found]
                for path in others:
                    if not self._closed and _lies_in(path, tops):
                        self._drop(self._number_of[path])
            return _topmost(self._others)

    def _watch_from(self, top: bytes) -> Iterator[bytes]:
        """Watch `top` and the folders below that are not ignored; yield the folders watched."""
        if top not in self._roots and self._prunes(top):
            return
        pending = [top]
        while pending:
            folder = pending.pop()
            # The watch is set before the folder is listed, so nothing made later is missed.
            if not self._add(folder):
                continue
            yield folder
            try:
                with os.scandir(folder) as entries:
                    below = [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
            except OSError:
                continue
            pending += [path for path in below if not self._prunes(path)]

    def _add(self, path: bytes) -> bool:
        with self._lock:  # set and registered together, or the first events would be lost
            if self._closed:
                return False
            # Links are followed only for the index's own folders.
            mask = _MASK if path in self._roots else Mask(_MASK | InotifyConstants.IN_DONT_FOLLOW)
            number = inotify_add_watch(self._inotify_fd, path, mask)
            if number != -1:
                self._register(path, number)
                return True
            code = ctypes.get_errno()
        if path in self._roots:
            self._code = code
        if code == errno.ENOSPC and self._roots != {path}:
            self._on_limit()
        return False

    def _register(self, path: bytes, number: WatchDescriptor) -> None:
        former = self._path_of.get(number)
        if former is not None and former != path and self._number_of.get(former) == number:
            del self._number_of[former]  # the folder was moved
        before = self._number_of.get(path)
        if before is not None and before != number:
            self._drop(before)  # another folder had this path; its new place is settled as well
        if before != number:
            self._others.add(path)
        self._path_of[number], self._number_of[path] = path, number

    def _drop(self, number: WatchDescriptor) -> None:
        path = self._path_of.pop(number, None)
        if path is not None and self._number_of.get(path) == number:
            del self._number_of[path]
        if number not in self._signs:
            inotify_rm_watch(self._inotify_fd, number)

    def _forget(self, number: WatchDescriptor) -> None:
        """Remove a watch that the kernel has removed."""
        path = self._path_of.pop(number, None)
        if path is not None and self._number_of.get(path) == number:
            del self._number_of[path]
        self._signs.pop(number, None)

    # -- files elsewhere -------------------------------------------------------------------

    def look_out_for(self, files: Iterable[str]) -> None:
        """Report when one of `files`, which lie elsewhere, changes; replaces the earlier list."""
        self._files = tuple(map(os.fsencode, files))
        self._set_signs()

    def _set_signs(self) -> None:
        self._are_signs_old = False
        names: dict[bytes, set[bytes]] = {}
        for file in self._files:
            folder, name = _nearest(file)
            names.setdefault(folder, set()).add(name)
        with self._lock:
            if self._closed:
                return
            signs = self._watched_for(names)
            former, self._signs = self._signs, signs
            for number in former:
                if number not in signs and number not in self._path_of:
                    inotify_rm_watch(self._inotify_fd, number)

    def _watched_for(self, names: Mapping[bytes, set[bytes]]) -> dict[WatchDescriptor, set[bytes]]:
        numbers: dict[WatchDescriptor, set[bytes]] = {}  # several paths may lead to one folder
        for folder, wanted in names.items():
            number = inotify_add_watch(self._inotify_fd, folder, _MASK)
            if number != -1:  # otherwise a sweep finds the change
                numbers.setdefault(number, set()).update(wanted)
        return numbers


def _nearest(file: bytes) -> tuple[bytes, bytes]:
    """Return the folder that reports changes of `file`, and the name in it.

    If the file's folder does not exist, that is the nearest folder above that does.
    """
    folder, name = os.path.split(file)
    while not os.path.isdir(folder) and folder != _above(folder):
        folder, name = os.path.split(folder)
    return folder, name


def _above(path: bytes) -> bytes:
    return os.path.split(path)[0]


def _topmost(paths: Collection[bytes]) -> frozenset[bytes]:
    """Return the `paths` that do not lie below another one."""
    every = frozenset(paths)
    return frozenset(path for path in every if not _lies_in(_above(path), every))


def _lies_in(path: bytes, folders: Collection[bytes]) -> bool:
    """Return whether `path` is one of `folders` or lies below one."""
    while path not in folders:
        above = _above(path)
        if above == path:
            return False
        path = above
    return True

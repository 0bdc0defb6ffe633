"""Makes a change of the store's files in steps that can be undone.

A file that somebody saves while the change is being made must not be lost: whoever makes a plan
notes the states of its files before they are read, and a step that meets another state raises
`EditedMeanwhile`, with all steps undone. Nor does undoing replace or remove what somebody has saved
since: it stays, and what cannot be put back is kept in the work folder.
"""

import contextlib
import errno
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.layout import PROJECTS
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import WORK, Change, Disk, reported
from vector_index_mcp.notes.store.steps import (
    KEPT,
    OLD,
    PART,
    Copied,
    copy_of_file,
    mode_of,
    parted,
    put_back,
    remove,
    status_of,
    token,
    write,
)

_log = logging.getLogger(__name__)

_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_MODE = 0o644
_MOST_NAMED = 3


class EditedMeanwhile(Refusal):
    """A file was saved, made or removed since its state was noted; nothing was changed."""

    def __init__(self, path: str) -> None:
        words = f"{path} was saved again and again meanwhile; nothing was changed, try again"
        super().__init__(Code.FILE_SYSTEM_ERROR, words, path=path)


@dataclass(frozen=True, slots=True)
class State:
    """What differs once a file has been saved: in place, or by moving another one there.

    Not `files.state`: the time of the inode changes as well when we link or move the file.
    """

    inode: int
    size: int
    """In bytes."""
    modified: int
    """In nanoseconds."""


States = Mapping[str, State | None]
"""The states of files by path; None for a file that does not exist."""


def states_of(disk: Disk, paths: Iterable[str]) -> dict[str, State | None]:
    """Return the present states of some files, and of all files below some folders.

    Raises:
        Refusal: If the system refuses to look at one.
    """
    files = (file for p in paths for file in (disk.files(p) if disk.is_folder(p) else [p]))
    return {file: _state_of(disk.status(file)) for file in files}


def _state_of(status: os.stat_result | None) -> State | None:
    return status and State(status.st_ino, status.st_size, status.st_mtime_ns)


def apply(disk: Disk, change: Change, seen: States) -> "Applied":
    """Make a change. If a step fails, the earlier steps are undone.

    Args:
        disk: The store's files.
        change: What to change.
        seen: The states of all its files before they were read; a file that it lacks is missing.

    Raises:
        EditedMeanwhile: If a file has another state.
        Refusal: If a step fails.
    """
    applied = Applied(disk, seen)
    with or_undone([applied]):
        inner = {path: data for path, data in change.puts.items() if change.has_in_folder(path)}
        if inner:
            applied.make(change.folder, inner)
        for path, data in change.puts.items():
            if path not in inner:
                applied.put(path, data)
        for path, copied in change.copies.items():
            applied.put(path, copied)
        for path in change.drops:
            applied.drop(path)
        if change.empties:
            applied.drop_empty({parted(path)[0] for path in change.drops})
    return applied


@contextmanager
def or_undone(made: Sequence["Applied"]) -> Iterator[None]:
    """Undo changes, the last one first, if the context fails.

    Raises:
        Refusal: In place of one from the context, if files could not be put back.
    """
    try:
        yield
    except BaseException as error:
        others = sorted(path for each in reversed(made) for path in each.undo())
        # After an edit the change is tried again, and meets it.
        if others and isinstance(error, Refusal) and not isinstance(error, EditedMeanwhile):
            raise Refusal(
                error.code,
                f"{error}; but {', '.join(others[:_MOST_NAMED])} was saved meanwhile, or cannot be "
                f"written, and stays; what was there before is in the history, or in {WORK} under "
                f"a name that ends with {KEPT}",
                **error.context,
            ) from error
        raise


@dataclass(frozen=True, slots=True)
class _Step:
    path: str
    undo: Callable[[], bool]
    """Undoes the step, and returns whether all is as before."""
    old: str = ""
    """The name in the work folder of what it replaced or removed."""


class Applied:
    """The steps of a change that was made. All can be undone until `finish` is called.

    New content is first written to a work folder inside `.git`, and moved into place once it is on
    the disk. The work folder keeps the files that were replaced until the change is committed.
    """

    def __init__(self, disk: Disk, seen: States) -> None:
        self._disk = disk
        self._seen = seen
        self._undoing: list[_Step] = []
        self._left: dict[str, str] = {}  # paths, by the names of what lay there in the work folder

    def put(self, path: str, data: bytes | Copied) -> None:
        """Replace a file's content, or create the file."""
        if not isinstance(data, Copied) and len(data) > LARGEST_FILE_BYTES:
            raise Refusal(
                Code.INVALID_CONTENT,
                f"{path} would have more than {LARGEST_FILE_BYTES:,} bytes, the most that is read; "
                "make it smaller",
                path=path,
            )
        above, name = parted(path)
        with reported(path), self._disk.work() as work:
            part, old = token(PART), token(OLD)
            with self._folder(above) as folder:
                mode = mode_of(folder, name)
                try:
                    write(work, part, data, mode or _MODE)
                    if mode is not None:
                        self._keep(path, folder, work, old, mode)
                        self._left[old] = path
                    # What is saved between this look and the move, two system calls, is lost.
                    self._check(states_of(self._disk, [path]))
                    ours = _state_of(work.status(part))
                    work.move(part, folder, name)
                except BaseException:
                    with contextlib.suppress(OSError):
                        work.remove(part)
                    raise
                kept = old if mode is not None else ""
                self._undoing.append(_Step(path, lambda: self._unput(path, kept, ours), kept))
                folder.sync()

    def _keep(
        self, path: str, folder: beneath.Folder, work: beneath.Folder, old: str, mode: int
    ) -> None:
        """Keep a file under the name `old` in the work folder, for `undo`."""
        try:
            folder.link(parted(path)[1], work, old)
        except OSError:  # Android's file systems and exFAT have no hard links
            write(work, old, copy_of_file(folder, parted(path)[1]), mode)

    def make(self, path: str, files: Mapping[str, bytes]) -> None:
        """Create a folder together with all its files, in one step."""
        above, name = parted(path)
        with reported(path), self._disk.work() as work:
            part = token(PART)
            work.make(part)
            try:
                with beneath.opened(self._disk.root, f"{WORK}/{part}") as made:
                    for file, data in files.items():
                        write(made, file.removeprefix(f"{path}/"), data, _MODE)
                    made.sync()
                    ours = {each: _state_of(made.status(each)) for each in made.names()}
                with self._folder(above) as folder:
                    work.move(part, folder, name)
                    self._undoing.append(_Step(path, lambda: self._unmake(path, ours)))
                    folder.sync()
            except BaseException:
                remove(work, part)
                raise

    def drop(self, path: str) -> None:
        """Remove a file or a folder from the store."""
        above, name = parted(path)
        with reported(path), self._disk.work() as work, self._folder(above) as folder:
            old = token(OLD)
            folder.move(name, work, old)
            self._left[old] = path
            self._undoing.append(_Step(path, lambda: self._undrop(path, old), old))
            self._check(self._dropped(path, f"{WORK}/{old}"))
            folder.sync()

    def _dropped(self, path: str, old: str) -> States:
        """Return the states of the files that were dropped with `path`, which is `old` now."""
        lacking = (known for known in self._seen if known.startswith(f"{path}/"))
        found = states_of(self._disk, [old])
        return dict.fromkeys(lacking) | {f"{path}{f[len(old) :]}": s for f, s in found.items()}

    def _check(self, now: States) -> None:
        """Raise EditedMeanwhile if a file has another state than was noted."""
        for path, state in now.items():
            if self._seen.get(path) != state:
                raise EditedMeanwhile(path)

    def drop_empty(self, folders: Iterable[str]) -> None:
        """Remove those of `folders` that are empty, and parents that become empty.

        The folder of all projects stays.
        """
        pending = sorted(folders)
        while pending:
            path = pending.pop()
            above, name = parted(path)
            if path in {"", PROJECTS}:
                continue
            with reported(path), beneath.opened(self._disk.root, above) as folder:
                try:
                    folder.remove_folder(name)
                except OSError as error:
                    if error.errno in _NOT_EMPTY or beneath.tells_absence(error):
                        continue
                    raise
                self._undoing.append(_Step(path, partial(self._make_again, path)))
                folder.sync()
            pending.append(above)

    def undo(self) -> list[str]:
        """Undo all steps, the last one first; a step that cannot be undone stops no other.

        Return the files and folders that are not as before, since somebody has saved them, or the
        system refuses.
        """
        others = []
        while self._undoing:
            step = self._undoing.pop()
            try:
                if step.undo():
                    continue
            except (OSError, Refusal) as error:  # the store may have been moved away
                _log.warning("a change of the notes in %s stays: %s", self._disk.root, error)
            others.append(step.path)
            if step.old:
                self._keep_for_good(step.old)
        self.finish()
        return others

    def _keep_for_good(self, old: str) -> None:
        self._left.pop(old, None)
        with contextlib.suppress(OSError), self._disk.work() as work:
            work.replace(old, old.removesuffix(OLD) + KEPT)

    def finish(self) -> None:
        """Make the change final: delete what it replaced, unless somebody has written to it since.

        Who has a file open, or works in a folder, goes on to write there.
        """
        for old, path in list(self._left.items()):
            if self._is_written(old, path):
                _log.warning("what was written to %s meanwhile is kept in %s", path, WORK)
                self._keep_for_good(old)
        with contextlib.suppress(OSError), self._disk.work() as work:
            for name in self._left:
                remove(work, name)
        self._left.clear()
        self._undoing.clear()

    def _is_written(self, old: str, path: str) -> bool:
        """Return whether the file or folder, or a file in it, differs from its noted state.

        A copy tells nothing of it; a file system without hard links has those.
        """
        try:
            now = self._dropped(path, f"{WORK}/{old}")
        except Refusal:
            return False
        noted = {file: self._seen.get(file) for file, state in now.items() if state is not None}
        before, here = self._seen.get(path), now.get(path)
        is_copy = bool(before and here and before.inode != here.inode)
        return not is_copy and any(now[file] != state for file, state in noted.items())

    @contextmanager
    def _folder(self, path: str) -> Iterator[beneath.Folder]:
        """Open a folder; create it if it is missing, which `undo` reverts."""
        missing = []
        at = path
        while at and self._disk.status(at) is None:
            missing.append(at)
            at = parted(at)[0]
        with beneath.opened(self._disk.root, path, is_made=True) as folder:
            if missing:
                self._undoing.append(_Step(path, lambda: self._remove_empty(missing)))
                with beneath.opened(self._disk.root, at) as above:
                    above.sync()
            yield folder

    def _unput(self, path: str, old: str, ours: State | None) -> bool:
        above, name = parted(path)
        if not old and self._disk.status(path) is None:
            return True
        with self._disk.work() as work, beneath.opened(self._disk.root, above) as folder:
            if _state_of(status_of(folder, name)) not in {None, ours}:
                return False
            if old:
                work.move(old, folder, name)
            else:
                folder.remove(name)
        return True

    def _undrop(self, path: str, old: str) -> bool:
        above, name = parted(path)
        with self._disk.work() as work, beneath.opened(self._disk.root, above) as folder:
            return put_back(work, old, folder, name)

    def _unmake(self, path: str, ours: States) -> bool:
        above, name = parted(path)
        with beneath.opened(self._disk.root, above) as folder:
            with folder.below(name) as made:
                for file, state in ours.items():
                    if _state_of(status_of(made, file)) == state:
                        made.remove(file)
                if made.names():
                    return False
            folder.remove_folder(name)
        return True

    def _make_again(self, path: str) -> bool:
        with beneath.opened(self._disk.root, path, is_made=True):
            return True

    def _remove_empty(self, paths: list[str]) -> bool:
        for path in paths:
            above, name = parted(path)
            with contextlib.suppress(OSError), beneath.opened(self._disk.root, above) as folder:
                folder.remove_folder(name)
        return True

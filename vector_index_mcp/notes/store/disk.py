"""Reads and changes the files below the store's folder. Each step is atomic and can be undone.

Links are never followed, because a store may come from somebody else. New content is first written
to a work folder inside `.git`, and moved into place once it is on the disk. The work folder keeps
the files that were replaced until the change is committed.
"""

import contextlib
import errno
import logging
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.steps import (
    Copied,
    copy_of_file,
    mode_of,
    parted,
    remove,
    token,
    write,
)

_log = logging.getLogger(__name__)

GIT = ".git"
WORK = f"{GIT}/vector-index-mcp"
"""The work folder: our own files in the store that are never committed."""
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_MODE = 0o644
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not block


@contextmanager
def reported(path: str) -> Iterator[None]:
    """Turn system errors about `path` into Refusals."""
    try:
        yield
    except ValueError as error:  # a name with a NUL
        raise Refusal(
            Code.INVALID_FILENAME, f"{path!r} is not a valid file name; nothing was changed"
        ) from error
    except OSError as error:
        reason = error.strerror or str(error)
        code = Code.FILE_SYSTEM_ERROR
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            code = Code.ACCESS_DENIED
        elif error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
            code = Code.INVALID_PATH
            reason = "a link, a pipe or the like, or a file or folder in place of the other"
        elif error.errno == errno.ENAMETOOLONG:
            code = Code.INVALID_FILENAME
        raise Refusal(code, f"{path}: {reason}; nothing was changed", path=path) from error


@dataclass(frozen=True, slots=True)
class Change:
    """A change of files: `folder` is created, then `puts` are written, then `drops` removed."""

    puts: Mapping[str, bytes]
    """New contents of files by path, written in this order."""
    drops: tuple[str, ...] = ()
    """The files and folders to remove."""
    empties: bool = False
    """Whether folders that are empty after `drops` are removed, too."""
    folder: str = ""
    """A new folder, which appears in one step with all the files in it that `puts` has."""
    copies: Mapping[str, Copied] = field(default_factory=dict)
    """Further new contents, which are too large for the memory."""

    def has_in_folder(self, path: str) -> bool:
        """Return whether the file is one of those in `folder`."""
        return bool(self.folder) and path.startswith(f"{self.folder}/")


class Disk:
    """The files of one store. The methods block; only one thread at a time may change files."""

    def __init__(self, root: Path) -> None:
        """Set up access; nothing is read yet.

        Args:
            root: The store's folder, absolute and resolved.
        """
        self.root = root

    # -- reading ---------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None if there is no file.

        Raises:
            Refusal: If it is no plain file, is too large, or cannot be read.
        """
        with reported(path):
            try:
                descriptor = beneath.open_file(self.root, path, _READ)
            except (FileNotFoundError, NotADirectoryError):
                return None
            with os.fdopen(descriptor, "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise OSError(errno.EISDIR, "no plain file")
                if status.st_size > LARGEST_FILE_BYTES:
                    raise Refusal(
                        Code.INVALID_CONTENT,
                        f"{path} has more than {LARGEST_FILE_BYTES:,} bytes; make it smaller",
                        path=path,
                    )
                return file.read(LARGEST_FILE_BYTES + 1)

    def read_text(self, path: str) -> str | None:
        """Return a file's text; None if there is no file.

        Raises:
            Refusal: If it is not in UTF-8, is no plain file, or cannot be read.
        """
        data = self.read(path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise Refusal(
                Code.INVALID_CONTENT,
                f"{path} is not in UTF-8 (byte {error.start}); it stays as it is until somebody "
                "converts it",
                path=path,
            ) from error

    def entries(self, folder: str) -> list[tuple[str, os.stat_result]]:
        """Return names and states of a folder's entries, sorted, without links.

        The list is empty if there is no such folder.

        Raises:
            Refusal: If the folder cannot be read.
        """
        found: list[tuple[str, os.stat_result]] = []
        with reported(folder):
            try:
                with beneath.entries(self.root, folder) as entries:
                    for entry in entries:
                        if not entry.is_symlink():
                            with contextlib.suppress(FileNotFoundError):
                                found.append((entry.name, entry.stat(follow_symlinks=False)))
            except OSError as error:
                if not beneath.tells_absence(error):
                    raise
        return sorted(found)

    def status(self, path: str) -> os.stat_result | None:
        """Return the state (`lstat`) of a file or folder; None if there is none.

        Raises:
            Refusal: If the system refuses to read it.
        """
        with reported(path):
            try:
                return beneath.status(self.root, path)
            except OSError as error:
                if beneath.tells_absence(error):
                    return None
                raise

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at `path`, not a link to one.

        Raises:
            Refusal: If the system refuses to read it.
        """
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def is_file(self, path: str) -> bool:
        """Return whether there is a plain file at `path`, not a link to one.

        Raises:
            Refusal: If the system refuses to read it.
        """
        status = self.status(path)
        return status is not None and stat.S_ISREG(status.st_mode)

    def files(self, folder: str) -> Iterator[str]:
        """Yield the paths of all plain files below a folder.

        Raises:
            Refusal: If a folder cannot be read.
        """
        for name, status in self.entries(folder):
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISDIR(status.st_mode):
                yield from self.files(path)
            elif stat.S_ISREG(status.st_mode):
                yield path

    # -- changing --------------------------------------------------------------------------

    def apply(self, change: Change) -> "Applied":
        """Make a change. If a step fails, the earlier steps are undone.

        Raises:
            Refusal: If a step fails.
        """
        applied = Applied(self)
        try:
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
        except BaseException:
            applied.undo()
            raise
        return applied

    def tidy(self) -> None:
        """Remove the temporary files of a process that was killed during a change."""
        with reported(WORK), beneath.opened(self.root, WORK, is_made=True) as work:
            for name in work.names():
                if name.endswith(_LEFT):
                    remove(work, name)


_OLD, _PART = ".old", ".part"
_LEFT = (_OLD, _PART)


class Applied:
    """The steps of a change that was made. All can be undone until `finish` is called."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._undoing: list[Callable[[], None]] = []
        self._left: list[str] = []

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
        with reported(path), self._work() as work:
            part, old = token(_PART), token(_OLD)
            with self._folder(above) as folder:
                mode = mode_of(folder, name)
                try:
                    write(work, part, data, mode or _MODE)
                    if mode is not None:
                        self._keep(path, folder, work, old, mode)
                        self._left.append(old)
                    work.move(part, folder, name)
                except BaseException:
                    with contextlib.suppress(OSError):
                        work.remove(part)
                    raise
                self._undoing.append(lambda: self._unput(path, old if mode is not None else ""))
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
        with reported(path), self._work() as work:
            part = token(_PART)
            work.make(part)
            try:
                with beneath.opened(self._disk.root, f"{WORK}/{part}") as made:
                    for file, data in files.items():
                        write(made, file.removeprefix(f"{path}/"), data, _MODE)
                    made.sync()
                with self._folder(above) as folder:
                    work.move(part, folder, name)
                    self._undoing.append(lambda: self._unmake(path))
                    folder.sync()
            except BaseException:
                remove(work, part)
                raise

    def drop(self, path: str) -> None:
        """Remove a file or a folder from the store."""
        above, name = parted(path)
        with reported(path), self._work() as work, self._folder(above) as folder:
            old = token(_OLD)
            folder.move(name, work, old)
            self._left.append(old)
            self._undoing.append(lambda: self._undrop(path, old))
            folder.sync()

    def drop_empty(self, folders: Iterable[str]) -> None:
        """Remove those of `folders` that are empty, and parents that become empty."""
        pending = sorted(folders)
        while pending:
            path = pending.pop()
            above, name = parted(path)
            if not above:  # top-level folders, such as that of all projects, stay
                continue
            with reported(path), beneath.opened(self._disk.root, above) as folder:
                try:
                    folder.remove_folder(name)
                except OSError as error:
                    if error.errno in _NOT_EMPTY or beneath.tells_absence(error):
                        continue
                    raise
                self._undoing.append(partial(self._make_again, path))
                folder.sync()
            pending.append(above)

    def undo(self) -> None:
        """Undo all steps, the last one first; a step that cannot be undone stops no other."""
        while self._undoing:
            try:
                self._undoing.pop()()
            except OSError as error:  # the store may have been moved away
                _log.warning("a change of the notes in %s stays: %s", self._disk.root, error)
        self.finish()

    def finish(self) -> None:
        """Make the change final: delete what it replaced."""
        with contextlib.suppress(OSError), self._work() as work:
            for name in self._left:
                remove(work, name)
        self._left.clear()
        self._undoing.clear()

    @contextmanager
    def _work(self) -> Iterator[beneath.Folder]:
        with beneath.opened(self._disk.root, WORK, is_made=True) as work:
            yield work

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
                self._undoing.append(lambda: self._remove_empty(missing))
                with beneath.opened(self._disk.root, at) as above:
                    above.sync()
            yield folder

    def _unput(self, path: str, old: str) -> None:
        above, name = parted(path)
        with self._work() as work, beneath.opened(self._disk.root, above) as folder:
            if old:
                work.move(old, folder, name)
            else:
                folder.remove(name)

    def _undrop(self, path: str, old: str) -> None:
        above, name = parted(path)
        with self._work() as work, beneath.opened(self._disk.root, above) as folder:
            work.move(old, folder, name)

    def _unmake(self, path: str) -> None:
        above, name = parted(path)
        with self._work() as work, beneath.opened(self._disk.root, above) as folder:
            old = token(_OLD)
            folder.move(name, work, old)
            self._left.append(old)

    def _make_again(self, path: str) -> None:
        with beneath.opened(self._disk.root, path, is_made=True):
            pass

    def _remove_empty(self, paths: list[str]) -> None:
        for path in paths:
            above, name = parted(path)
            with contextlib.suppress(OSError), beneath.opened(self._disk.root, above) as folder:
                folder.remove_folder(name)

"""Files below the store's folder: read whole, and changed such that each step is one, or is undone.

No link is followed anywhere: a store may come from somebody else. New content is written beside
the store, in a folder that git never looks at, and moved into place once the disk has it. What it
replaces stays there until the history has the change, too.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.steps import mode_of, parted, remove, token, write

GIT = ".git"
WORK = f"{GIT}/vector-index-mcp"
"""Where we keep what belongs to no history, below the store's folder."""
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_MODE = 0o644
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # a pipe must not keep us waiting


@contextmanager
def reported(path: str) -> Iterator[None]:
    """Errors of the system about `path` as refusals."""
    try:
        yield
    except ValueError as error:  # a name with a NUL
        raise Refusal(Code.INVALID_FILENAME, f"no file can be called {path!r}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        code = Code.FILE_SYSTEM_ERROR
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            code = Code.ACCESS_DENIED
        elif error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR}:
            code = Code.INVALID_PATH
            reason = "a link or a file stands where a folder or a file of notes belongs"
        elif error.errno == errno.ENAMETOOLONG:
            code = Code.INVALID_FILENAME
        raise Refusal(code, f"{path}: {reason}; nothing was changed", path=path) from error


@dataclass(frozen=True, slots=True)
class Change:
    """What is to happen to files, each thing in one step: made, then put, then dropped."""

    puts: Mapping[str, bytes]
    """New content of files by path; in order."""
    drops: tuple[str, ...] = ()
    """Files and folders that go away."""
    empties: bool = False
    """Whether folders go, too, in which nothing is left then."""
    folder: str = ""
    """A folder that appears with the files that lie in it according to `puts`, all at once."""

    def has_in_folder(self, path: str) -> bool:
        """Whether a file appears with its folder."""
        return bool(self.folder) and path.startswith(f"{self.folder}/")


class Disk:
    """The files of one store. Its methods block; one thread at a time changes something."""

    def __init__(self, root: Path) -> None:
        """Make one.

        Args:
            root: The store's folder, absolute and resolved.
        """
        self.root = root

    # -- reading ---------------------------------------------------------------------------

    def read(self, path: str) -> bytes | None:
        """What a file holds; None if there is none.

        Raises:
            Refusal: If it is no plain file, or cannot be read.
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
                        f"{path} has more than {LARGEST_FILE_BYTES} bytes; make it smaller",
                        path=path,
                    )
                return file.read(LARGEST_FILE_BYTES + 1)

    def read_text(self, path: str) -> str | None:
        """What a file says; None if there is none.

        Raises:
            Refusal: If it is no text in UTF-8, no plain file, or cannot be read.
        """
        data = self.read(path)
        try:
            return None if data is None else data.decode()
        except UnicodeDecodeError as error:
            raise Refusal(
                Code.INVALID_CONTENT,
                f"{path} is not in UTF-8 (byte {error.start}); it is left as it is until somebody "
                "converts it",
                path=path,
            ) from error

    def entries(self, folder: str) -> list[tuple[str, os.stat_result]]:
        """What lies in a folder, by name; empty if there is none. Links are left out.

        Raises:
            Refusal: If it cannot be read.
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
        """The state of a file or folder; None if there is none.

        Raises:
            Refusal: If that cannot be found out.
        """
        with reported(path):
            try:
                return beneath.status(self.root, path)
            except OSError as error:
                if beneath.tells_absence(error):
                    return None
                raise

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, and no link to one.

        Raises:
            Refusal: If that cannot be found out.
        """
        status = self.status(path)
        return status is not None and stat.S_ISDIR(status.st_mode)

    def files(self, folder: str) -> Iterator[str]:
        """The paths of the plain files in a folder and all below.

        Raises:
            Refusal: If one of them cannot be read.
        """
        for name, status in self.entries(folder):
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISDIR(status.st_mode):
                yield from self.files(path)
            elif stat.S_ISREG(status.st_mode):
                yield path

    # -- changing --------------------------------------------------------------------------

    def apply(self, change: Change) -> "Applied":
        """Do what `change` says; what has begun when something fails is undone.

        Raises:
            Refusal: If something fails.
        """
        applied = Applied(self)
        try:
            inner = {path: data for path, data in change.puts.items() if change.has_in_folder(path)}
            if inner:
                applied.make(change.folder, inner)
            for path, data in change.puts.items():
                if path not in inner:
                    applied.put(path, data)
            for path in change.drops:
                applied.drop(path)
            if change.empties:
                applied.drop_empty({parted(path)[0] for path in change.drops})
        except BaseException:
            applied.undo()
            raise
        return applied

    def tidy(self) -> None:
        """Remove what a process left behind that was killed while it changed something."""
        with reported(WORK), beneath.opened(self.root, WORK, is_made=True) as work:
            for name in work.names():
                if name.endswith(_LEFT):
                    remove(work, name)


_OLD, _PART = ".old", ".part"
_LEFT = (_OLD, _PART)


class Applied:
    """The steps of a change, which can all be undone until it is final."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._undoing: list[Callable[[], None]] = []
        self._left: list[str] = []

    def put(self, path: str, data: bytes) -> None:
        """Give a file new content."""
        if len(data) > LARGEST_FILE_BYTES:
            raise Refusal(
                Code.INVALID_CONTENT,
                f"{path} would have more than {LARGEST_FILE_BYTES} bytes, and could not be read "
                "again; make it smaller",
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
                        folder.link(name, work, old)
                        self._left.append(old)
                    work.move(part, folder, name)
                except BaseException:
                    with contextlib.suppress(OSError):
                        work.remove(part)
                    raise
                self._undoing.append(lambda: self._unput(path, old if mode is not None else ""))
                folder.sync()

    def make(self, path: str, files: Mapping[str, bytes]) -> None:
        """Make a folder with all files that lie in it."""
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
        """Take a file or a folder out of the store."""
        above, name = parted(path)
        with reported(path), self._work() as work, self._folder(above) as folder:
            old = token(_OLD)
            folder.move(name, work, old)
            self._left.append(old)
            self._undoing.append(lambda: self._undrop(path, old))
            folder.sync()

    def drop_empty(self, folders: Iterable[str]) -> None:
        """Take out folders in which nothing is, and those that are empty then."""
        pending = sorted(folders)
        while pending:
            path = pending.pop()
            above, name = parted(path)
            if not above:  # the one of all projects stays
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
        """Have everything as it was before."""
        while self._undoing:
            self._undoing.pop()()
        self.finish()

    def finish(self) -> None:
        """Forget how it was before."""
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
        """A folder, made if need be; then it goes again when everything is undone."""
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
            with (
                contextlib.suppress(OSError),
                beneath.opened(self._disk.root, above) as folder,
            ):
                folder.remove_folder(name)

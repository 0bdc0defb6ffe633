"""Reads the files below the store's folder; `applying` changes them.

Links are never followed, because a store may come from somebody else.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.steps import LEFT, Copied, remove

GIT = ".git"
WORK = f"{GIT}/vector-index-mcp"
"""The work folder: our own files in the store that are never committed."""
_DEEPEST = 200  # nobody nests so many folders on purpose; recursion ends at a thousand
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
            Refusal: If a folder cannot be read, or lies too deep.
        """
        _check_depth(folder)
        for name, status in self.entries(folder):
            path = f"{folder}/{name}" if folder else name
            if stat.S_ISDIR(status.st_mode):
                yield from self.files(path)
            elif stat.S_ISREG(status.st_mode):
                yield path

    def others(self, folder: str) -> Iterator[str]:
        """Yield the paths of all links, pipes and the like below a folder.

        Raises:
            Refusal: If a folder cannot be read, or lies too deep.
        """
        _check_depth(folder)
        with reported(folder), beneath.entries(self.root, folder) as entries:
            found = [(entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in entries]
        for name, mode in sorted(found):
            if stat.S_ISDIR(mode):
                yield from self.others(f"{folder}/{name}")
            elif not stat.S_ISREG(mode):
                yield f"{folder}/{name}"

    # -- our own files ---------------------------------------------------------------------

    @contextmanager
    def work(self) -> Iterator[beneath.Folder]:
        """Open the work folder, and create it first if it is missing.

        `.git` is not created: an empty folder that has just taken the place of the store stays one.

        Raises:
            OSError: If that is impossible, or there is no `.git`.
        """
        with beneath.opened(self.root, GIT) as folder:
            name = WORK.rpartition("/")[2]
            with contextlib.suppress(FileExistsError):
                folder.make(name)
            with folder.below(name) as work:
                yield work

    # -- tidying up ------------------------------------------------------------------------

    def tidy(self) -> None:
        """Remove the temporary files of a process that was killed during a change."""
        with reported(WORK), self.work() as work:
            for name in work.names():
                if name.endswith(LEFT):
                    remove(work, name)


def _check_depth(folder: str) -> None:
    if folder.count("/") > _DEEPEST:
        raise Refusal(
            Code.FILE_SYSTEM_ERROR,
            f"folders in {folder.partition('/')[0]} are nested more than {_DEEPEST} deep; move or "
            "delete them by hand",
        )

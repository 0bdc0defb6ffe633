"""The file operations that the steps of a change consist of."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from vector_index_mcp.files import beneath

_TOKEN_BYTES = 8
OLD, PART = ".old", ".part"
LEFT = (OLD, PART)
"""What the names end with that files have in the work folder."""
KEPT = ".kept"
"""The ending for what nobody removes: an old file that could not be put back."""
_READ = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)  # opening a named pipe must not block
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


@dataclass(frozen=True, slots=True)
class Copied:
    """A content that is too large for the memory."""

    copy: Callable[[int], None]
    """Writes it to a descriptor."""


def parted(path: str) -> tuple[str, str]:
    """Split a path into its folder and its name."""
    above, _, name = path.rpartition("/")
    return above, name


def folders_of(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, from the top, without the store's own."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)


def token(ending: str) -> str:
    """Return a random, unused name with `ending`."""
    return secrets.token_hex(_TOKEN_BYTES) + ending


def mode_of(folder: beneath.Folder, name: str) -> int | None:
    """Return a file's permission bits; None if there is no file.

    Raises:
        OSError: If the name is that of a folder, a link or another special file.
    """
    try:
        status = folder.status(name)
    except FileNotFoundError:
        return None
    _check_is_plain(status)
    return stat.S_IMODE(status.st_mode)


def _check_is_plain(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EISDIR, "no plain file")


def copy_of_file(folder: beneath.Folder, name: str) -> Copied:
    """Return the content of a file of any size."""

    def copy(descriptor: int) -> None:
        with (
            os.fdopen(folder.open(name, _READ), "rb") as source,
            os.fdopen(descriptor, "wb", closefd=False) as target,
        ):
            _check_is_plain(os.fstat(source.fileno()))
            shutil.copyfileobj(source, target)

    return Copied(copy)


def target_of(folder: beneath.Folder, name: str) -> bytes | None:
    """Return where a link leads, as it is written; None if there is no link."""
    try:
        way = name if folder.at is not None else folder.path / name
        return os.fsencode(os.readlink(way, dir_fd=folder.at))
    except OSError:
        return None


def write(folder: beneath.Folder, name: str, data: bytes | Copied, mode: int) -> None:
    """Create a file; its content is on the disk (fsync) when this returns."""
    with os.fdopen(folder.open(name, _NEW, mode), "wb") as file:
        if isinstance(data, Copied):
            data.copy(file.fileno())
        else:
            file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove(work: beneath.Folder, name: str) -> None:
    """Remove a file or folder from the work folder, ignoring errors."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(work.status(name).st_mode):
            shutil.rmtree(name if work.at is not None else work.path / name, dir_fd=work.at)
        else:
            work.remove(name)


def status_of(folder: beneath.Folder, name: str) -> os.stat_result | None:
    """Return the state (`lstat`) of an entry; None if there is none."""
    try:
        return folder.status(name)
    except FileNotFoundError:
        return None


def put_back(work: beneath.Folder, old: str, folder: beneath.Folder, name: str) -> bool:
    """Move a file or folder back; return whether that was possible.

    What has its place by now stays. Of a folder, the files without such are moved.

    Raises:
        OSError: If the system refuses.
    """
    there = status_of(folder, name)
    if there is None:
        work.move(old, folder, name)
        return True
    if not stat.S_ISDIR(there.st_mode) or not stat.S_ISDIR(work.status(old).st_mode):
        return False
    with work.below(old) as source, folder.below(name) as target:
        are_back = [put_back(source, each, target, each) for each in source.names()]
    if all(are_back):
        work.remove_folder(old)
    return all(are_back)

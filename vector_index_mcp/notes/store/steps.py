"""The file operations that the steps of a change consist of."""

import contextlib
import errno
import os
import secrets
import shutil
import stat

from vector_index_mcp.files import beneath

_TOKEN_BYTES = 8
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def parted(path: str) -> tuple[str, str]:
    """Split a path into its folder and its name."""
    above, _, name = path.rpartition("/")
    return above, name


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
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EISDIR, "no plain file")
    return stat.S_IMODE(status.st_mode)


def write(folder: beneath.Folder, name: str, data: bytes, mode: int) -> None:
    """Create a file; its content is on the disk (fsync) when this returns."""
    with os.fdopen(folder.open(name, _NEW, mode), "wb") as file:
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

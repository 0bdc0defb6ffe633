"""What the steps of a change are made of: single files and folders of a store."""

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
    """The folder a path lies in, and its name there."""
    above, _, name = path.rpartition("/")
    return above, name


def token(ending: str) -> str:
    """A name that nobody else has."""
    return secrets.token_hex(_TOKEN_BYTES) + ending


def mode_of(folder: beneath.Folder, name: str) -> int | None:
    """The permissions of a file; None if there is none.

    Raises:
        OSError: If something else has that name.
    """
    try:
        status = folder.status(name)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EISDIR, "no plain file")
    return stat.S_IMODE(status.st_mode)


def write(folder: beneath.Folder, name: str, data: bytes, mode: int) -> None:
    """Make a file that the disk has when this returns."""
    with os.fdopen(folder.open(name, _NEW, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def remove(work: beneath.Folder, name: str) -> None:
    """Remove what we made in our own folder."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(work.status(name).st_mode):
            shutil.rmtree(name if work.at is not None else work.path / name, dir_fd=work.at)
        else:
            work.remove(name)

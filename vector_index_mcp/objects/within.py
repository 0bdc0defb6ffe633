"""Opens the files of a folder that others may write, whatever they have put there.

No link below the folder is followed. What is no plain file, a device, a pipe, a socket, is refused
without waiting for it. The way is gone step by step, from one open folder to the next; on Windows,
which knows no such steps, it is looked at before it is opened.
"""

import errno
import os
import stat
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_CAN_STEP = os.open in os.supports_dir_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_FILE = (
    os.O_RDONLY
    | _NO_LINK
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)


def opened(root: Path, name: str) -> BinaryIO:
    """The plain file `name` below `root`, open for reading.

    Raises:
        FileNotFoundError: If there is none.
        OSError: If there is something else, or it cannot be opened.
    """
    file = os.fdopen(_descriptor(root, PurePosixPath(name).parts), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _no_plain_file(name)
    return file


def _descriptor(root: Path, parts: tuple[str, ...]) -> int:
    if not _CAN_STEP:
        refuse_links(root, parts)
        return os.open(root.joinpath(*parts), _FILE)
    at = os.open(root, _FOLDER)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _FOLDER | _NO_LINK, dir_fd=at)
            os.close(at)
            at = inner
        return os.open(parts[-1], _FILE, dir_fd=at)
    finally:
        os.close(at)


def refuse_links(root: Path, parts: tuple[str, ...]) -> None:
    """Make sure that what is there of a way below `root` consists of folders and plain files.

    Raises:
        OSError: If it does not.
    """
    for count in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:count])
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(mode) and not (count == len(parts) and stat.S_ISREG(mode)):
            raise _no_plain_file("/".join(parts[:count]))


def _no_plain_file(name: str) -> OSError:
    return OSError(errno.EINVAL, f"{name!a} is no plain file")

"""Reads plain files at paths where others may put anything else, also between two steps of ours.

To open a pipe waits for a writer, and a device may have no end, or do something when it is opened.
So what lies at a path is looked at before it is opened, and what was opened is looked at again.
"""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_READING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def opened(path: Path, *, follows_links: bool = True) -> BufferedReader:
    """Open a plain file for reading.

    Raises:
        FileNotFoundError: If there is none, but perhaps something else, such as a link if
            `follows_links` is false.
        OSError: If it cannot be opened.
        ValueError: If it cannot be the path of anything.
    """
    _check(path.stat(follow_symlinks=follows_links), path)
    file = os.fdopen(os.open(path, _READING | (0 if follows_links else _NO_LINK)), "rb")
    try:
        _check(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def content_of(path: Path, most_bytes: int, *, follows_links: bool = True) -> bytes:
    """Return the content of a plain file.

    Raises:
        OSError: See `opened`; also if it has more than `most_bytes`.
        ValueError: See `opened`.
    """
    with opened(path, follows_links=follows_links) as file:
        size = os.fstat(file.fileno()).st_size
        data = file.read(min(size, most_bytes) + 1)  # it makes room for all that is asked for
    if len(data) > most_bytes:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return data


def _check(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "it is not a plain file", str(path))

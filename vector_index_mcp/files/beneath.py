"""Opens what lies below a folder, and nothing else: no link is followed anywhere on the way.

A path that was checked a moment ago may lead elsewhere now: any folder on the way may have been
replaced by a link. So the way is gone step by step, from one open folder to the next, which also
leads to where a path is too long for the system. On Windows, which knows no such steps, the path is
looked at as a whole before it is opened.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CAN_STEP = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_FOLDER = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
# With O_PATH a folder need not be readable to be passed through.
_STEP = _FOLDER | getattr(os, "O_PATH", 0)
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # links are not followed


def tells_absence(error: OSError) -> bool:
    """Whether an error of these functions says that nothing is there.

    Any other says nothing of the file, which may be there as it was: no right to look, no
    descriptor left, a file system that is out of reach.
    """
    return error.errno in _ABSENT


def open_file(root: Path, key: str, flags: int) -> int:
    """A descriptor of the file `key` below `root`, open with `flags`.

    Raises:
        NotADirectoryError: If something on the way is not a folder (any more), but a link.
        OSError: If there is no such file, if it is a link itself, or if it cannot be opened.
    """
    flags |= getattr(os, "O_NOFOLLOW", 0)
    folder, name = _parted(key)
    if not _CAN_STEP:
        return os.open(_checked(root, folder) / name, flags)
    at = _step_down(root, folder)
    try:
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def status(root: Path, key: str) -> os.stat_result:
    """The state of the file or folder `key` below `root`; of a link, its own.

    Raises:
        OSError: As above, if there is none.
    """
    folder, name = _parted(key)
    if not _CAN_STEP:
        return (_checked(root, folder) / name).lstat()
    at = _step_down(root, folder)
    try:
        return os.stat(name or ".", dir_fd=at, follow_symlinks=False)
    finally:
        os.close(at)


@contextmanager
def entries(root: Path, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What lies in `folder` below `root`; each entry can be asked for its state meanwhile.

    Raises:
        OSError: As above.
    """
    above, name = _parted(folder)
    if not _CAN_STEP:
        with os.scandir(_checked(root, folder)) as found:
            yield found
        return
    at = _step_down(root, above)
    try:
        here = os.open(name or ".", _FOLDER, dir_fd=at)
    finally:
        os.close(at)
    try:
        with os.scandir(here) as found:
            yield found
    finally:
        os.close(here)


def _parted(key: str) -> tuple[str, str]:
    """The folder and the name; there is no way up."""
    if ".." in key.split("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
    folder, _, name = key.rpartition("/")
    return folder, name


def _step_down(root: Path, folder: str) -> int:
    """A descriptor by which entries of `folder` can be opened."""
    at = os.open(root, os.O_RDONLY | getattr(os, "O_PATH", 0))  # the root itself may be a link
    for name in folder.split("/") if folder else ():
        try:
            below = os.open(name, _STEP, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _checked(root: Path, folder: str) -> Path:
    path = root / folder
    if not path.resolve().is_relative_to(root.resolve()):
        raise NotADirectoryError(errno.ENOTDIR, "a link leads out of the project", str(path))
    return path

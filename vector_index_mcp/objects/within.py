"""Opens and lists files in a folder that others can write to, whatever they have put there.

No link below the folder is followed. Devices, pipes and sockets are refused without waiting for
them. Each folder of a path is opened from the one above it; Windows cannot do that, so there the
path is checked before it is opened.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
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
_MOST_LEVELS = 200  # of nested folders


def opened(root: Path, name: str) -> BinaryIO:
    """Open the regular file `name` below `root` for reading.

    Raises:
        FileNotFoundError: If there is no such file.
        OSError: If it is not a regular file, or cannot be opened.
    """
    file = os.fdopen(_descriptor(root, PurePosixPath(name).parts), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise _not_regular(name)
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
    """Make sure that a path below `root`, as far as it exists, has only folders and regular files.

    Raises:
        OSError: If something else is on the path, such as a link.
    """
    for count in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:count])
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(mode) and not (count == len(parts) and stat.S_ISREG(mode)):
            raise _not_regular("/".join(parts[:count]))


def walk(
    root: Path, on_error: Callable[[OSError], None] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder as `os.walk` does; that one would end in a RecursionError if it is deep.

    Args:
        root: The folder.
        on_error: Called with the error of each folder that is left out, because it cannot be listed
            or lies too deep.

    Yields:
        The path of a folder, the names of the folders in it, of which the caller may remove some,
        and the names of everything else there.
    """
    pending = [(os.fspath(root), 0)]
    while pending:
        place, level = pending.pop()
        try:
            folders, others = _names_in(place, level)
        except OSError as error:
            if on_error is not None:
                on_error(error)
            continue
        yield place, folders, others
        inner = (os.path.join(place, name) for name in reversed(folders))  # noqa: PTH118
        pending += [(path, level + 1) for path in inner]


def _names_in(place: str, level: int) -> tuple[list[str], list[str]]:
    """Return the names of the folders in a folder, and those of everything else."""
    if level > _MOST_LEVELS:
        words = f"folders are nested more than {_MOST_LEVELS} levels deep"
        raise OSError(errno.ENAMETOOLONG, words, place)
    folders: list[str] = []
    others: list[str] = []
    with os.scandir(place) as entries:
        for entry in entries:
            (folders if _is_folder(entry) else others).append(entry.name)
    return folders, others


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _not_regular(name: str) -> OSError:
    return OSError(errno.EINVAL, f"{name!a} is not a regular file")

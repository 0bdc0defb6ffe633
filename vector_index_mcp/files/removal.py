"""Removes files and folders, and returns what could not be removed.

No link is followed, and nothing that is mounted below is removed.
"""

import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.files import beneath

_DEEPEST = 200  # levels of folders; each of them is held open
_TOO_DEEP = "its folders are nested too deeply"
_MOUNTED = "something else is mounted there"
_NO_FILE = "it is a folder, and this program makes a file there"


@dataclass(frozen=True, slots=True)
class Left:
    """A file or folder that was not removed, or must not be."""

    path: str
    why: str


def left_by(path: Path, error: OSError) -> Left:
    """Return a path that the system did not let us remove, with the system's reason."""
    return Left(str(path), error.strerror or str(error))


@contextmanager
def reached(folder: Path) -> Iterator[beneath.Folder]:
    """Open a folder, given by an absolute path without links.

    Raises:
        OSError: If there is no such folder.
    """
    way = folder.relative_to(folder.anchor).as_posix()
    with beneath.opened(Path(folder.anchor), "" if way == "." else way) as found:
        yield found


def remove(folder: beneath.Folder, name: str, depth: int = 0) -> list[Left]:
    """Remove an entry of a folder with everything in it; return what could not be removed."""
    path = folder.path / name
    try:
        if not stat.S_ISDIR(folder.status(name).st_mode):
            folder.remove(name)
            return []
        if depth == _DEEPEST:
            return [Left(str(path), _TOO_DEEP)]
        with folder.below(name) as inside:
            if inside.mount != folder.mount:
                return [Left(str(path), _MOUNTED)]
            left = [each for inner in inside.names() for each in remove(inside, inner, depth + 1)]
        if not left:
            folder.remove_folder(name)
    except FileNotFoundError:  # somebody else has removed it
        return []
    except OSError as error:
        return [left_by(path, error)]
    return left


def remove_at(path: Path) -> list[Left]:
    """Remove the file or folder at an absolute path; return what could not be removed."""
    try:
        with reached(path.parent) as folder:
            return remove(folder, path.name)
    except FileNotFoundError:
        return []
    except OSError as error:
        return [left_by(path, error)]


def remove_file_at(path: Path) -> list[Left]:
    """Remove the file at an absolute path; return what could not be removed, such as a folder."""
    return [Left(str(path), _NO_FILE)] if is_folder(path) else _unlinked(path)


def _unlinked(path: Path) -> list[Left]:
    try:
        with reached(path.parent) as folder:
            folder.remove(path.name)  # this does not remove a folder made meanwhile
    except FileNotFoundError:
        return []
    except OSError as error:
        return [left_by(path, error)]
    return []


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


def remove_if_empty(path: Path) -> None:
    """Remove a folder if it is empty."""
    with suppress(OSError), reached(path.parent) as folder:
        folder.remove_folder(path.name)


def size_of(path: Path, depth: int = 0) -> int:
    """Return the bytes of a file, or of all files in a folder that `remove` would reach.

    Unreadable ones count 0.
    """
    with suppress(OSError):
        status = path.lstat()
        if not stat.S_ISDIR(status.st_mode):
            return status.st_size
        if depth <= _DEEPEST:
            return sum(size_of(inner, depth + 1) for inner in path.iterdir())
    return 0

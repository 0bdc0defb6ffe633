"""Removes an index of ours, and leaves alone what else lies in its folder.

The tables go first, then the mark that shows that they are ours, and our record last. So what a
kill leaves is still known as ours: the next start rebuilds the index, the next removal goes on.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vector_index_mcp.engine.store.entries import is_table
from vector_index_mcp.errors import BusyError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.removal import (
    Left,
    left_by,
    reached,
    remove,
    remove_at,
    remove_if_empty,
    size_of,
)
from vector_index_mcp.indexing.mirroring.mirror import FETCHED
from vector_index_mcp.indexing.mirroring.origin import ORIGIN
from vector_index_mcp.indexing.opening.locks import held, lock_of
from vector_index_mcp.indexing.opening.marks import MARK
from vector_index_mcp.indexing.opening.ownership import LOCK, Known, Records, Standing
from vector_index_mcp.indexing.opening.writers import note_at

_HIDES = ".gitignore"
_HIDES_ALL = b"*\n"  # its content as we make it
_OF_MIRROR = (ORIGIN, FETCHED)
# The names of files that were written halfway.
_PART = re.compile(rf"(?:{re.escape(MARK)}|{re.escape(ORIGIN)})\.[0-9a-f]{{8}}")
_PATIENCE_SECONDS = 5.0  # for a writer that is ending, or another process that removes the index
_NOT_OURS = "this program did not write it for you on this machine"
_LINKED = "a link leads there, and none is followed"
_MOVED = "it was replaced just now; try again"


def fault_of(folder: Path, records: Records) -> str:
    """Why the index in `folder` must not be removed; empty if it may be, or there is none.

    Raises:
        OSError: If the folder cannot be read.
    """
    if os.path.lexists(folder) and os.path.realpath(folder) != str(folder):
        return _LINKED
    return _NOT_OURS if records.standing(folder) is Standing.FOREIGN else ""


def others_in(folder: Path) -> list[str]:
    """The names in the folder of an index that are no part of the index."""
    with suppress(OSError), reached(folder) as opened:
        is_hidden = _is_hidden_by_us(opened)
        names = opened.names()
        return sorted(n for n in names if not (_is_part(n) or (n == _HIDES and is_hidden)))
    return []


def size_of_index(folder: Path) -> int:
    """The size of an index in bytes, without other files in its folder."""
    with suppress(OSError), reached(folder) as opened:
        return sum(size_of(folder / name) for name in opened.names() if _is_part(name))
    return 0


def remove_index(folder: Path, records: Records, state_folder: Path) -> list[Left]:
    """Remove the index in `folder`; returns what could not be removed.

    Args:
        folder: An absolute path.
        records: The records of indexes.
        state_folder: Where locks of indexes lie.
    """
    lock = lock_of(str(folder), state_folder)
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with held(lock, _PATIENCE_SECONDS):
            return _removed(folder, records) or remove_at(note_at(lock)) or remove_at(lock)
    except BusyError as error:
        return [Left(str(folder), str(error))]
    except OSError as error:
        # If nothing is there any more, another process has removed it, with the lock's folder.
        return [left_by(folder, error)] if os.path.lexists(folder) else []


def _removed(folder: Path, records: Records) -> list[Left]:
    known = [each for each in records.all() if each.folder == folder]
    if fault := fault_of(folder, records):
        return [Left(str(folder), fault)]
    with suppress(FileNotFoundError), reached(folder) as opened:
        found = records.of(folder)
        if found is not None:
            if left := _emptied(opened):
                return left
            known.append(found)
        elif known and not others_in(folder):  # an earlier removal was interrupted here
            remove(opened, _HIDES)
    if any(each.is_folder_made for each in known):  # else the folder is the user's own
        remove_if_empty(folder)
    for each in known:
        _forget(each, folder, records)
    return []


def _forget(known: Known, folder: Path, records: Records) -> None:
    """Drop a record, unless it belongs to an existing index of which `folder` had only a copy."""
    recorded = next((each for each in records.all() if each.number == known.number), None)
    if recorded is None or recorded.folder is None:
        return
    if recorded.folder == folder or not os.path.lexists(recorded.folder / MARK):
        records.forget(known.number)


def _emptied(folder: beneath.Folder) -> list[Left]:
    """Remove all parts of an index; returns what could not be removed."""
    if not _is_same(folder):
        return [Left(str(folder.path), _MOVED)]
    with _alone_in(folder):
        first = [name for name in folder.names() if is_table(name) or name == FETCHED]
        left = [each for name in first for each in remove(folder, name)]
    parts = [LOCK, *(n for n in folder.names() if _PART.fullmatch(n) or n == ORIGIN)]
    if not others_in(folder.path):
        parts.append(_HIDES)
    for name in [*parts, MARK]:
        left = left or remove(folder, name)
    return left


@contextmanager
def _alone_in(folder: beneath.Folder) -> Iterator[None]:
    """Hold the lock in the index's folder while the context lasts, so that nobody writes."""
    if LOCK not in folder.names():
        yield
        return
    with held(folder.path / LOCK, _PATIENCE_SECONDS):
        yield


def _is_same(folder: beneath.Folder) -> bool:
    """Whether the path of an open folder still leads to the same folder."""
    there, here = (folder.path / MARK).lstat(), folder.status(MARK)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _is_part(name: str) -> bool:
    return is_table(name) or name in {MARK, LOCK, *_OF_MIRROR} or bool(_PART.fullmatch(name))


def _is_hidden_by_us(folder: beneath.Folder) -> bool:
    """Whether the folder's `.gitignore` is the one that we make with an index."""
    try:
        descriptor = folder.open(_HIDES, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False
    try:
        return os.read(descriptor, len(_HIDES_ALL) + 1) == _HIDES_ALL
    except OSError:
        return False
    finally:
        os.close(descriptor)

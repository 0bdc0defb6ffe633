"""Reads from git's index which files git tracks; ignore rules do not apply to these.

`git -c core.fsmonitor=false ls-files -z` would be faster: for 10,000 files it takes 6 ms of
processor time and this reader 16 ms (0.1 ms while the index is unchanged; measured with git 2.39).
It is not used, because git

- may start a program that the repository's configuration names: if the index is sparse and a tree
  is missing, git fetches the tree, for example with `core.sshCommand` (tried);
- refuses a repository that belongs to another user (`safe.directory`);
- may not be installed.
"""

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from vector_index_mcp.files.git_index import MOST_BYTES, paths_in
from vector_index_mcp.files.plain import opened
from vector_index_mcp.files.state import state_of

_MOST_NAME_BYTES = 2 * MOST_BYTES  # of all names together; version 4 compresses names


class Tracked:
    """The paths of an index, stored compactly."""

    def __init__(self, names: Iterable[bytes] = (), *, folds_case: bool = False) -> None:
        """Keep `names`, which are in the order of their bytes.

        Args:
            names: The paths; in lower case if `folds_case`.
            folds_case: Whether a path is held if it differs in the case of ASCII letters only.

        Raises:
            ValueError: If the names together are longer than those of any real repository.
        """
        text, ends = bytearray(), array("I", [0])
        for name in names:
            text += name
            if len(text) > _MOST_NAME_BYTES:
                raise ValueError("too many names")
            ends.append(len(text))
        self._text, self._ends = bytes(text), ends
        self._folds_case = folds_case

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> bytes:
        return self._text[self._ends[place] : self._ends[place + 1]]

    def holds(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether the file at `path` is tracked; for a folder, whether any file in it is."""
        wanted = os.fsencode(f"{path}/" if is_folder else path)
        wanted = wanted.lower() if self._folds_case else wanted
        place = bisect_left(self, wanted)
        if place == len(self):
            return False
        return self[place].startswith(wanted) if is_folder else self[place] == wanted

    def is_same(self, other: "Tracked") -> bool:
        """Return whether both have the same paths."""
        return self is other or (self._text == other._text and self._ends == other._ends)


NOTHING = Tracked()

_MOST_REMEMBERED = 64
_remembered: dict[tuple[Path, str, bool], tuple[tuple[int, ...], Tracked]] = {}
"""A cache by index, prefix and folding: the state of the index file, and the paths read from it."""


def tracked_below(index: Path, prefix: str, *, folds_case: bool = False) -> Tracked:
    """Return the tracked paths below `prefix`, relative to it.

    Args:
        index: The index file of the repository, which need not exist.
        prefix: The path from the top of the repository to a folder, with a trailing slash.
        folds_case: Whether the case of ASCII letters does not count.

    Returns:
        No paths if there is no index or it cannot be understood. If it cannot be read just now, the
        paths from the last time.
    """
    place = index, prefix, folds_case
    known, last = _remembered.get(place, ((), NOTHING))
    try:
        file = opened(index)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return NOTHING
    except OSError:
        return last
    try:
        state = state_of(os.fstat(file.fileno()))
        if state != known:
            names = paths_in(_content(file), lambda hash_: _shared(index, hash_))
            below = _below(os.fsencode(prefix), names)
            if folds_case:
                below = iter(sorted({name.lower() for name in below}))
            last = Tracked(below, folds_case=folds_case)
            if len(_remembered) >= _MOST_REMEMBERED:
                _remembered.clear()
            _remembered[place] = state, last
    except (ValueError, IndexError):
        return NOTHING
    except OSError:
        return last
    finally:
        file.close()
    return last


def _shared(index: Path, hash_: str) -> bytes:
    """Return the content of the shared index, in which a split index keeps unchanged entries."""
    with opened(index.with_name(f"sharedindex.{hash_}")) as file:
        return _content(file)


def _content(file: BinaryIO) -> bytes:
    size = os.fstat(file.fileno()).st_size
    if size > MOST_BYTES:
        raise ValueError("not an index of git")
    return file.read(size)  # `read` makes room for all that it is asked for


def _below(prefix: bytes, names: Iterable[bytes]) -> Iterator[bytes]:
    return (name[len(prefix) :] for name in names if name.startswith(prefix))

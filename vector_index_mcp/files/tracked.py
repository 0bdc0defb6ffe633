"""Which files git tracks, read from its index: an ignore rule says nothing about those.

Not asked of `git -c core.fsmonitor=false ls-files -z`, although that is faster: for 10,000 files it
takes 6 ms of a processor and our reader 16 ms (0.1 ms while the index stays the same; measured with
git 2.39). But git

- may start a program that the repository's configuration names: where the index is sparse and a
  tree is missing, git fetches the tree, for example by `core.sshCommand` (tried);
- refuses a repository that belongs to another user (`safe.directory`);
- may not be installed.
"""

import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

from vector_index_mcp.files.git_index import MOST_BYTES, paths_in

_MOST_NAME_BYTES = 2 * MOST_BYTES  # of all together: version 4 shares beginnings


class Tracked:
    """The paths of an index, in as little memory as they take."""

    def __init__(self, names: Iterable[bytes] = ()) -> None:
        """Keep `names`, which are in the order of their bytes.

        Raises:
            ValueError: If all together are longer than the paths of any repository.
        """
        text, ends = bytearray(), array("I", [0])
        for name in names:
            text += name
            if len(text) > _MOST_NAME_BYTES:
                raise ValueError("too many names")
            ends.append(len(text))
        self._text, self._ends = bytes(text), ends

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> bytes:
        return self._text[self._ends[place] : self._ends[place + 1]]

    def holds(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether the file at `path` is tracked, or any file below that folder."""
        wanted = os.fsencode(f"{path}/" if is_folder else path)
        place = bisect_left(self, wanted)
        if place == len(self):
            return False
        return self[place].startswith(wanted) if is_folder else self[place] == wanted

    def is_same(self, other: "Tracked") -> bool:
        """Whether both hold the same paths."""
        return self is other or (self._text == other._text and self._ends == other._ends)


NOTHING = Tracked()

_MOST_REMEMBERED = 64
_remembered: dict[tuple[Path, str], tuple[tuple[int, ...], Tracked]] = {}
"""What was read of an index and the state of its file, so that most walks need not read it."""


def tracked_below(index: Path, prefix: str) -> Tracked:
    """What the repository with this `index` tracks below `prefix`, relative to that.

    Args:
        index: The file, which need not be there.
        prefix: Path from the top of the repository to a folder, with a trailing slash.

    Returns:
        Nothing if there is no index, or none that we understand; of one that cannot be read just
        now, what was read before.
    """
    place = index, prefix
    known, last = _remembered.get(place, ((), NOTHING))
    try:
        descriptor = _opened(index)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return NOTHING
    except OSError:
        return last
    try:
        status = os.fstat(descriptor)
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        if state != known:
            names = paths_in(_content(descriptor, status), lambda hash_: _shared(index, hash_))
            last = Tracked(_below(os.fsencode(prefix), names))
            if len(_remembered) >= _MOST_REMEMBERED:
                _remembered.clear()
            _remembered[place] = state, last
    except (ValueError, IndexError):
        return NOTHING
    except OSError:
        return last
    finally:
        os.close(descriptor)
    return last


def _opened(path: Path) -> int:
    # Not waited for if it is a pipe.
    return os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))


def _shared(index: Path, hash_: str) -> bytes:
    """The file in which a split index keeps what has not changed."""
    descriptor = _opened(index.with_name(f"sharedindex.{hash_}"))
    try:
        return _content(descriptor, os.fstat(descriptor))
    finally:
        os.close(descriptor)


def _content(descriptor: int, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        raise ValueError("no index of git")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(status.st_size)


def _below(prefix: bytes, names: Iterable[bytes]) -> Iterator[bytes]:
    return (name[len(prefix) :] for name in names if name.startswith(prefix))

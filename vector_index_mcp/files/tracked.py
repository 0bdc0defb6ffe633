"""Which files git tracks, read from its index: an ignore rule says nothing about those.

The index is read by ourselves because asking git means to run what the repository's own
configuration names (`core.fsmonitor`). Its format: git's `Documentation/gitformat-index.txt`,
versions 2 to 4.
"""

import functools
import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path

_LARGEST_INDEX_BYTES = 100_000_000  # half a million files
_HEADER_BYTES = 12
_STATUS_BYTES = 40  # of a file, in front of the hash of its content
_HASH_BYTES = (20, 32)  # SHA-1 and SHA-256; which one it is stands in the configuration only
_HAS_MORE_FLAGS, _NAME_LENGTH = 0x4000, 0x0FFF
_FILE_TYPE, _FOLDER, _REPOSITORY = 0o170000, 0o040000, 0o160000
_SPLIT = b"link"


class Tracked:
    """The paths of an index, in as little memory as they take."""

    def __init__(self, names: list[bytes] | None = None) -> None:
        """Keep `names`, which are in the order of their bytes."""
        names = names or []
        self._text = b"".join(names)
        ends = array("I", [0])
        for name in names:
            ends.append(ends[-1] + len(name))
        self._ends = ends

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


NOTHING = Tracked()


def tracked_below(git_folder: Path, prefix: str) -> Tracked:
    """What the repository with this folder `.git` tracks below `prefix`, relative to that.

    Args:
        git_folder: Of a worktree, its own.
        prefix: Path from the top of the repository to a folder, with a trailing slash.

    Returns:
        Nothing if there is no index, or none that we understand.
    """
    path = git_folder / "index"
    try:
        status = path.stat()
        if status.st_size > _LARGEST_INDEX_BYTES:
            return NOTHING
        return _read(path, (status.st_size, status.st_mtime_ns, status.st_ino), prefix)
    except (OSError, ValueError):
        return NOTHING


@functools.lru_cache(maxsize=1)  # most walks find the index as it was
def _read(path: Path, _: tuple[int, ...], prefix: str) -> Tracked:
    data = path.read_bytes()
    below = os.fsencode(prefix)
    for hash_bytes in _HASH_BYTES:
        try:
            names = list(_names(data, hash_bytes))
        except (ValueError, IndexError):
            continue
        return Tracked([name[len(below) :] for name in names if name.startswith(below)])
    return NOTHING


def _names(data: bytes, hash_bytes: int) -> Iterator[bytes]:
    """The paths of the files in an index, in its order.

    Raises:
        ValueError, IndexError: If it is none, is a part of one, or has other hashes.
    """
    version, count = _number(data, 4), _number(data, 8)
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of git")
    at, name = _HEADER_BYTES, b""
    for _ in range(count):
        start, former = at, name
        mode = _number(data, start + 24) & _FILE_TYPE
        at += _STATUS_BYTES + hash_bytes
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & _HAS_MORE_FLAGS else 2
        kept = 0
        if version == 4:  # a name shares its beginning with the one before
            dropped, at = _varint(data, at)
            kept = len(former) - dropped
        end = data.index(b"\0", at)
        name = former[:kept] + data[at:end]
        if not former <= name or min(len(name), _NAME_LENGTH) != flags & _NAME_LENGTH:
            raise ValueError("no path where one should be")
        # Up to version 3, zeros fill an entry up to a multiple of eight bytes.
        at = end + 1 if version == 4 else start + (end - start) // 8 * 8 + 8
        if mode not in (_FOLDER, _REPOSITORY):
            yield name
    while at < len(data) - hash_bytes:  # extensions
        if data[at : at + 4] == _SPLIT:
            raise ValueError("most entries are in another file")
        at += 8 + _number(data, at + 4)
    if at != len(data) - hash_bytes:
        raise ValueError("no end where it should be")


def _number(data: bytes, at: int) -> int:
    if at + 4 > len(data):
        raise ValueError("cut off")
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of any length, as pack files write offsets, and where it ends."""
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1

"""Which files git tracks, read from its index: an ignore rule says nothing about those.

The index is read by ourselves because asking git means to run what the repository's own
configuration names (`core.fsmonitor`). Its format: git's `Documentation/gitformat-index.txt`,
versions 2 to 4. It may be written to do harm: what it costs is bounded by its size.
"""

import hashlib
import os
import stat
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from pathlib import Path

_LARGEST_INDEX_BYTES = 100_000_000  # half a million files
_MOST_NAME_BYTES = 2 * _LARGEST_INDEX_BYTES  # of all together: version 4 shares beginnings
_LONGEST_NAME_BYTES = 4_096
_HEADER_BYTES = 12
_STATUS_BYTES = 40  # of a file, in front of the hash of its content
_HASHES = ("sha1", "sha256")  # which one it is stands in the configuration only
_HAS_MORE_FLAGS, _NAME_LENGTH = 0x4000, 0x0FFF
_FILE_TYPE, _FOLDER, _REPOSITORY = 0o170000, 0o040000, 0o160000
_SPLIT = b"link"


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
        # Not waited for if it is a pipe.
        descriptor = os.open(index, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return NOTHING
    except OSError:
        return last
    try:
        status = os.fstat(descriptor)
        state = (status.st_size, status.st_mtime_ns, status.st_ino)
        if state != known:
            last = Tracked(_below(os.fsencode(prefix), _names(_content(descriptor, status))))
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


def _content(descriptor: int, status: os.stat_result) -> bytes:
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_INDEX_BYTES:
        raise ValueError("no index of git")
    with open(descriptor, "rb", closefd=False) as file:
        return file.read(status.st_size)


def _below(prefix: bytes, names: Iterable[bytes]) -> Iterator[bytes]:
    return (name[len(prefix) :] for name in names if name.startswith(prefix))


def _names(data: bytes) -> Iterator[bytes]:
    """The paths of the files in an index, in its order.

    Raises:
        ValueError, IndexError: If it is none, or a part of one.
    """
    version, count = _number(data, 4), _number(data, 8)
    if data[:4] != b"DIRC" or version not in (2, 3, 4):
        raise ValueError("no index of git")
    hash_bytes = _hash_bytes(data)
    at, name = _HEADER_BYTES, b""
    for _ in range(count):
        start, former = at, name
        mode = _number(data, start + 24) & _FILE_TYPE
        at += _STATUS_BYTES + hash_bytes
        flags = int.from_bytes(data[at : at + 2], "big")
        at += 4 if flags & _HAS_MORE_FLAGS else 2
        kept = 0
        if version == 4:  # a name shares its beginning with the one before
            dropped, at = _varint(data, at, len(former))
            kept = len(former) - dropped
        end = data.index(b"\0", at, at + _LONGEST_NAME_BYTES)
        name = former[:kept] + data[at:end]
        length = min(len(name), _NAME_LENGTH)
        if name < former or len(name) > _LONGEST_NAME_BYTES or length != flags & _NAME_LENGTH:
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


def _hash_bytes(data: bytes) -> int:
    """How long the hashes of the index are, by the one that it ends with.

    Raises:
        ValueError: If that is another than that of its content.
    """
    for name in _HASHES:
        found = hashlib.new(name, usedforsecurity=False)
        size = found.digest_size
        found.update(memoryview(data)[:-size])
        if found.digest() == data[-size:]:
            return size
    if not any(data[-20:]):  # `index.skipHash`; with SHA-256, too, nobody can tell which it is
        return 20
    raise ValueError("damaged")


def _number(data: bytes, at: int) -> int:
    if at + 4 > len(data):
        raise ValueError("cut off")
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: bytes, at: int, most: int) -> tuple[int, int]:
    """A number, as pack files write offsets, and where it ends.

    Raises:
        ValueError: If it is greater than `most`.
    """
    byte = data[at]
    value = byte & 0x7F
    while byte & 0x80 and value <= most:
        at += 1
        byte = data[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    if value > most:
        raise ValueError("greater than it may be")
    return value, at + 1

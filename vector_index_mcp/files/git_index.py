"""Reads the paths in git's index. Pure, except that the caller reads the shared part of an index.

The format is in git's `Documentation/gitformat-index.txt`, versions 2 to 4. An index may be
malicious; the time and memory to read it are bounded by its size.
"""

import hashlib
import heapq
import struct
from bisect import insort
from collections import deque
from collections.abc import Callable, Iterable, Iterator

MOST_BYTES = 100_000_000  # half a million files
_LONGEST_NAME_BYTES = 4_096
_HEADER_BYTES = 12
_LEAST_ENTRY_BYTES = 62
_HASHES = ("sha1", "sha256")  # only git's configuration says which one an index uses
_HAS_MORE_FLAGS, _NAME_LENGTH = 0x4000, 0x0FFF
_FILE_TYPE, _FOLDER, _REPOSITORY = 0o170000, 0o040000, 0o160000
_LINK = b"link"  # the extension of a split index
_WORD_BYTES, _WORD_BITS = 8, 64

Entry = tuple[bytes, int]
"""A path and its type: a file or link, `_FOLDER` (in a sparse index) or `_REPOSITORY`."""


def paths_in(data: bytes, read_shared: Callable[[str], bytes]) -> Iterator[bytes]:
    """Yield the paths of the files in the index `data`, in the order of their bytes.

    That of a submodule, which is a folder, ends with a slash.

    Args:
        data: The content of the index file.
        read_shared: Returns the content of the shared index with the given hash (hex), which has
            most entries of a split index.

    Raises:
        ValueError, IndexError: If `data` is not an index, or incomplete.
    """
    submodules: list[bytes] = []  # `lib` stands before `lib-x` in the index, and `lib/` behind it
    for name, kind in _all_entries(data, read_shared):
        while submodules and submodules[0] < name:
            yield submodules.pop(0)
        if kind == _REPOSITORY:
            insort(submodules, name + b"/")
        elif kind != _FOLDER:
            yield name
    yield from submodules


def _all_entries(data: bytes, read_shared: Callable[[str], bytes]) -> Iterable[Entry]:
    own = _Entries(data)
    if _LINK not in data:
        return own
    deque(own, maxlen=0)  # the extensions stand behind the entries
    if not own.link.strip(b"\0"):  # only a path contains "link", or nothing is shared yet
        return own
    size = own.hash_bytes
    shared = _Entries(read_shared(own.link[:size].hex()))
    deleted, at = _positions(own.link, size, shared.count) if own.link[size:] else ([], size)
    replaced, _ = _positions(own.link, at, shared.count) if own.link[at:] else ([], at)
    return _merged(shared, iter(own), set(deleted), replaced)


def _merged(
    shared: Iterable[Entry], own: Iterator[Entry], deleted: set[int], replaced: list[int]
) -> Iterator[Entry]:
    """Return the entries of a split index.

    Its own entries begin with those that replace shared ones; these have no name.
    """
    kinds: dict[int, int] = {}
    for place in replaced:
        name, kinds[place] = next(own, (b"none", 0))
        if name:
            raise ValueError("other entries are replaced than are there")
    kept = (
        (name, kinds.get(place, former))
        for place, (name, former) in enumerate(shared)
        if place not in deleted
    )
    return heapq.merge(kept, own)


class _Entries:
    """The entries of one index file; `link` is known once all of them have been read."""

    def __init__(self, data: bytes) -> None:
        self._version, self.count = _number(data, 4), _number(data, 8)
        if data[:4] != b"DIRC" or self._version not in (2, 3, 4):
            raise ValueError("not an index of git")
        if self.count * _LEAST_ENTRY_BYTES > len(data):
            raise ValueError("cut off")
        self._data = data
        self.hash_bytes = _hash_bytes(data)
        self.link = b""
        """The content of the extension of a split index; empty if there is none."""

    def __iter__(self) -> Iterator[Entry]:
        data, version = self._data, self._version
        head = struct.Struct(f">24xI{12 + self.hash_bytes}xH")  # mode and flags
        at, name, last = _HEADER_BYTES, b"", len(data) - head.size
        for _ in range(self.count):
            if at > last:
                raise ValueError("cut off")
            start, former = at, name
            mode, flags = head.unpack_from(data, at)
            at += head.size + (2 if flags & _HAS_MORE_FLAGS else 0)
            kept = 0
            if version == 4:  # a name leaves out the beginning that it shares with the one before
                dropped, at = _varint(data, at, len(former))
                kept = len(former) - dropped
            end = data.index(b"\0", at, at + _LONGEST_NAME_BYTES)
            name = former[:kept] + data[at:end]
            length = min(len(name), _NAME_LENGTH)
            if name < former or len(name) > _LONGEST_NAME_BYTES or length != flags & _NAME_LENGTH:
                raise ValueError("an entry without a valid path")
            # Up to version 3, zeros pad an entry to a multiple of eight bytes.
            at = end + 1 if version == 4 else start + (end - start) // 8 * 8 + 8
            yield name, mode & _FILE_TYPE
        self._read_extensions(at)

    def _read_extensions(self, at: int) -> None:
        end = len(self._data) - self.hash_bytes
        while at < end:
            size = _number(self._data, at + 4)
            if self._data[at : at + 4] == _LINK:
                self.link = self._data[at + 8 : at + 8 + size]
            at += 8 + size
        if at != end:
            raise ValueError("does not end after its last extension")


def _positions(data: bytes, at: int, count: int) -> tuple[list[int], int]:
    """Return which bits of a bitmap are set, and the offset of its end; see git's `ewah/ewok.h`.

    Raises:
        ValueError: If the bitmap has more than `count` bits, or is cut off.
    """
    end = at + 8 + _WORD_BYTES * _number(data, at + 4)
    if end + 4 > len(data):
        raise ValueError("cut off")
    words = (
        int.from_bytes(data[place : place + _WORD_BYTES], "big")
        for place in range(at + 8, end, _WORD_BYTES)
    )
    found: list[int] = []
    bit = 0
    for marker in words:  # a marker has two counts: of equal words, and of literal words after it
        equal, literal = _WORD_BITS * (marker >> 1 & 0xFFFF_FFFF), marker >> 33
        if bit + equal > count + _WORD_BITS:
            raise ValueError("more bits than entries")
        found += range(bit, bit + equal) if marker & 1 else ()
        bit += equal
        for _ in range(literal):
            word = next(words, None)
            if word is None:
                raise ValueError("cut off")
            found += (bit + place for place in range(_WORD_BITS) if word >> place & 1)
            bit += _WORD_BITS
    if found and found[-1] >= count:
        raise ValueError("more bits than entries")
    return found, end + 4


def _hash_bytes(data: bytes) -> int:
    """Return the length of the index's hashes, found by the checksum at its end.

    Raises:
        ValueError: If no checksum fits the content.
    """
    for name in _HASHES:
        found = hashlib.new(name, usedforsecurity=False)
        size = found.digest_size
        found.update(memoryview(data)[:-size])
        if found.digest() == data[-size:]:
            return size
    if not any(data[-20:]):  # `index.skipHash`; a SHA-256 index then fails further on
        return 20
    raise ValueError("damaged")


def _number(data: bytes, at: int) -> int:
    if at + 4 > len(data):
        raise ValueError("cut off")
    return int.from_bytes(data[at : at + 4], "big")


def _varint(data: bytes, at: int, most: int) -> tuple[int, int]:
    """Return a number, encoded like an offset in a pack file, and the offset of its end.

    Raises:
        ValueError: If the number is greater than `most`.
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

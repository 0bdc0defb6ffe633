"""Checks that all files of a table lie in its folder, before LanceDB opens it. Pure Python.

A table of Lance may name other places for its files, be it a folder of this machine or a bucket, as
a shallow clone does. LanceDB would read them with the rights and keys of whoever opens the table.
"""

import math
import os
import struct
from pathlib import Path

from vector_index_mcp.errors import DamagedIndexError
from vector_index_mcp.objects import within

# How a manifest of Lance ends: where its message begins, two versions, and a mark. The message is
# one of Protocol Buffers; its length stands before it, and its field 18 names other places.
_END, _LENGTH, _MARK = struct.Struct("<Q4x4s"), struct.Struct("<I"), b"LANC"
_OTHER_PLACES = 18
_LARGEST_MANIFEST_BYTES = 100_000_000
_LONGEST_NUMBER_BYTES = 10


def check(folder: Path, most_entries: float = math.inf) -> None:
    """Check that the tables in `folder` consist of plain files in it, `most_entries` at most.

    Raises:
        DamagedIndexError: If they do not; its message goes on after "the table".
    """
    count = 0
    for above, folders, names in within.walk(folder, _refuse):
        count += len(folders) + len(names)
        if count > most_entries:
            raise DamagedIndexError(f"has more than {most_entries:,} files")
        for name in (*folders, *names):
            path = Path(above, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise DamagedIndexError(f"holds {name[:100]!r}, which is no plain file")
            if ".manifest" in name and path.is_file():
                _check_manifest(above, name)


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise DamagedIndexError(f"cannot be read as a whole: {error.strerror}") from error


def _check_manifest(folder: str, name: str) -> None:
    try:
        with within.opened(Path(folder), name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > _LARGEST_MANIFEST_BYTES:
                raise ValueError("a manifest is too large")
            data = file.read(size)
        fields = _fields_in(data)
    except (ValueError, struct.error, IndexError) as error:
        raise DamagedIndexError("is damaged or incomplete") from error
    if _OTHER_PLACES in fields:
        raise DamagedIndexError("names files that lie elsewhere")


def _fields_in(manifest: bytes) -> set[int]:
    """Return the numbers of the fields in a manifest of Lance."""
    start, mark = _END.unpack(manifest[-_END.size :])
    [length] = _LENGTH.unpack(manifest[start:][: _LENGTH.size])
    message = manifest[start + _LENGTH.size :][:length]
    if mark != _MARK or len(message) != length:
        raise ValueError("no manifest of Lance")
    found, at = set(), 0
    while at < length:
        key, at = _number_at(message, at)
        found.add(key >> 3)
        kind = key & 7
        size, after = _number_at(message, at) if kind in (0, 2) else (0, at)
        steps = {0: after, 1: at + 8, 2: after + size, 5: at + 4}
        if kind not in steps:
            raise ValueError("an unknown kind of field")
        at = steps[kind]
    if at != length:
        raise ValueError("a field is cut off")
    return found


def _number_at(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a position, and the position after it."""
    number = 0
    for place in range(_LONGEST_NUMBER_BYTES):
        byte = message[at + place]
        number |= (byte & 127) << (7 * place)
        if byte < 128:
            return number, at + place + 1
    raise ValueError("a number is too long")

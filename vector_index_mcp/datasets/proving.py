"""Checks in a child process whether a table that somebody else has made can be searched.

Every row is read and checked, and the table is searched once, by words and by meaning. If its files
crash the library, they crash only this process. Before that, nothing in them may lead elsewhere: a
table of Lance may name other places for its files, be it a folder of this machine or a bucket.
"""

import asyncio
import json
import logging
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from vector_index_mcp.datasets import rows, table
from vector_index_mcp.datasets.limits import MOST_ENTRIES
from vector_index_mcp.datasets.manifest import FACTS
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.foreign import examine
from vector_index_mcp.errors import StoreError
from vector_index_mcp.processes import confined

if sys.platform != "win32":
    import resource

_log = logging.getLogger(__name__)

_ADDRESS_BYTES = 16_000_000_000  # most of what LanceDB reserves it never uses
# What it does use Linux counts apart: a few rows may take gigabytes, packed into a small file. What
# a service does too, opening and searching, must take less than reading every row.
_SEARCH_BYTES, _READ_BYTES, _BYTES_PER_BYTE = 1_000_000_000, 4_000_000_000, 2
_STACK_BYTES_PER_CORE = 32_000_000  # several libraries start a thread for each
_DAMAGED = "its table is damaged or incomplete; get the dataset once more"
# How a manifest of Lance ends: where its message begins, two versions, and a mark. The message is
# one of Protocol Buffers; its length stands before it, and its field 18 names other places.
_END, _LENGTH, _MARK = struct.Struct("<Q4x4s"), struct.Struct("<I"), b"LANC"
_OTHER_PLACES = 18
_LARGEST_MANIFEST_BYTES = 100_000_000
_LONGEST_NUMBER_BYTES = 10


def main(_: IO[bytes], sink: IO[bytes], __: Callable[[], None], *arguments: str) -> None:
    """Check a table; write the error to `sink` if that fails.

    The arguments are the path of its folder, and how many bytes its files take up.
    """
    confined.begin()
    confined.bound_memory(_ADDRESS_BYTES)
    try:
        asyncio.run(_prove(Path(arguments[0]), _BYTES_PER_BYTE * int(arguments[1])))
        answer: dict[str, Any] = {}
    except BadDatasetError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "searching it needs more memory than is allowed for a dataset"}
    except (StoreError, LookupError, TypeError, ValueError, AttributeError) as error:
        _log.warning("%s: %s", arguments[0], error)
        answer = {"error": _DAMAGED}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def _bound_data(most: int) -> None:
    if sys.platform == "linux":
        most = max(most + _STACK_BYTES_PER_CORE * (os.cpu_count() or 1), 1)  # 0 would be no limit
        _, greatest = resource.getrlimit(resource.RLIMIT_DATA)
        if greatest != resource.RLIM_INFINITY:
            most = min(most, greatest)
        resource.setrlimit(resource.RLIMIT_DATA, (most, greatest))


async def _prove(folder: Path, more_bytes: int) -> None:
    facts = table.facts_of(folder)
    check_places(folder)
    _bound_data(_SEARCH_BYTES + more_bytes)
    index = await Index.open(str(folder))
    if index is None or index.manifest.chunker != rows.CHUNKER:
        raise BadDatasetError("its table was made by another version of this program; make it anew")
    count, dimension = await index.store.count(), index.store.dimension
    if (count, dimension) != (facts.count, facts.dimension):
        raise BadDatasetError(
            f"its table has {count} rows of {dimension} dimensions, but its {FACTS} says "
            f"{facts.count} of {facts.dimension}; get the dataset once more"
        )
    somewhere = np.full(facts.dimension, facts.dimension**-0.5, "<f4")
    texts = index.store.unread
    nearest, _ = await texts.nearest(somewhere, 10, "cosine")
    for found in (await texts.matching(["the"], 10), nearest):
        await texts.vectors_of(found)
        for row in await texts.read([each.chunk for each in found], rows.COLUMNS):
            rows.shown(row)
    index.close()
    _bound_data(_READ_BYTES + more_bytes)
    await examine(str(folder), facts.dimension)


def check_places(folder: Path) -> None:
    """Check that no file of a table leads out of its folder.

    Raises:
        BadDatasetError: If one does, or if there are files that are no files of a table.
    """
    count = 0
    for above, folders, names in os.walk(folder):
        count += len(folders) + len(names)
        if count > MOST_ENTRIES:
            raise BadDatasetError(f"its table has more than {MOST_ENTRIES:,} files")
        for name in (*folders, *names):
            path = Path(above, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise BadDatasetError(f"its table holds {name[:100]!r}, which is no plain file")
            if ".manifest" in name and path.is_file():
                _check_manifest(path)


def _check_manifest(path: Path) -> None:
    if path.stat().st_size > _LARGEST_MANIFEST_BYTES:
        raise BadDatasetError(_DAMAGED)
    try:
        fields = _fields_in(path.read_bytes())
    except (ValueError, struct.error, IndexError) as error:
        raise BadDatasetError(_DAMAGED) from error
    if _OTHER_PLACES in fields:
        raise BadDatasetError(
            "its table names files that lie elsewhere, and not in the dataset; have it made anew"
        )


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

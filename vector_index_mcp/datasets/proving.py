"""Checks in a child process whether a table that somebody else has made can be searched.

Every row is read and checked, and the table is searched once, by words and by meaning. If its files
crash the library, they crash only this process.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from vector_index_mcp.datasets import rows, table
from vector_index_mcp.datasets.limits import MOST_ENTRIES
from vector_index_mcp.datasets.manifest import FACTS
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.engine.store import places
from vector_index_mcp.engine.store.foreign import examine
from vector_index_mcp.errors import DamagedIndexError, StoreError
from vector_index_mcp.processes import confined

if sys.platform != "win32":
    import resource

_ADDRESS_BYTES = 16_000_000_000  # most of what LanceDB reserves it never uses
# What it does use Linux counts apart: a few rows may take gigabytes, packed into a small file. What
# a service does too, opening and searching, must take less than reading every row.
_SEARCH_BYTES, _READ_BYTES, _BYTES_PER_BYTE = 1_000_000_000, 4_000_000_000, 2
_STACK_BYTES_PER_CORE = 32_000_000  # several libraries start a thread for each
_DAMAGED = "its table is damaged or incomplete; get the dataset once more"


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
        answer = {"error": _DAMAGED, "cause": str(error)}
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
    index = await table.opened(folder)
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
    """Check that all files of a table lie in its folder.

    Raises:
        BadDatasetError: If one does not, or if there are files that are no files of a table.
    """
    try:
        places.check(folder, MOST_ENTRIES)
    except DamagedIndexError as error:
        raise BadDatasetError(f"its table {error}; have it made again") from error

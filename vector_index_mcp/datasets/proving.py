"""Checks in a child process whether a table that somebody else has made can be searched.

The table is opened and searched once, by words and by meaning. If its files crash the library, they
crash only this process.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from vector_index_mcp.datasets import rows, table
from vector_index_mcp.datasets.manifest import FACTS
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.engine.store import Index
from vector_index_mcp.errors import StoreError
from vector_index_mcp.processes import confined

_log = logging.getLogger(__name__)

_ADDRESS_BYTES = 16_000_000_000


def main(_: IO[bytes], sink: IO[bytes], __: Callable[[], None], *arguments: str) -> None:
    """Search the table in a folder; write the error to `sink` if that fails."""
    confined.begin()
    confined.bound_memory(_ADDRESS_BYTES)
    try:
        asyncio.run(_prove(Path(arguments[0])))
        answer: dict[str, Any] = {}
    except BadDatasetError as error:
        answer = {"error": str(error)}
    except StoreError as error:
        _log.warning("%s: %s", arguments[0], error)
        answer = {"error": "its table is damaged or incomplete; get the dataset once more"}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


async def _prove(folder: Path) -> None:
    facts = table.facts_of(folder)
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

"""Checks whether a fetched index can be used. Runs in a child process of its own.

It reads the whole index and searches it once. Content that crashes a process then crashes only this
one. It writes the table of files and the manifest anew from checked values, so that only the table
of chunks comes from the store.
"""

import asyncio
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.foreign import examine
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.errors import StoreError
from vector_index_mcp.indexing.mirroring import records
from vector_index_mcp.processes import confined

_log = logging.getLogger(__name__)

_ADDRESS_BYTES = 16_000_000_000
_FOUND = 10


def main(source: IO[bytes], sink: IO[bytes], _: Callable[[], None]) -> None:
    """Read a line of JSON that describes the index, check and complete it, and answer in JSON.

    The line arrives some time after the start, so that this process can start during the fetch.
    """
    confined.begin()
    confined.bound_memory(_ADDRESS_BYTES)
    question = source.readline()
    if not question:
        return
    try:
        asked = json.loads(question)
        known = records.loaded(Path(asked["records"]).read_bytes())
        answer: dict[str, Any] = {"chunks": asyncio.run(_prove(asked, known))}
    except StoreError as error:
        _log.warning("%s", error)
        answer = {"error": str(error)}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


async def _prove(asked: dict[str, Any], known: list[FileRecord]) -> int:
    uri, model = asked["folder"], ModelIdentity(**asked["model"])
    count = await examine(uri, model.dimension)
    manifest = Manifest(owner=asked["owner"], chunker=asked["chunker"], model=model)
    index = await Index.assemble(uri, manifest, known)
    somewhere = np.full(model.dimension, model.dimension**-0.5, "<f4")
    await index.store.nearest(somewhere, _FOUND)
    await index.store.matching(["the"], _FOUND)
    index.close()
    return count

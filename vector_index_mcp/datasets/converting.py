"""A foreign index as one of our tables; runs in a child process of its own.

What is foreign may be made to break whoever reads it: here that costs this process, whose memory is
bounded by the system and whose time by the parent. The table appears in one step.
"""

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from vector_index_mcp.datasets import finding, flat, kinds, metadata, table
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART, Facts
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.processes import confined

if TYPE_CHECKING:
    from vector_index_mcp.engine.types import Vectors

_BATCH = 2_000  # rows: 3 MB of vectors, and some MB of text
_ADDRESS_BYTES = 16_000_000_000
_UNIT = 1e-3  # by which the length of a vector may differ from one


def main(source: IO[bytes], sink: IO[bytes], _: Callable[[], None], *arguments: str) -> None:
    """Convert the dataset that is named by index, metadata and folder; say why if it cannot be."""
    confined.begin()
    confined.bound_memory(_ADDRESS_BYTES)
    index, texts, folder = map(Path, arguments)
    try:
        convert(index, texts, folder)
        answer: dict[str, Any] = {}
    except BadDatasetError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "it needs more memory than a dataset is given"}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def convert(index: Path, texts: Path, folder: Path) -> None:
    """Make a table of ours of a dataset.

    Args:
        index: The file of the index, or its folder.
        texts: The file of the metadata.
        folder: Where the table appears.

    Raises:
        BadDatasetError: If the dataset is not as it should be.
    """
    found = _vectors_in(finding.file_in(index))
    known = metadata.read(texts)
    count, dimension = found.vectors.shape
    if count != len(known.texts):
        raise BadDatasetError(
            f"the index has {count} vectors, and the metadata {len(known.texts)} documents"
        )
    part = folder.with_name(f"{folder.name}.{os.getpid()}{PART}")
    is_unit = asyncio.run(_filled(part, found, known, dimension))
    table.write_facts(part, Facts(known.model, dimension, count, found.metric, is_unit))
    try:
        part.rename(folder)
    except OSError:  # another process was faster, or has left something that is of no use
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)


def _vectors_in(file: Path) -> flat.Flat:
    try:
        with file.open("rb") as opened:
            magic = opened.read(4)
    except OSError as error:
        raise BadDatasetError(f"the index cannot be read ({error})") from error
    return kinds.read(file) if kinds.is_one(magic) else flat.read(file)


async def _filled(folder: Path, found: flat.Flat, known: metadata.Metadata, dimension: int) -> bool:
    """Write all rows; whether their vectors are of unit length."""
    is_unit = True
    async with table.making(folder, ModelIdentity(known.model, "", dimension)) as rows:
        for start in range(0, len(known.texts), _BATCH):
            vectors = np.array(found.vectors[start : start + _BATCH])
            is_unit = _checked(vectors, start) and is_unit
            await rows.add(known.texts[start : start + _BATCH], vectors)
    return is_unit


def _checked(vectors: "Vectors", start: int) -> bool:
    """Whether vectors are of unit length.

    Raises:
        BadDatasetError: If one of them is none.
    """
    if not np.isfinite(vectors).all():
        bad = start + int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise BadDatasetError(f"vector {bad} of the index is not finite")
    lengths = np.linalg.norm(vectors.astype("<f8"), axis=1)
    return bool((np.abs(lengths - 1) <= _UNIT).all())

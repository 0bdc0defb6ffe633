"""Converts a foreign index into a table of ours, in a child process of its own.

A foreign file may be made to crash its reader. Here it can crash only this process, whose memory
the system limits and whose time the parent limits. The table appears in one step.
"""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from vector_index_mcp.datasets import flat, kinds, metadata, table
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART, Facts
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import VectorIndexError, counted
from vector_index_mcp.files.plain import opened
from vector_index_mcp.processes import confined

if TYPE_CHECKING:
    import numpy.typing as npt

    from vector_index_mcp.engine.types import Vectors

_BATCH = 2_000  # rows: 3 MB of vectors, and some MB of text
# LanceDB reserves much address space that it does not use. Parsed texts take five times their size.
_ADDRESS_BYTES, _BYTES_PER_BYTE = 3_500_000_000, 8
_NOTHING = 1e-6  # a shorter vector counts as zero
_UNIT = 1e-3  # how much the length of a unit vector may differ from 1


def main(source: IO[bytes], sink: IO[bytes], _: Callable[[], None], *arguments: str) -> None:
    """Convert a dataset; write the error to `sink` if that fails.

    The arguments are the paths of its index, its metadata and the table's new folder.
    """
    confined.begin()
    index, texts, folder = map(Path, arguments)
    sizes = (file.stat().st_size for file in (index, texts))
    confined.bound_memory(_ADDRESS_BYTES + _BYTES_PER_BYTE * sum(sizes))
    try:
        convert(index, texts, folder)
        answer: dict[str, Any] = {}
    except BadDatasetError as error:
        answer = {"error": str(error)}
    except MemoryError:
        answer = {"error": "converting it needs more memory than is allowed for a dataset"}
    except (VectorIndexError, OSError) as error:
        answer = {"error": f"it cannot be converted here ({error})"}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def convert(index: Path, texts: Path, folder: Path) -> None:
    """Convert a dataset into a table of ours.

    Args:
        index: The file of the index.
        texts: The file of the metadata.
        folder: The new table's folder.

    Raises:
        BadDatasetError: If the dataset is not valid.
    """
    found = vectors_in(index)
    known = metadata.read(texts)
    count, dimension = found.vectors.shape
    if count != len(known.texts):
        raise BadDatasetError(
            f"the index has {counted(count, 'vector')}, and the metadata "
            f"{counted(len(known.texts), 'document')}"
        )
    part = folder.with_name(f"{folder.name}.{os.getpid()}{PART}")
    is_unit = asyncio.run(_filled(part, found, known, dimension))
    table.write_facts(part, Facts(known.model, dimension, count, found.metric, is_unit))
    table.put_in_place(part, folder)


def vectors_in(file: Path) -> flat.Flat:
    """Read the vectors of a foreign index.

    Raises:
        BadDatasetError: If the index cannot be read.
    """
    try:
        with opened(file) as index:
            magic = index.read(4)
    except OSError as error:
        raise BadDatasetError(f"the index cannot be read ({error})") from error
    return kinds.read(file) if kinds.is_one(magic) else flat.read(file)


async def _filled(folder: Path, found: flat.Flat, known: metadata.Metadata, dimension: int) -> bool:
    """Write all rows to a table in `folder`; return whether all vectors have unit length."""
    is_unit = True
    async with table.making(folder, ModelIdentity(known.model, "", dimension)) as rows:
        for start in range(0, len(known.texts), _BATCH):
            vectors = np.array(found.vectors[start : start + _BATCH])
            lengths = _lengths_of(vectors, start)
            is_something = lengths > _NOTHING
            is_unit = is_unit and bool((np.abs(lengths[is_something] - 1) <= _UNIT).all())
            # A zero vector, as of an empty text, has no direction: only words find such a row.
            usable = [
                v if is_one else None for v, is_one in zip(vectors, is_something, strict=True)
            ]
            await rows.add(known.texts[start : start + _BATCH], usable)
    return is_unit


def _lengths_of(vectors: "Vectors", start: int) -> "npt.NDArray[np.float64]":
    """Return the lengths of vectors; `start` is the number of the first one, for the message.

    Raises:
        BadDatasetError: If a vector contains a number that is not finite.
    """
    if not np.isfinite(vectors).all():
        bad = start + int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise BadDatasetError(f"vector {bad} of the index is not finite")
    lengths: npt.NDArray[np.float64] = np.linalg.norm(vectors.astype("<f8"), axis=1)
    return lengths

"""A foreign index as one of our tables; runs in a child process of its own.

What is foreign may be made to break whoever reads it: here that costs this process, whose memory is
bounded by the system and whose time by the parent. The table appears in one step.
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
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.processes import confined

if TYPE_CHECKING:
    import numpy.typing as npt

    from vector_index_mcp.engine.types import Vectors

_BATCH = 2_000  # rows: 3 MB of vectors, and some MB of text
# LanceDB reserves much that it does not use. Texts take five times their size once they are read.
_ADDRESS_BYTES, _BYTES_PER_BYTE = 3_500_000_000, 8
_NOTHING = 1e-6
_UNIT = 1e-3  # by which the length of a vector may differ from one


def main(source: IO[bytes], sink: IO[bytes], _: Callable[[], None], *arguments: str) -> None:
    """Convert the dataset that is named by index, metadata and folder; say why if it cannot be."""
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
        answer = {"error": "it needs more memory than a dataset is given"}
    except (VectorIndexError, OSError) as error:
        answer = {"error": f"it cannot be converted here ({error})"}
    sink.write(json.dumps(answer).encode() + b"\n")
    sink.flush()


def convert(index: Path, texts: Path, folder: Path) -> None:
    """Make a table of ours of a dataset.

    Args:
        index: The file of the index.
        texts: The file of the metadata.
        folder: Where the table appears.

    Raises:
        BadDatasetError: If the dataset is not as it should be.
    """
    found = vectors_in(index)
    known = metadata.read(texts)
    count, dimension = found.vectors.shape
    if count != len(known.texts):
        raise BadDatasetError(
            f"the index has {count} vectors, and the metadata {len(known.texts)} documents"
        )
    part = folder.with_name(f"{folder.name}.{os.getpid()}{PART}")
    is_unit = asyncio.run(_filled(part, found, known, dimension))
    table.write_facts(part, Facts(known.model, dimension, count, found.metric, is_unit))
    table.put_in_place(part, folder)


def vectors_in(file: Path) -> flat.Flat:
    """The vectors of a foreign index.

    Raises:
        BadDatasetError: If it cannot be read.
    """
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
            lengths = _lengths_of(vectors, start)
            is_something = lengths > _NOTHING
            is_unit = is_unit and bool((np.abs(lengths[is_something] - 1) <= _UNIT).all())
            # A vector of nothing, as of an empty text, is near to nothing.
            said = [v if is_one else None for v, is_one in zip(vectors, is_something, strict=True)]
            await rows.add(known.texts[start : start + _BATCH], said)
    return is_unit


def _lengths_of(vectors: "Vectors", start: int) -> "npt.NDArray[np.float64]":
    """The lengths of vectors.

    Raises:
        BadDatasetError: If one of them is no vector.
    """
    if not np.isfinite(vectors).all():
        bad = start + int(np.argmin(np.isfinite(vectors).all(axis=1)))
        raise BadDatasetError(f"vector {bad} of the index is not finite")
    lengths: npt.NDArray[np.float64] = np.linalg.norm(vectors.astype("<f8"), axis=1)
    return lengths

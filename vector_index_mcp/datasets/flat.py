"""Reads flat FAISS indexes without FAISS.

The layout is that of faiss/impl/index_write.cpp (write_index_header, write_index of IndexFlat): a
header with magic, dimension, count, two constants, whether it is trained, metric, and how many
numbers follow; then the numbers of all vectors. Everything is little endian, numbers are float32.
"""

import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vector_index_mcp.datasets.limits import MOST_DIMENSIONS, MOST_NUMBERS
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import Metric
from vector_index_mcp.files.plain import opened

if TYPE_CHECKING:
    from vector_index_mcp.engine.types import Vectors

_HEADER = struct.Struct("<4siqqqBiQ")
_DUMMY = 1 << 20
_NUMBER_BYTES = 4
_METRICS: dict[bytes, tuple[int, Metric]] = {b"IxFI": (0, "product"), b"IxF2": (1, "distance")}
"""The metric's number in the file, and its meaning, by magic."""


@dataclass(frozen=True, slots=True)
class Flat:
    """The vectors of a flat index."""

    vectors: "Vectors"
    """Memory-mapped from the file; float32, shape (count, dimension), in the order of adding."""
    metric: Metric
    """Whether near vectors have a large inner product, or a small distance."""


def read(path: Path) -> Flat:
    """Read a flat index; the sizes in its header are checked before any memory is allocated.

    Raises:
        BadDatasetError: If the file is no flat index, or is damaged.
    """
    try:
        with opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            header = file.read(_HEADER.size)
            found = _understood(header, size)
            if found is None:
                return Flat(np.empty((0, 1), np.float32), "product")
            count, dimension, metric = found
            numbers = np.memmap(
                file, np.dtype("<f4"), "r", offset=_HEADER.size, shape=(count, dimension)
            )
    except (OSError, ValueError) as error:
        raise BadDatasetError(f"the index cannot be read ({error})") from error
    return Flat(numbers, metric)


def _understood(header: bytes, size: int) -> tuple[int, int, Metric] | None:
    """Return count, dimension and metric; None for an index without vectors."""
    magic = header[:4]
    if magic not in _METRICS or len(header) < _HEADER.size:
        raise BadDatasetError("the index is no flat index of FAISS")
    _, dimension, count, first, second, is_trained, number, numbers = _HEADER.unpack(header)
    wanted, metric = _METRICS[magic]
    if (first, second, is_trained, number) != (_DUMMY, _DUMMY, 1, wanted):
        raise BadDatasetError("the header of the index is damaged")
    if not (0 < dimension <= MOST_DIMENSIONS and count >= 0 and count * dimension == numbers):
        raise BadDatasetError("the header of the index names sizes that do not fit together")
    if numbers > MOST_NUMBERS:
        raise BadDatasetError(f"the index has {count} vectors, which are too many")
    if size != _HEADER.size + numbers * _NUMBER_BYTES:
        raise BadDatasetError("the index is cut off, or longer than its header says")
    return (count, dimension, metric) if count else None

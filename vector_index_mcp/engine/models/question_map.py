"""Turns the vector of a question towards those of the code that answers it.

The default model was trained to bring sentences of the same meaning together, and the words of a
chunk are no sentence. A linear map makes up for a part of that. It was learned from labelled
questions, and moves only the vectors of questions, so that no chunk is embedded again.
benchmarks/question_map.py learns the map, and measures it on packages that it was not learned from.
"""

import gzip
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from vector_index_mcp.engine.types import Vectors

UNIT = 0.0032
"""What 1 means in the file: with a sixteenth of it, the map is as good and takes twice the room."""
FILE = Path(__file__).with_suffix(".npy.gz")
"""The map without its diagonal of ones: int8 array of shape (dimension, dimension)."""


def loaded(file: Path) -> Any:
    """Return the array in a file of numpy's that gzip has packed."""
    with gzip.open(file) as data:
        return np.load(data)


def turned(vectors: Vectors) -> Vectors:
    """Return the vectors of questions as they search for code.

    Args:
        vectors: float32 array whose last axis is the dimension; vectors of unit length.

    Returns:
        The same, of the same shape. Vectors that were shortened to fewer dimensions are left as
        they are.
    """
    table = _table()
    return moved(vectors, table) if vectors.shape[-1] == len(table) else vectors


def moved(vectors: Vectors, table: Vectors) -> Vectors:
    """Return `vectors`, plus their products with `table`, in unit length."""
    found = vectors + vectors @ table
    longer: Vectors = found / np.linalg.norm(found, axis=-1, keepdims=True)
    return longer


def read(file: Path) -> Vectors:
    """Return the map in `file`: float32 array of shape (dimension, dimension)."""
    table: Vectors = loaded(file).astype(np.float32) * np.float32(UNIT)
    return table


@cache
def _table() -> Vectors:
    return read(FILE)

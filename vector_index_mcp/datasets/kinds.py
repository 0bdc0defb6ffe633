"""Reads the vectors of FAISS indexes that are not flat, with FAISS itself (extra `faiss`).

This runs only in the converting process, whose memory and time are limited. Which kinds of index
give their vectors back was measured with faiss-cpu 1.15: flat lists and graphs give them exactly,
and eight-bit quantization with a cosine of 0.9999. Product quantization and rotations lose too much
(0.7 to 0.9), and a crafted NSG index keeps FAISS busy without end.
"""

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vector_index_mcp.datasets.flat import Flat
from vector_index_mcp.datasets.limits import MOST_DIMENSIONS, MOST_NUMBERS
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.files.plain import opened

if TYPE_CHECKING:
    from vector_index_mcp.engine.types import Vectors

_START = struct.Struct("<4siq")  # how every index of vectors begins: kind, dimension, count
_READ = {
    b"IwFl": "IVF", b"IwSq": "IVF with scalar quantization", b"IHNf": "HNSW",
    b"IHNs": "HNSW with scalar quantization", b"IxSQ": "scalar quantization",
    b"IxMp": "vectors with ids", b"IxM2": "vectors with ids",
}  # fmt: skip
_REFUSED = {
    b"IwPQ": "IVF with product quantization", b"IxPq": "product quantization",
    b"IxPo": "product quantization", b"IxPT": "transformed vectors", b"INSf": "NSG",
    b"IHNp": "HNSW with product quantization", b"IwPR": "IVF with product quantization",
}  # fmt: skip
_ANEW = "write it anew as a flat index (faiss.IndexFlatIP)"
_MOST_BYTES = 2 << 30
_MOST_LOOPS = 100_000_000
_PRODUCT = 0  # faiss.METRIC_INNER_PRODUCT


def is_one(magic: bytes) -> bool:
    """Return whether an index that begins with `magic` is of a known kind that is not flat."""
    return magic in _READ or magic in _REFUSED


def read(path: Path) -> Flat:
    """Read the vectors of an index, in the order of their documents.

    Raises:
        BadDatasetError: If the index is of a kind that does not give its vectors back, or is
            damaged, or FAISS is not installed.
    """
    with opened(path) as file:
        start = file.read(_START.size)
    kind = _READ.get(start[:4])
    if kind is None:
        raise BadDatasetError(
            f"the index is of the kind {_REFUSED.get(start[:4], 'unknown')}, which does not give "
            f"its vectors back; {_ANEW}"
        )
    _check_sizes(start, path.stat().st_size)
    try:
        import faiss
    except ImportError as error:
        raise BadDatasetError(
            f"the index is of the kind {kind}, which needs FAISS: install it with "
            f'`pip install "vector-index-mcp[faiss]"`, or {_ANEW}'
        ) from error
    faiss.set_deserialization_vector_byte_limit(_MOST_BYTES)
    faiss.set_deserialization_loop_limit(_MOST_LOOPS)
    try:
        owner = faiss.read_index(str(path))  # all inner objects point into it: keep it alive
        return _vectors_of(faiss, owner)
    except (RuntimeError, AssertionError, ValueError, AttributeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise BadDatasetError(f"the index cannot be read ({first[:200]})") from error


def _check_sizes(start: bytes, size: int) -> None:
    if len(start) < _START.size:
        raise BadDatasetError("the index is cut off")
    _, dimension, count = _START.unpack(start)
    if not (0 < dimension <= MOST_DIMENSIONS and 0 <= count <= size):
        raise BadDatasetError("the header of the index names sizes that do not fit together")
    if count * dimension > MOST_NUMBERS:
        raise BadDatasetError(f"the index has {count} vectors, which are too many")


def _vectors_of(faiss: Any, owner: Any) -> Flat:
    inner, ids = owner, None
    if isinstance(owner, faiss.IndexIDMap):
        inner, ids = faiss.downcast_index(owner.index), faiss.vector_to_array(owner.id_map).copy()
    if isinstance(inner, faiss.IndexIVF):
        own, vectors = _of_lists(faiss, inner)
        ids = own if ids is None else ids[own]
    elif type(inner).__name__ in _GIVING_BACK:
        vectors = inner.reconstruct_n(0, inner.ntotal)
    else:
        raise BadDatasetError(f"the index holds a {type(inner).__name__[:50]}; {_ANEW}")
    metric = "product" if owner.metric_type == _PRODUCT else "distance"
    return Flat(vectors if ids is None else _ordered(vectors, ids), metric)  # type: ignore[arg-type]


_GIVING_BACK = frozenset(
    {"IndexFlat", "IndexFlatIP", "IndexFlatL2", "IndexHNSWFlat", "IndexHNSWSQ"}
    | {"IndexScalarQuantizer"}
)


def _of_lists(faiss: Any, index: Any) -> "tuple[Any, Vectors]":
    """Return the ids and the vectors of an inverted file, in the same order."""
    if not isinstance(index, faiss.IndexIVFFlat | faiss.IndexIVFScalarQuantizer):
        raise BadDatasetError(f"the index holds a {type(index).__name__[:50]}; {_ANEW}")
    vectors = np.empty((index.ntotal, index.d), "<f4")
    ids = np.empty(index.ntotal, np.int64)
    at = 0
    for number in range(index.nlist):
        size = index.invlists.list_size(number)
        if at + size > index.ntotal:
            raise BadDatasetError("the lists of the index hold more vectors than its header says")
        if size:
            found = faiss.rev_swig_ptr(index.invlists.get_ids(number), size)
            ids[at : at + size] = found
        for offset in range(size):
            index.reconstruct_from_offset(number, offset, faiss.swig_ptr(vectors[at + offset]))
        at += size
    if at != index.ntotal:
        raise BadDatasetError("the lists of the index hold fewer vectors than its header says")
    return ids, vectors


def _ordered(vectors: "Vectors", ids: Any) -> "Vectors":
    """Sort vectors by their ids, which are the numbers of the documents."""
    if sorted(ids.tolist()) != list(range(len(vectors))):
        raise BadDatasetError(
            "the ids of the index are not the numbers of its documents, from 0 on; write the index "
            "anew without ids, in the order of the documents"
        )
    ordered = np.empty_like(vectors)
    ordered[ids] = vectors
    return ordered

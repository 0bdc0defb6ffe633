"""Flat FAISS indexes are read to the number, and nothing else is taken for one."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shelves import write_flat

from vector_index_mcp.datasets import flat
from vector_index_mcp.datasets.refusal import BadDatasetError

HEADER_BYTES = 45
# What faiss-cpu 1.15 writes for IndexFlatIP(2) with the rows (1, 0) and (0, 1).
OF_FAISS = (
    b"IxFI" + struct.pack("<i", 2) + struct.pack("<q", 2) + struct.pack("<qq", 1 << 20, 1 << 20)
    + b"\1" + struct.pack("<i", 0) + struct.pack("<Q", 4) + struct.pack("<4f", 1, 0, 0, 1)
)  # fmt: skip


def written(folder, data):
    path = folder / "docs.index"
    path.write_bytes(data)
    return path


def test_an_index_of_faiss_is_read_to_the_number(tmp_path):
    found = flat.read(written(tmp_path, OF_FAISS))
    assert found.metric == "product"
    assert found.vectors.tolist() == [[1, 0], [0, 1]]
    write_flat(tmp_path / "new.index", [[1, 0], [0, 1]])  # as tests write it
    assert (tmp_path / "new.index").read_bytes() == OF_FAISS


@pytest.mark.parametrize("metric", ["product", "distance"])
def test_what_is_written_is_read(tmp_path, metric):
    vectors = np.random.default_rng(0).normal(size=(7, 5)).astype("<f4")
    write_flat(tmp_path / "docs.index", vectors, metric)
    found = flat.read(tmp_path / "docs.index")
    assert (found.vectors == vectors).all()
    assert found.metric == metric


def test_an_index_without_vectors_is_empty(tmp_path):
    write_flat(tmp_path / "docs.index", np.empty((0, 5)))
    assert len(flat.read(tmp_path / "docs.index").vectors) == 0


@pytest.mark.parametrize("size", [0, 3, HEADER_BYTES - 1, len(OF_FAISS) - 1])
def test_what_is_cut_off_is_refused(tmp_path, size):
    with pytest.raises(BadDatasetError, match="no flat index|cut off"):
        flat.read(written(tmp_path, OF_FAISS[:size]))


def test_what_is_longer_than_it_says_is_refused(tmp_path):
    with pytest.raises(BadDatasetError, match="longer"):
        flat.read(written(tmp_path, OF_FAISS + b"\0"))


@given(
    dimension=st.integers(-(2**31), 2**31 - 1),
    count=st.integers(-(2**63), 2**63 - 1),
    numbers=st.integers(0, 2**64 - 1),
)
def test_no_header_makes_it_believe_sizes_that_are_not_there(
    tmp_path_factory, dimension, count, numbers
):
    if (dimension, count, numbers) == (2, 2, 4):
        return
    header = struct.pack("<4siqqqBiQ", b"IxFI", dimension, count, 1 << 20, 1 << 20, 1, 0, numbers)
    path = written(tmp_path_factory.mktemp("crafted"), header + OF_FAISS[HEADER_BYTES:])
    with pytest.raises(BadDatasetError):
        flat.read(path)


def test_a_pickle_is_no_index(tmp_path):
    with pytest.raises(BadDatasetError, match="no flat index"):
        flat.read(written(tmp_path, b"\x80\x04\x95" + bytes(100)))

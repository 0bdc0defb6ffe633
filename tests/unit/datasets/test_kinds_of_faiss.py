"""Each kind of FAISS index gives its vectors back in the order of its documents, or says why."""

import sys
from random import Random

import numpy as np
import pytest

from vector_index_mcp.datasets import kinds
from vector_index_mcp.datasets.refusal import BadDatasetError

faiss = pytest.importorskip("faiss")

DIMENSION, COUNT, NEIGHBOURS = 16, 700, 10


def vectors():
    found = np.random.default_rng(0).normal(size=(COUNT, DIMENSION)).astype("f4")
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def ids():
    return np.random.default_rng(1).permutation(COUNT).astype("i8")


def made(description, metric=faiss.METRIC_INNER_PRODUCT, numbers=None):
    """An index of that kind, which searches everything it has."""
    index = faiss.index_factory(DIMENSION, description, metric)
    index.train(vectors())
    if numbers is None:
        index.add(vectors())
    else:
        index.add_with_ids(vectors(), numbers)
    if description.startswith("IVF"):
        index.nprobe = index.nlist
    if description.startswith("HNSW"):
        index.hnsw.efSearch = COUNT
    return index


MADE = {
    "IVF": lambda: made("IVF8,Flat"),
    "IVF by distance": lambda: made("IVF8,Flat", faiss.METRIC_L2),
    "IVF with ids": lambda: made("IVF8,Flat", numbers=ids()),
    "IVF, SQ8": lambda: made("IVF8,SQ8"),
    "HNSW": lambda: made("HNSW16,Flat", faiss.METRIC_L2),
    "HNSW, SQ8": lambda: made("HNSW16_SQ8", faiss.METRIC_L2),
    "SQ8": lambda: made("SQ8"),
    "SQ fp16": lambda: made("SQfp16"),
    "ids": lambda: made("IDMap,Flat", numbers=ids()),
    "ids, both ways": lambda: made("IDMap2,Flat", numbers=ids()),
}


def written(folder, index):
    faiss.write_index(index, str(folder / "docs.index"))
    return folder / "docs.index"


@pytest.mark.slow
@pytest.mark.parametrize("kind", MADE)
def test_the_neighbours_are_those_that_faiss_finds(tmp_path, kind):
    index = MADE[kind]()
    found = kinds.read(written(tmp_path, index))
    queries = vectors()[:20] + 0.1
    _, expected = index.search(queries, NEIGHBOURS)
    if found.metric == "product":
        scores = queries @ found.vectors.T
    else:
        scores = -np.square(queries[:, None] - found.vectors[None]).sum(axis=2)
    ours = np.argsort(-scores, axis=1, kind="stable")[:, :NEIGHBOURS]
    same = [len({*a} & {*b}) for a, b in zip(expected.tolist(), ours.tolist(), strict=True)]
    assert sum(same) >= 0.98 * NEIGHBOURS * len(queries)
    assert (expected[:, 0] == ours[:, 0]).mean() >= 0.95


@pytest.mark.long
@pytest.mark.parametrize("description", ["PQ8x4", "IVF8,PQ8x4", "PCA8,Flat", "NSG16"])
def test_what_does_not_give_its_vectors_back_is_refused_with_what_to_do(tmp_path, description):
    index = made(description, faiss.METRIC_L2)
    with pytest.raises(BadDatasetError, match="write it anew as a flat index"):
        kinds.read(written(tmp_path, index))


def test_ids_that_name_no_documents_are_refused(tmp_path):
    index = made("IDMap,Flat", numbers=ids() + 7)
    with pytest.raises(BadDatasetError, match="are not the numbers of its documents"):
        kinds.read(written(tmp_path, index))


@pytest.mark.slow
def test_without_faiss_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path, MADE["HNSW"]())
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(BadDatasetError, match=r"pip install \"vector-index-mcp\[faiss\]\""):
        kinds.read(path)


@pytest.mark.slow
def test_sizes_that_a_header_names_are_checked_before_faiss_reads(tmp_path):
    data = bytearray(written(tmp_path, MADE["HNSW"]()).read_bytes())
    data[8:16] = (2**62).to_bytes(8, "little")
    (tmp_path / "crafted.index").write_bytes(data)
    with pytest.raises(BadDatasetError, match="sizes that do not fit"):
        kinds.read(tmp_path / "crafted.index")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["IVF", "HNSW", "ids"])
def test_a_file_that_is_cut_off_is_refused(tmp_path, kind):
    whole, chance = written(tmp_path, MADE[kind]()).read_bytes(), Random(kind)
    for _ in range(50):
        (tmp_path / "cut.index").write_bytes(whole[: chance.randrange(len(whole) - 1)])
        with pytest.raises(BadDatasetError):
            kinds.read(tmp_path / "cut.index")

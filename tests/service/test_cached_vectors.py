import pytest
from fakes import FakeEmbedder
from serving import codebase_of, converged, write

from vector_index_mcp.engine.store import Store

pytestmark = pytest.mark.anyio

FILES = 600


async def test_vectors_that_are_cached_are_filled_in_by_one_commit(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        write(root, {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(FILES)})
    async with (codebase := codebase_of(first, FakeEmbedder())).running():
        await converged(codebase)
    fills = []

    async def counting(self, rows, vectors, fill=Store.fill):
        fills.append(rows.num_rows)
        await fill(self, rows, vectors)

    monkeypatch.setattr(Store, "fill", counting)
    embedder = FakeEmbedder()

    async with (codebase := codebase_of(second, embedder)).running():
        await converged(codebase)

    assert embedder.texts == []
    assert fills == [FILES]


async def test_of_a_model_at_hand_they_are_committed_with_their_texts(tmp_path, monkeypatch):
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        write(root, {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(20)})
    async with (codebase := codebase_of(first, FakeEmbedder())).running():
        await converged(codebase)
    fills = []

    async def counting(self, rows, vectors, fill=Store.fill):
        fills.append(rows.num_rows)
        await fill(self, rows, vectors)

    monkeypatch.setattr(Store, "fill", counting)
    embedder = FakeEmbedder()
    embedder.is_at_hand = True

    async with (codebase := codebase_of(second, embedder)).running():
        await converged(codebase)
        assert codebase.ledger.unembedded_count == 0

    assert (embedder.calls, fills) == (0, [])

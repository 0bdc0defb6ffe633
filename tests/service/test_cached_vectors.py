import numpy as np
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, converged
from writing import write

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Store
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.vectors.cached_embedder import CachedEmbedder

pytestmark = pytest.mark.anyio

FILES = 600


@pytest.fixture
async def copy(tmp_path):
    """A copy of a project whose vectors are all in the cache."""
    first, second = tmp_path / "first", tmp_path / "second"
    for root in (first, second):
        write(root, {f"m{n}.py": f"def name_{n}(): pass\n" for n in range(FILES)})
    async with (codebase := codebase_of(first, FakeEmbedder())).running():
        await converged(codebase)
    return second


@pytest.fixture
def fills(monkeypatch):
    """How many rows lacked a vector whenever vectors were filled in."""
    found = []

    async def counting(self, keys, vectors, fill=Store.fill):
        lacked = await fill(self, keys, vectors)
        found.append(sum(map(len, lacked.values())))
        return lacked

    monkeypatch.setattr(Store, "fill", counting)
    return found


@pytest.mark.parametrize("is_at_hand", [False, True])
async def test_vectors_that_are_cached_cost_one_commit_or_none(copy, fills, is_at_hand):
    embedder = FakeEmbedder()
    embedder.is_at_hand = is_at_hand
    fills.clear()

    async with (codebase := codebase_of(copy, embedder)).running():
        await converged(codebase)
        assert codebase.index.ledger.unembedded_count == 0

    assert embedder.texts == []
    assert fills == ([] if is_at_hand else [FILES])


async def test_no_model_is_looked_for_before_anything_was_ever_embedded(tmp_path, monkeypatch):
    looked = []

    async def look(embedder):
        looked.append(embedder)

    monkeypatch.setattr(FakeEmbedder, "identity_at_hand", look)
    for number, name in enumerate(("first", "second")):  # then vectors are there that may be wanted
        write(tmp_path / name, {"m.py": f"def {name}(): pass\n"})
        async with (codebase := codebase_of(tmp_path / name, FakeEmbedder())).running():
            await converged(codebase)
        assert len(looked) == number


class Asked(FakeEmbedder):
    """One whose model can be asked in this process, too."""

    async def query_at_hand(self, text):
        [vector] = await self.embed([text])
        return vector, self._identity


@pytest.mark.parametrize("embedder", [Asked(), FakeEmbedder()])
async def test_only_vectors_of_the_model_pass_for_its_own(tmp_path, embedder):
    cached = CachedEmbedder(embedder, EmbeddingCache(tmp_path, 0), Activity())
    model = embedder._identity
    [one, two] = await embedder.embed(["one", "two"])
    assert await cached.makes(model, [("one", one), ("two", two)])
    assert await cached.makes(model, [])
    for wrong in (one, -two, two * np.nan, two * 0):
        assert not await cached.makes(model, [("one", one), ("two", wrong)])

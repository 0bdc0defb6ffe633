"""The index over vectors: built once they are there, exact enough, never in the way."""

import hashlib

import numpy as np
import pytest
from documents import document

from vector_index_mcp.engine.store import Store, upkeep
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.upkeep import vectors_index
from vector_index_mcp.engine.text.fields import chunk_hash

DIMENSION = 64
ROWS = 600

pytestmark = pytest.mark.anyio


def vector_of(text):
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])
    made = np.random.default_rng(seed).normal(size=DIMENSION).astype("f4")
    return made / np.linalg.norm(made)


def vectors_of(documents):
    texts = [(d.key, d.entries[0].chunk.text) for d in documents]
    return {chunk_hash(key, "", text): vector_of(text) for key, text in texts}


async def indexed_columns(store):
    indices = await store._tables.chunks.list_indices()
    return {column for index in indices for column in index.columns}


@pytest.fixture
def documents():
    return [document(f"{number}.py", f"text {number}.py") for number in range(ROWS)]


@pytest.fixture
async def store(tmp_path, monkeypatch):
    monkeypatch.setattr(upkeep, "_VECTORS_WORTH_AN_INDEX", ROWS)
    store = await Store.create(Reach(str(tmp_path)), 0, DIMENSION)
    yield store
    store.close()


async def nearest_keys(store, text, limit=5):
    return [found.chunk.key for found in await store.nearest(vector_of(text), limit)]


@pytest.mark.slow
async def test_maintenance_indexes_the_vectors_of_a_large_project(store, documents):
    await store.replace(documents, 1, vectors_of(documents))
    await store.maintain()
    assert "vector" in await indexed_columns(store)
    for wanted in documents[::50]:
        assert (await nearest_keys(store, wanted.entries[0].chunk.text))[0] == wanted.key


@pytest.mark.slow
async def test_a_search_that_reads_the_winners_alone_finds_the_same(store, documents):
    await store.replace(documents, 1, vectors_of(documents))
    await store.maintain()
    texts = store.unread
    for wanted in documents[::100]:
        vector, words = vector_of(wanted.entries[0].chunk.text), [wanted.key.partition(".")[0]]
        # As many as the other search looks at: the more, the better the index is at finding them.
        nearest, vectors = await texts.nearest(vector, 30, "cosine")
        usual = await store.nearest(vector, 10)
        read = await texts.read([c.chunk for c in nearest], ["file_path"])
        assert [row["file_path"] for row in read[:10]] == [c.chunk.key for c in usual]
        scores = [c.score for c in usual]
        assert [c.score for c in nearest[:10]] == pytest.approx(scores, abs=1e-5)
        assert vectors.keys() == {c.chunk.document_id for c in nearest}
        for metric in ("dot", "l2"):  # of unit vectors the same, found without the index
            [first], _ = await texts.nearest(vector, 1, metric)
            assert first.score == pytest.approx(1, abs=1e-4)
        matching = await texts.matching(words, 10)
        read = await texts.read([c.chunk for c in matching], ["file_path"])
        assert [row["file_path"] for row in read] == [wanted.key]
        assert [c.score for c in matching] == [c.score for c in await store.matching(words, 10)]
        found = await texts.vectors_of(matching)
        assert [*found.values()][0] == pytest.approx(vector, rel=1e-3)
    assert await texts.matching([], 10) == []
    assert await texts.read([], ["file_path"]) == []


@pytest.mark.slow
async def test_a_small_project_is_searched_without(store, documents):
    await store.replace(documents[1:], 1, vectors_of(documents))
    await store.maintain()
    assert "vector" not in await indexed_columns(store)
    assert (await nearest_keys(store, "text 7.py"))[0] == "7.py"


@pytest.mark.slow
async def test_vectors_are_indexed_once_nearly_all_are_there(store, documents):
    vectors = vectors_of(documents)
    known = dict(list(vectors.items())[: ROWS // 2])
    await store.replace(documents, 1, known)
    await store.maintain()
    assert "vector" not in await indexed_columns(store)
    await store.fill([d.key for d in documents], vectors)
    await store.maintain()
    assert "vector" in await indexed_columns(store)


@pytest.mark.slow
async def test_what_comes_after_the_index_is_found_before_and_after_maintenance(store, documents):
    await store.replace(documents, 1, vectors_of(documents))
    await store.maintain()
    changed = [document("7.py", "other 7.py"), document("new.py", "text new.py")]
    await store.replace(changed, 2, vectors_of(changed))
    for _ in range(2):
        for wanted in changed:
            assert (await nearest_keys(store, wanted.entries[0].chunk.text))[0] == wanted.key
        assert "7.py" not in await nearest_keys(store, "text 7.py", 1)
        await store.maintain()


@pytest.mark.slow
async def test_another_model_begins_without_the_index(store, documents):
    await store.replace(documents, 1, vectors_of(documents))
    await store.maintain()
    await store.set_dimension(DIMENSION)
    assert "vector" not in await indexed_columns(store)
    assert await nearest_keys(store, "text 7.py") == []


@pytest.mark.long
async def test_the_index_does_not_fall_to_pieces_over_many_changes(store, documents):
    await store.replace(documents, 1, vectors_of(documents))
    await store.maintain()
    for round_ in range(20):
        changed = [document(f"{round_}.py", f"round {round_} {round_}.py")]
        await store.replace(changed, 2 + round_, vectors_of(changed))
        await store.maintain()
        assert (await vectors_index(store._tables.chunks)).num_segments <= upkeep._MOST_SEGMENTS
        wanted = changed[0].entries[0].chunk.text
        assert (await nearest_keys(store, wanted))[0] == f"{round_}.py"


@pytest.mark.slow
async def test_what_a_maintenance_has_replaced_is_left_to_the_next(store, documents):
    vectors = vectors_of(documents)
    await store.replace(documents, 1, {})
    await store.maintain()
    for number in range(2):
        portion = [document.key for document in documents[number::2]]
        await store.fill(portion, vectors)
        await store.maintain()
    await store.maintain()  # merges what the index's building kept apart; the old is too young
    assert store.upkeep.is_worthwhile
    await store.maintain()
    assert not store.upkeep.is_worthwhile

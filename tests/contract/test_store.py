"""What a store promises, kept by the real LanceDB."""

import hashlib
import re
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import lancedb
import numpy as np
import pytest
from documents import document

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import rank
from vector_index_mcp.engine.store import Index, Store, schema
from vector_index_mcp.engine.store.foreign import parts_of
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.upkeep import Upkeep, unindexed_rows
from vector_index_mcp.engine.text.fields import chunk_hash
from vector_index_mcp.engine.types import (
    NO_FILTERS,
    FileRecord,
    Filters,
    Holding,
    UnembeddedChunk,
)
from vector_index_mcp.errors import StoreError
from vector_index_mcp.files.glob import regex_of

pytestmark = pytest.mark.anyio

DIMENSION = 4
ODD_KEYS = [
    "it's.py",
    "''.py",
    'say "hi".py',
    "two\nlines.py",
    "back\\slash.py",
    "\\'.py",
    "100%_of.py",
    "emoji-🙂.py",
    "ключ/用户.py",
    "sp ace/tab\t.py",
    "semi;colon -- comment.py",
    "a\x00b.py",
    "$1 {x} ?.py",
]


def record(key, content_hash="hash", chunk_count=1):
    return FileRecord(key, (10, 2**62, -5), content_hash, chunk_count, "indexed", "")


def vectors_of(*documents):
    """A vector for each chunk, told apart by its direction."""
    hashes = [entry.chunk_hash for d in documents for entry in d.entries]
    made = np.random.default_rng(7).normal(size=(len(hashes), DIMENSION)).astype("f4")
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return dict(zip(hashes, made, strict=True))


def vector_of(document, vectors):
    """That of the only chunk of `document`."""
    [entry] = document.entries
    return vectors[entry.chunk_hash]


async def matched(store, words, limit=10, filters=NO_FILTERS):
    """The chunks that full text finds for `words`, best first."""
    return [found.chunk for found in await store.matching(words, limit, filters)]


async def near(store, vector, limit=10, filters=NO_FILTERS):
    """The chunks that are near to `vector`, nearest first."""
    return [found.chunk for found in await store.nearest(vector, limit, filters)]


@pytest.fixture
async def store(tmp_path):
    store = await Store.create(Reach(str(tmp_path)), 0, DIMENSION)
    yield store
    store.close()


@pytest.fixture
async def vectorless(tmp_path):
    store = await Store.create(Reach(str(tmp_path)), 0, None)
    yield store
    store.close()


@pytest.mark.slow
async def test_a_new_store_is_empty(store):
    assert await store.count() == 0
    assert await store.records() == []
    assert await store.holdings() == {}
    assert await matched(store, ["word"], 10) == []
    assert await near(store, np.ones(DIMENSION, "f4"), 10) == []
    assert not store.upkeep.is_due


async def test_what_was_stored_is_read_back_unchanged(store):
    text = "def f():\r\n\treturn '\u2028 🙂 \x00'\n"
    stored = document(
        "a.py", text, "second", scope="class Foo › function f", symbols=("f", "Foo::g")
    )
    await store.replace([stored], 3, {})
    first, second = sorted(await matched(store, ["py"], 10), key=lambda c: c.chunk_index)
    assert (first.text, second.text) == (text, "second")
    assert first.document_id == "a.py::0"
    assert (first.key, first.original_path) == ("a.py", "/project/a.py")
    assert (first.content_hash, first.modified, first.language) == ("hash", 1.5, "python")
    assert (second.chunk_index, second.total_chunks) == (1, 2)
    assert (second.start_line, second.end_line, second.revision) == (2, 2, 3)
    assert (first.scope, first.symbols) == ("class Foo › function f", ("f", "Foo::g"))
    assert first.chunk_hash == chunk_hash("a.py", first.scope, text)


async def test_replacing_leaves_only_the_new_rows_of_a_file(store):
    await store.replace(
        [document("a", "old one", "old two", "old three"), document("b", "b")], 1, {}
    )
    await store.replace([document("a", "new", content_hash="two")], 2, {})
    assert await store.holdings() == {"a": Holding("two", 1, 1), "b": Holding("hash", 1, 1)}
    assert await matched(store, ["old"], 10) == []
    assert [chunk.text for chunk in await matched(store, ["new"], 10)] == ["new"]


@pytest.mark.parametrize("owner", [Store, Index])
def test_no_value_of_a_library_goes_in_or_out(owner):
    public = {name: method for name, method in vars(owner).items() if name[0] != "_"}
    functions = [getattr(m, "fget", None) or getattr(m, "__func__", m) for m in public.values()]
    hints = [hint for f in functions if callable(f) for hint in f.__annotations__.values()]
    assert hints
    assert [hint for hint in hints if re.search("pyarrow|lancedb", str(hint))] == []


async def test_replacing_a_file_that_is_empty_now_leaves_no_rows(store):
    await store.replace([document("a", "old")], 1, {})
    await store.replace([document("a")], 2, {})
    assert await store.holdings() == {}


async def test_replacing_nothing_changes_nothing(store):
    await store.replace([], 1, {})
    await store.delete([])
    await store.put_records([])
    assert await store.count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("key", ODD_KEYS)
async def test_any_key_is_stored_found_replaced_and_deleted(store, key):
    await store.replace([document(key, "old"), document("other", "word")], 1, {})
    await store.put_records([record(key), record("other")])
    await store.replace([document(key, "new", content_hash="two")], 2, {})
    await store.put_records([record(key, "two")])
    assert (await store.holdings())[key] == Holding("two", 1, 1)
    assert {r.key: r.content_hash for r in await store.records()} == {key: "two", "other": "hash"}
    await store.fill([key], vectors_of(document(key, "new")))
    assert (await store.holdings())[key] == Holding("two", 1, 0)
    await store.delete([key])
    assert set(await store.holdings()) == {"other"}
    assert [r.key for r in await store.records()] == ["other"]


@pytest.mark.slow
@pytest.mark.parametrize("count", [500, 501, 1203])
async def test_any_number_of_files_is_replaced_filled_and_deleted_at_once(store, count):
    documents = [document(f"it's/{number}.py", f"word{number}") for number in range(count)]
    keys = [d.key for d in documents]
    await store.replace(documents, 1, {})
    await store.replace(documents, 2, {})
    await store.put_records([record(key) for key in keys])
    assert await store.count() == count
    await store.fill(keys, vectors_of(*documents))
    holdings = await store.holdings()
    assert len(holdings) == count
    assert {(h.rows, h.unembedded) for h in holdings.values()} == {(1, 0)}
    await store.delete(keys[1:])
    assert set(await store.holdings()) == {r.key for r in await store.records()} == {keys[0]}


async def test_records_are_read_back_as_they_were_put(store):
    records = [
        record("a"),
        FileRecord("b", (0, 0, 0), "", 0, "skipped", "binary ' file\n🙂"),
        FileRecord("c", (2**40, 2**62, 2**62), "ff", 2**31 - 1, "failed", "why"),
    ]
    await store.put_records(records)
    assert sorted(await store.records(), key=lambda r: r.key) == records


@pytest.mark.slow
async def test_a_record_put_again_replaces_the_first(store):
    await store.put_records([record("a"), record("b")])
    await store.put_records([record("b", "two"), record("c")])
    found = {r.key: r.content_hash for r in await store.records()}
    assert found == {"a": "hash", "b": "two", "c": "hash"}


@pytest.mark.parametrize(
    "words", [["parse"], ["parse", "nowhere"], ["getusername"], ["a", "parse", "py"]]
)
async def test_any_word_of_a_query_is_enough_to_match(store, words):
    await store.replace([document("a.py", "getUserName parse")], 1, {})
    assert [chunk.key for chunk in await matched(store, words, 5)] == ["a.py"]


async def test_a_rare_word_outweighs_a_common_one(store):
    documents = [document(f"{number}.txt", "common common words") for number in range(20)]
    await store.replace([*documents, document("x.txt", "rare words")], 1, {})
    assert (await matched(store, ["common", "rare"], 5))[0].key == "x.txt"


async def test_a_file_is_found_by_the_words_of_its_path(store):
    await store.replace([document("src/userStore.py", "x"), document("b.py", "y")], 1, {})
    assert [c.key for c in await matched(store, ["userstore"], 5)] == ["src/userStore.py"]


@pytest.mark.parametrize("word", ['"', "(", "AND", "*", "a:b", "\x00", "'", "🙂", "x" * 5000])
async def test_no_word_is_syntax(store, word):
    await store.replace([document("a", "text")], 1, {})
    assert await matched(store, [word], 5) == []


@pytest.mark.slow
async def test_the_nearest_vector_comes_first(store):
    documents = [document(str(number), f"text {number}") for number in range(10)]
    vectors = vectors_of(*documents)
    await store.replace(documents, 1, vectors)
    for wanted in documents:
        vector = vector_of(wanted, vectors)
        found = await near(store, vector, 3)
        assert len(found) == 3
        assert found[0].key == wanted.key
        assert (await near(store, vector * 100, 1))[0].key == wanted.key


async def test_a_chunk_without_a_vector_is_matched_but_not_near(store):
    await store.replace([document("a", "text")], 1, {})
    assert [c.key for c in await matched(store, ["text"], 5)] == ["a"]
    assert await near(store, np.ones(DIMENSION, "f4"), 5) == []


async def test_a_vector_of_another_length_is_near_to_nothing(store):
    await store.replace([document("a", "text")], 1, vectors_of(document("a", "text")))
    assert await near(store, np.ones(DIMENSION + 1, "f4"), 5) == []


@pytest.mark.parametrize("limit", [1, 7])
async def test_no_more_is_found_than_asked_for(store, limit):
    documents = [document(str(number), "text") for number in range(10)]
    await store.replace(documents, 1, vectors_of(*documents))
    assert len(await matched(store, ["text"], limit)) == limit
    assert len(await near(store, np.ones(DIMENSION, "f4"), limit)) == limit


@pytest.mark.slow
async def test_filling_gives_vectors_and_keeps_everything_else(store):
    stored = document("a", "one", "two")
    await store.replace([stored], 4, {})
    before = sorted(await matched(store, ["one", "two"], 5), key=lambda c: c.chunk_index)
    await store.fill(["a"], vectors_of(stored))
    after = sorted(await matched(store, ["one", "two"], 5), key=lambda c: c.chunk_index)
    assert after == [replace(chunk, has_vector=True) for chunk in before]
    assert await store.holdings() == {"a": Holding("hash", 2, 0)}
    assert await store.unembedded(["a"]) == []
    assert len(await near(store, np.ones(DIMENSION, "f4"), 5)) == 2


async def test_filling_returns_what_lacked_a_vector_by_file(store):
    documents = document("a", "same", "same", "one"), document("b", "two"), document("c", "three")
    await store.replace(documents, 1, vectors_of(documents[2]))
    lacked = await store.fill(["a", "b", "c", "nowhere"], vectors_of(documents[1]))
    assert {key: sorted(hashes) for key, hashes in lacked.items()} == {
        d.key: sorted(entry.chunk_hash for entry in d.entries) for d in documents[:2]
    }


async def test_what_is_to_be_embedded_is_returned_with_its_hash(store):
    await store.replace([document("src/a.py", "x = 1", scope="class Foo")], 1, {})
    [chunk] = await store.unembedded(["src/a.py"])
    assert chunk == UnembeddedChunk(
        "src/a.py", chunk_hash("src/a.py", "class Foo", "x = 1"), "class Foo", "x = 1"
    )


@pytest.mark.slow
async def test_filling_some_of_the_vectors_loses_no_row(store):
    stored = document("a", "one", "two", "three")
    await store.replace([stored], 1, {})
    first = dict(list(vectors_of(stored).items())[:1])
    await store.fill(["a"], first)
    assert await store.holdings() == {"a": Holding("hash", 3, 2)}
    await store.fill(["a"], {})
    assert await store.holdings() == {"a": Holding("hash", 3, 2)}


async def test_what_was_half_filled_is_filled_once_whatever_is_filled_in_between(
    store, monkeypatch
):
    documents = document("a", "one", "two"), document("b", "three")
    await store.replace(documents, 1, {})

    async def fails(_):
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(store, "_delete", fails)
        with pytest.raises(StoreError, match="full"):
            await store.fill(["a"], vectors_of(documents[0]))
    await store.fill(["b"], vectors_of(documents[1]))
    await store.fill(["a"], vectors_of(documents[0]))
    assert await store.holdings() == {"a": Holding("hash", 2, 0), "b": Holding("hash", 1, 0)}


async def test_filling_touches_no_other_file_with_the_same_text(store):
    await store.replace([document("a", "same"), document("b", "same")], 1, {})
    await store.fill(["a"], vectors_of(document("a", "same")))
    holdings = await store.holdings()
    assert (holdings["a"].unembedded, holdings["b"].unembedded) == (0, 1)


async def test_only_the_named_files_are_asked_for_vectors(store):
    await store.replace([document("a", "x"), document("b", "y", "z")], 1, {})
    assert sorted(chunk.text for chunk in await store.unembedded(["b"])) == ["y", "z"]
    assert await store.unembedded(["nowhere"]) == []


async def test_without_a_dimension_the_words_are_searched_all_the_same(vectorless):
    stored = document("a", "text")
    await vectorless.replace([stored], 1, vectors_of(stored))
    await vectorless.fill(["a"], vectors_of(stored))
    assert vectorless.dimension is None
    assert [c.key for c in await matched(vectorless, ["text"], 5)] == ["a"]
    assert await near(vectorless, np.ones(DIMENSION, "f4"), 5) == []
    assert await vectorless.holdings() == {"a": Holding("hash", 1, 1)}


@pytest.mark.slow
async def test_vectors_are_filled_in_once_the_dimension_is_known(vectorless):
    stored = document("a", "text")
    await vectorless.replace([stored], 1, {})
    await vectorless.set_dimension(DIMENSION)
    await vectorless.fill(["a"], vectors_of(stored))
    assert [c.key for c in await near(vectorless, np.ones(DIMENSION, "f4"), 5)] == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [DIMENSION, 7])
async def test_setting_the_dimension_drops_the_vectors_and_keeps_the_rows(store, dimension):
    stored = document("a", "text")
    await store.replace([stored], 1, vectors_of(stored))
    await store.set_dimension(dimension)
    assert store.dimension == dimension
    assert await store.holdings() == {"a": Holding("hash", 1, 1)}
    assert await near(store, np.ones(dimension, "f4"), 5) == []
    assert [c.key for c in await matched(store, ["text"], 5)] == ["a"]


@pytest.mark.slow
async def test_after_a_kill_in_the_middle_of_that_no_vector_is_thought_to_be_there(store):
    stored = document("a", "text")
    await store.replace([stored], 1, vectors_of(stored))
    await store._tables.chunks.drop_columns(["vector"])
    store.dimension = None  # as the next process finds it
    await store.set_dimension(DIMENSION)
    assert await store.holdings() == {"a": Holding("hash", 1, 1)}


@pytest.mark.slow
async def test_a_search_in_the_middle_of_that_finds_words(store, monkeypatch):
    stored = document("a", "text")
    await store.replace([stored], 1, vectors_of(stored))
    drop, found = lancedb.AsyncTable.drop_columns, []

    async def dropped_and_searched(table, columns):
        await drop(table, columns)
        found.extend(await store.matching(["text"], 5, with_vectors=True))
        found.extend(await near(store, np.ones(DIMENSION, "f4"), 5))

    monkeypatch.setattr(lancedb.AsyncTable, "drop_columns", dropped_and_searched)
    await store.set_dimension(DIMENSION)
    assert [candidate.chunk.key for candidate in found] == ["a"]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["drop_columns", "add_columns"])
async def test_after_a_failure_in_the_middle_of_that_all_goes_on(store, monkeypatch, step):
    stored = document("a", "text")
    await store.replace([stored], 1, vectors_of(stored))
    with monkeypatch.context() as patch:
        patch.setattr(lancedb.AsyncTable, step, no_space)
        with pytest.raises(StoreError, match="free some space"):
            await store.set_dimension(7)
    await store.replace([stored], 2, vectors_of(stored))
    assert await store.holdings() == {"a": Holding("hash", 1, 1)}
    await store.set_dimension(DIMENSION)
    await store.fill(["a"], vectors_of(stored))
    assert await store.holdings() == {"a": Holding("hash", 1, 0)}


async def test_an_older_index_keeps_its_kind_of_numbers(tmp_path, monkeypatch):
    stored, added = document("stored.txt", "text"), document("added.txt", "another text")
    vectors = vectors_of(stored, added)
    with monkeypatch.context() as older:
        field = partial(schema.vector_field, number=schema.OLD_NUMBER)
        older.setattr(schema, "vector_field", field)
        store = await Store.create(Reach(str(tmp_path)), 0, DIMENSION)
    await store.replace([stored], 1, vectors)
    await store.maintain()
    await store.replace([added], 2, vectors)
    for each in (stored, added):
        wanted = vector_of(each, vectors)
        [nearest] = await store.nearest(wanted, 1)
        assert (nearest.chunk.key, nearest.score) == (each.key, pytest.approx(1.0, abs=1e-5))
        kept = await store.contents.vectors([each.key])
        np.testing.assert_allclose(vector_of(each, kept), wanted, atol=1e-3)
    assert (await store._tables.chunks.schema()).field("vector") == field(DIMENSION)
    store.close()


async def no_space(*_):
    raise RuntimeError("lance error: No space left on device (os error 28)")


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [None, DIMENSION])
async def test_a_store_opens_again_as_it_was(tmp_path, dimension):
    first = await Store.create(Reach(str(tmp_path)), 3, dimension)
    stored = document("a", "text")
    await first.replace([stored], 1, vectors_of(stored))
    await first.put_records([record("a")])
    before = await first.holdings()
    first.close()
    again = await Store.open(Reach(str(tmp_path)), 3)
    assert (again.dimension, again.generation) == (dimension, 3)
    assert await again.holdings() == before
    assert await again.records() == [record("a")]
    again.close()


@pytest.mark.slow
async def test_rows_left_unindexed_by_a_killed_process_are_maintained_by_the_next(tmp_path):
    first = await Store.create(Reach(str(tmp_path)), 0, None)
    await first.replace([document("a", *(f"text {number}" for number in range(2_000)))], 1, {})
    first.close()
    again = await Store.open(Reach(str(tmp_path)), 0)
    assert again.upkeep.is_due
    await again.maintain()
    again.close()
    after = await Store.open(Reach(str(tmp_path)), 0)
    assert not after.upkeep.is_due
    after.close()


async def test_the_last_revision_is_that_of_the_newest_row(store):
    assert await store.last_revision() == 0
    await store.replace([document("a", "x"), document("b", "x")], 7, {})
    await store.replace([document("a", "y")], 9, {})
    assert await store.last_revision() == 9


async def test_creating_replaces_what_an_interrupted_build_left(tmp_path):
    left = await Store.create(Reach(str(tmp_path)), 1, DIMENSION)
    await left.replace([document("a", "text")], 1, {})
    left.close()
    store = await Store.create(Reach(str(tmp_path)), 1, None)
    assert await store.count() == 0
    assert store.dimension is None
    store.close()


async def test_an_interrupted_replace_shows_and_is_healed_by_the_next(store):
    await store.replace([document("a", "old", content_hash="old")], 1, {})
    new = document("a", "new one", "new two", content_hash="new")
    rows = schema.with_vectors(schema.chunk_rows([new], 2), {}, DIMENSION)
    await store._add(rows)  # and here the process was killed
    assert await store.holdings() == {"a": Holding("", 3, 3)}
    await store.replace([new], 3, {})
    assert await store.holdings() == {"a": Holding("new", 2, 2)}


async def test_an_interrupted_replace_by_the_same_text_shows_in_the_number_of_rows(store):
    stored = document("a", "text")
    await store.replace([stored], 1, {})
    await store._add(schema.with_vectors(schema.chunk_rows([stored], 2), {}, DIMENSION))
    assert await store.holdings() == {"a": Holding("hash", 2, 2)}
    await store.replace([stored], 3, {})
    assert await store.holdings() == {"a": Holding("hash", 1, 1)}


async def test_an_interrupted_fill_shows_and_is_healed_by_the_next_replace(store):
    stored = document("a", "text")
    await store.replace([stored], 1, {})
    rows = schema.chunk_rows([stored], 1)
    await store._add(schema.with_vectors(rows, vectors_of(stored), DIMENSION))
    assert (await store.holdings())["a"].rows == 2
    await store.replace([stored], 2, vectors_of(stored))
    assert await store.holdings() == {"a": Holding("hash", 1, 0)}


async def test_the_rows_of_a_file_come_in_their_order_however_they_lie(store):
    texts = [f"text {number}" for number in range(5)]
    rows = schema.with_vectors(schema.chunk_rows([document("a", *texts)], 1), {}, DIMENSION)
    await store._add(rows.take([3, 1, 4, 0, 2]))
    found = await store.rows(["a", "b"])
    assert list(found) == ["a"]
    assert [chunk.text for chunk, _ in found["a"]] == texts


@pytest.mark.slow
@pytest.mark.parametrize("is_indexed", [False, True])
async def test_equally_good_rows_come_in_the_order_of_their_places(store, is_indexed):
    """And not in that in which they came, which a maintenance changes."""
    keys = [f"{number:03}.py" for number in range(110)]
    shuffled = [document(key, "one word") for key in sorted(keys, key=hash_of)]
    same = dict.fromkeys((e.chunk_hash for d in shuffled for e in d.entries), np.ones(DIMENSION))
    for number, part in enumerate(batched(shuffled, 40)):
        await store.replace(part, number + 1, same)
    if is_indexed:
        await store.maintain()

    matching = await store.matching(["word"], 100)
    near = await store.nearest(np.ones(DIMENSION, "f4"), 100)

    assert [each.chunk.key for each in matching] == keys[:100]
    assert [each.chunk.key for each in near] == keys[:100]


def hash_of(text):
    return hashlib.sha256(text.encode()).hexdigest()


async def test_of_two_generations_met_by_a_search_the_newer_is_ranked(store):
    old, new = document("a", "word old"), document("a", "word new")
    await store.replace([old], 1, {})
    await store._add(schema.with_vectors(schema.chunk_rows([new], 2), {}, DIMENSION))
    found = await store.matching(["word"], 10)
    assert sorted(c.chunk.text for c in found) == ["word new", "word old"]
    assert [hit.chunk.text for hit in rank(Query("word"), found, [])] == ["word new"]


async def test_a_reader_of_its_own_sees_every_commit_at_once(store, tmp_path):
    reader = await Store.open(Reach(str(tmp_path)), 0)
    for number in range(3):
        await store.replace([document(str(number), "word")], number + 1, {})
        assert len(await matched(reader, ["word"], 10)) == number + 1
        assert await reader.count() == number + 1
    reader.close()


@pytest.mark.slow
async def test_maintenance_changes_nothing_that_can_be_read(store):
    documents = [document(str(number), f"word text{number}") for number in range(30)]
    vectors = vectors_of(*documents)
    for number, stored in enumerate(documents):
        await store.replace([stored], number + 1, vectors)
        await store.put_records([record(stored.key)])
    query = vector_of(documents[7], vectors)
    before = await store.holdings(), await near(store, query, 5), await store.count()
    await store.maintain()
    assert (await store.holdings(), await near(store, query, 5), await store.count()) == before
    assert len(await matched(store, ["word"], 50)) == 30
    assert [c.key for c in await matched(store, ["text7"], 5)] == ["7"]


@pytest.mark.slow
@pytest.mark.parametrize("deleted", [0.0, 0.5])
async def test_files_to_be_given_away_hold_nothing_that_was_deleted(tmp_path, deleted):
    store = await Store.create(Reach(str(tmp_path)), 0, DIMENSION)
    folder = tmp_path / "chunks.lance"
    files = [document(f"{n}.py", f"word text{n}") for n in range(300)]
    secret, other = document("secret.py", "xylophone7481"), document("known.py", "quagmire5372")
    await store.replace([secret, other, *files], 1, vectors_of(secret, other, *files))
    await store.delete(file.key for file in files[: int(deleted * len(files))])
    await store.maintain()
    await store.delete(["secret.py"])
    (folder / "data" / "abandoned.lance").write_text("by a killed process: xylophone7481")
    before = set(parts_of(folder))
    count, expected = await store.count(), await store.holdings()
    await store.renew()
    assert holding(folder, "quagmire5372", "known.py")  # these bytes can be read
    assert not holding(folder, "xylophone7481")
    assert not holding(folder, "secret.py")
    assert not before & set(parts_of(folder))  # nor the words, where an index packs them
    assert (await store.count(), await store.holdings()) == (count, expected)
    assert [c.key for c in await matched(store, ["quagmire5372"])] == ["known.py"]
    assert await unindexed_rows(store._tables.chunks) == 0
    store.close()


def holding(folder, *words):
    """The files below a folder that hold all of some words."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if all(word.encode() in path.read_bytes() for word in words)]


@pytest.mark.long
async def test_maintenance_is_due_after_many_commits_or_rows_and_then_done(store):
    await store.replace([document("a", "x")], 1, {})
    assert not store.upkeep.is_due
    await store.replace([document("b", *(f"text {number}" for number in range(2_000)))], 2, {})
    assert store.upkeep.is_due
    await store.maintain()
    assert not store.upkeep.is_due
    for number in range(100):
        await store.replace([document(str(number), "x")], 3 + number, {})
    assert store.upkeep.is_due


@pytest.mark.long
async def test_a_quiet_moment_is_used_for_more_than_a_few_saves_only(store):
    await store.replace([document("a", "x")], 1, {})
    await store.maintain()
    await store.maintain()  # what the first has replaced is too young to be dropped by itself
    assert not store.upkeep.is_worthwhile
    for revision in range(2, 6):
        await store.replace([document("a", "x")], revision, {})
        await store.put_records([record("a")])
    assert not store.upkeep.is_worthwhile
    await store.replace([document("b", *(f"text {number}" for number in range(200)))], 6, {})
    assert store.upkeep.is_worthwhile
    await store.maintain()
    await store.maintain()
    for revision in range(7, 16):
        await store.replace([document("a", "x")], revision, {})
        await store.put_records([record("a")])
    assert store.upkeep.is_worthwhile


def test_maintenance_may_wait_the_longer_the_larger_the_table_is():
    def commits_until(is_reached, rows):
        upkeep = Upkeep(rows=rows, has_old_versions=False)
        while not is_reached(upkeep):
            upkeep.note_commit()
        return upkeep.commits

    due, worthwhile = Upkeep.is_due.fget, Upkeep.is_worthwhile.fget
    assert commits_until(due, 500_000) > 3 * commits_until(due, 10_000)
    assert commits_until(worthwhile, 500_000) > 3 * commits_until(worthwhile, 10_000)
    assert commits_until(worthwhile, 500_000) < commits_until(due, 500_000) / 3


@pytest.mark.slow
async def test_maintenance_is_overdue_after_very_many_rows(store):
    await store.replace([document("a", *(f"text {number}" for number in range(19_999)))], 1, {})
    assert not store.upkeep.is_overdue
    await store.replace([document("b", "x")], 2, {})
    assert store.upkeep.is_overdue
    await store.maintain()
    assert not store.upkeep.is_overdue


@pytest.mark.long
async def test_searches_answer_while_maintenance_reopens(store):
    documents = [document(str(number), "word") for number in range(20)]
    vectors = vectors_of(*documents)
    await store.replace(documents, 1, vectors)
    answers = []

    async def search_until(done):
        while not done.is_set():
            words, nearby = await matched(store, ["word"], 50), await near(store, query, 50)
            answers.append({len({c.key for c in words}), len({c.key for c in nearby})})

    query, done = np.ones(DIMENSION, "f4"), anyio.Event()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(search_until, done)
            for revision in range(2, 12):
                await store.replace(documents[:5], revision, vectors)
                await store.maintain()
            done.set()
    assert len(answers) > 10
    assert all(answer == {20} for answer in answers)


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts descriptors in /proc")
async def test_maintenance_leaks_no_descriptors(store):
    async def round_trip(revision):
        documents = [document(f"{revision}/{number}", "word", "text") for number in range(20)]
        await store.replace(documents, revision, vectors_of(*documents))
        await store.maintain()
        assert len(await matched(store, ["word"], 5)) == 5
        assert len(await near(store, np.ones(DIMENSION, "f4"), 5)) == 5

    for revision in range(1, 6):
        await round_trip(revision)
    before = open_descriptors()
    for revision in range(6, 36):
        await round_trip(revision)
    assert open_descriptors() <= before + 10


@pytest.mark.long
async def test_many_updates_leave_few_fragments_behind(store, tmp_path):
    documents = [document(str(number), f"word {number}") for number in range(5)]
    for update in range(1, 201):
        await store.replace([documents[update % 5]], update, {})
        if store.upkeep.is_due:
            await store.maintain()
    await store.maintain()
    stats = await store._tables.chunks.stats()
    assert stats["fragment_stats"]["num_fragments"] <= 2
    assert await unindexed_rows(store._tables.chunks) == 0
    assert await store.count() == 5


@pytest.mark.slow
async def test_the_writing_of_one_generation_is_not_seen_in_another(store, tmp_path):
    other = await Store.create(Reach(str(tmp_path)), 1, DIMENSION)
    await other.replace([document("a", "word")], 1, {})
    await other.put_records([record("a")])
    assert await store.count() == 0
    assert await store.records() == []
    other.close()


# -- filters ---------------------------------------------------------------------------------

TREE = {
    "src/app.py": "python",
    "src/web/app.ts": "typescript",
    "src/web/it's.ts": "typescript",
    "tests/test_app.py": "python",
    "docs/app.md": "markdown",
    "notes.x": "it's odd",
}


async def with_tree(store):
    """`store` with a file for each of TREE, all of the same text."""
    documents = [document(key, "word", language=language) for key, language in TREE.items()]
    await store.replace(documents, 1, vectors_of(*documents))
    return store


both_searches = pytest.mark.parametrize(
    "search",
    [
        lambda store, filters: matched(store, ["word"], 50, filters),
        lambda store, filters: near(store, np.ones(DIMENSION, "f4"), 50, filters),
    ],
    ids=["matching", "nearest"],
)


@both_searches
@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(), TREE),
        (Filters(languages=("python",)), ["src/app.py", "tests/test_app.py"]),
        (Filters(languages=("it's odd",)), ["notes.x"]),
        (Filters(languages=("klingon",)), []),
        (Filters(languages=("' OR '1' = '1",)), []),
        (Filters(path="^src/"), ["src/app.py", "src/web/app.ts", "src/web/it's.ts"]),
        (Filters(path="it's"), ["src/web/it's.ts"]),
        (Filters(path="x' OR '1' = '1"), []),
        (Filters(path="^(?:.+/)?app[.]"), ["src/app.py", "src/web/app.ts", "docs/app.md"]),
        (Filters(path="^src/", languages=("python",)), ["src/app.py"]),
        (Filters(path="^docs/", languages=("python",)), []),
    ],
)
async def test_a_search_is_limited_to_what_the_filters_let_through(
    store, search, filters, expected
):
    await with_tree(store)
    assert sorted(chunk.key for chunk in await search(store, filters)) == sorted(expected)


@both_searches
@pytest.mark.parametrize(
    "glob",
    ["*.py", "src/", "src/**/*.ts", "app.*", "/app.py", "*.{md,x}", "it's.ts", "**", "[a-n]*.x"]
    + ["[]a].py", "a+b (c)$^|~#&-.py", "ключ", "*\U0001f642*", "tab\t*", "?[!z]*", "\\'.py"],
)  # fmt: skip
async def test_a_glob_lets_through_what_its_regular_expression_says(store, search, glob):
    await with_tree(store)
    documents = [document(key, "word") for key in ODD_KEYS]
    await store.replace(documents, 2, vectors_of(*documents))
    found = {chunk.key for chunk in await search(store, Filters(path=regex_of(glob)))}
    assert found == {key for key in [*TREE, *ODD_KEYS] if re.search(regex_of(glob), key)}


@pytest.mark.parametrize("rows_before", [0, 1, 6])
async def test_a_filter_changes_no_score(store, rows_before):
    """Scores count how rare a word is in all rows, whether these are in the index or not."""
    documents = [document(f"a/{n}.md", "other text") for n in range(6)]
    wanted = document("b/plan.md", "the budget")
    if rows_before:
        await store.replace(documents[:rows_before], 1, {})
        await store.maintain()
    await store.replace([*documents[rows_before:], wanted], 2, {})
    [everywhere] = await store.matching(["budget"], 5)
    [below] = await store.matching(["budget"], 5, Filters(folder="b"))
    assert below.chunk.key == "b/plan.md"
    assert below.score == pytest.approx(everywhere.score)


@both_searches
@pytest.mark.parametrize("few", [0, 2_000])
@pytest.mark.parametrize("maintained", [False, True])
async def test_filters_apply_before_the_best_are_chosen(
    store, search, maintained, few, monkeypatch
):
    monkeypatch.setattr("vector_index_mcp.engine.store.store._FEW_ROWS", few)
    better = [document(f"{number}.py", "word word word") for number in range(60)]
    wanted = document("wanted.ts", "a word among many others", language="typescript")
    vectors = vectors_of(*better) | {wanted.entries[0].chunk_hash: -np.ones(DIMENSION, "f4") / 2}
    await store.replace([*better, wanted], 1, vectors)
    if maintained:
        await store.maintain()
    for filters in (Filters(languages=("typescript",)), Filters(path=regex_of("*.ts"))):
        assert [chunk.key for chunk in await search(store, filters)] == ["wanted.ts"]


async def test_candidates_tell_how_good_they_are(store):
    documents = [document("much.txt", "rare rare words"), document("less.txt", "rare and words")]
    vectors = vectors_of(*documents)
    await store.replace([*documents, document("none.txt", "words")], 1, vectors)
    by_words = await store.matching(["rare"], 5)
    assert [found.chunk.key for found in by_words] == ["much.txt", "less.txt"]
    assert by_words[0].score > by_words[1].score > 0
    wanted = vector_of(documents[0], vectors)
    nearest, other = await store.nearest(wanted, 5)
    assert nearest.score == pytest.approx(1.0, abs=1e-5)
    assert other.score == pytest.approx(float(wanted @ vector_of(documents[1], vectors)), abs=2e-4)


# -- words -----------------------------------------------------------------------------------

SPELLINGS = ["parseCookie", "parse_cookie", "PARSE_COOKIE", "parse-cookie", "ParseCookie"]


@pytest.mark.parametrize("maintained", [False, True])
@pytest.mark.parametrize("symbol", SPELLINGS[:3])
async def test_an_identifier_in_any_spelling_finds_its_definition_first(store, symbol, maintained):
    uses = [document(f"use{n}.py", f"x = {symbol}(1)\ny = {symbol}(2)") for n in range(20)]
    defining = document("jar.py", f"def {symbol}(text): ...", symbols=(f"Jar::{symbol}",))
    await store.replace([*uses, defining], 1, {})
    if maintained:
        await store.maintain()
    for spelling in SPELLINGS:
        found = await matched(store, Query(spelling).matched)
        assert found[0].key == "jar.py", spelling


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("authentication", "authenticate"),
        ("authenticated", "authenticating"),
        ("retries", "retry"),
        ("parser", "parsers"),
        ("handled", "handling"),
        ("connections", "connect"),
        ("indexes", "indexing"),
    ],
)
@pytest.mark.parametrize("maintained", [False, True])
async def test_inflections_of_a_word_find_each_other(store, word, other, maintained):
    await store.replace([document("a", f"some {word} here"), document("b", "nothing")], 1, {})
    if maintained:
        await store.maintain()
    assert [chunk.key for chunk in await matched(store, [other])] == ["a"]


@pytest.mark.parametrize(
    ("word", "other"), [("car", "care"), ("user", "use"), ("indices", "index"), ("ran", "run")]
)
async def test_words_of_another_stem_do_not(store, word, other):
    await store.replace([document("a", f"some {word} here")], 1, {})
    assert await matched(store, [other]) == []


async def test_no_word_is_too_common_or_too_long_to_be_found(store):
    await store.replace([document("a", f"the if not {'x' * 64}")], 1, {})
    for word in ("the", "if", "not", "x" * 64):
        assert [chunk.key for chunk in await matched(store, [word])] == ["a"]


def test_at_the_end_of_a_long_work_less_is_worth_tidying():
    assert Upkeep(60_000, new_rows=1_000).is_due_at_the_end
    assert not Upkeep(60_000, new_rows=999).is_due_at_the_end
    assert not Upkeep(60_000, new_rows=1_000).is_due
    assert Upkeep(60_000, new_rows=3_000).is_due

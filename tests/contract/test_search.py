"""What a search promises, over the real LanceDB."""

import threading
from itertools import pairwise

import anyio
import numpy as np
import pytest
from documents import document
from waiting import PATIENCE_SECONDS

from vector_index_mcp.engine.ranking import search as searching
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import FEWEST_CANDIDATES, search
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.types import NO_FILTERS, Filters
from vector_index_mcp.errors import StoreError

pytestmark = pytest.mark.anyio

ABOUT_BIRDS = np.array([1, 0], "f4")
ABOUT_FISH = np.array([0, 1], "f4")


@pytest.fixture
async def store(tmp_path):
    store = await Store.create(Reach(str(tmp_path)), 0, 2)
    yield store
    store.close()


async def put(store, documents):
    """Store documents, given with their vectors."""
    vectors = {document.entries[0].chunk_hash: vector for document, vector in documents.items()}
    await store.replace(list(documents), 1, vectors)


async def ask(store, text, vector, limit, filters=NO_FILTERS):
    """Search with a query whose embedding is known."""

    async def embed():
        return vector

    return await search(store, Query(text), embed, limit, filters)


def keys(hits):
    return [hit.chunk.key for hit in hits]


@pytest.mark.slow
async def test_words_and_meaning_are_both_searched(store):
    by_words, by_meaning = document("a.py", "sparrow"), document("b.py", "crow")
    await put(store, {by_words: ABOUT_FISH, by_meaning: ABOUT_BIRDS})
    assert sorted(keys(await ask(store, "sparrow", ABOUT_BIRDS, 5))) == ["a.py", "b.py"]


async def test_the_meaning_of_what_vector_search_did_not_propose_counts_as_well(store, monkeypatch):
    """An approximate search may pass over the very chunk that the words have found."""
    right, other = document("a.py", "sparrow"), document("b.py", "crow")
    await put(store, {right: ABOUT_BIRDS, other: ABOUT_FISH})
    [whole, _] = await ask(store, "sparrow", ABOUT_BIRDS, 5)
    nearest = store.nearest

    async def without_the_best(*arguments):
        return [each for each in await nearest(*arguments) if each.chunk.key != "a.py"]

    monkeypatch.setattr(store, "nearest", without_the_best)
    [again, _] = await ask(store, "sparrow", ABOUT_BIRDS, 5)
    assert again.chunk == whole.chunk
    assert again.why == whole.why
    assert again.why.meaning == 1.0


async def test_without_a_vector_words_alone_are_searched(store):
    await put(
        store, {document("a.py", "sparrow"): ABOUT_FISH, document("b.py", "crow"): ABOUT_BIRDS}
    )
    assert keys(await ask(store, "sparrow", None, 5)) == ["a.py"]


async def test_without_words_meaning_alone_is_searched(store):
    await put(store, {document("a.py", "sparrow"): ABOUT_FISH})
    assert keys(await ask(store, "???", ABOUT_BIRDS, 5)) == ["a.py"]
    assert await ask(store, "???", None, 5) == []


@pytest.mark.parametrize("filters", [Filters(languages=("go",)), Filters(path=r"[.]go$")])
async def test_filters_limit_both_searches(store, filters):
    birds = {document(f"{n}.py", f"sparrow {n}"): ABOUT_BIRDS for n in range(3)}
    words = document("words.go", "sparrow", language="go")
    meaning = document("meaning.go", "crow", language="go")
    await put(store, birds | {words: ABOUT_FISH, meaning: ABOUT_BIRDS})
    found = keys(await ask(store, "sparrow", ABOUT_BIRDS, 50, filters))
    assert sorted(found) == ["meaning.go", "words.go"]


@pytest.mark.parametrize("limit", [0, 1, 7])
async def test_no_more_hits_than_asked_for(store, limit):
    await put(store, {document(f"{n}.py", f"sparrow {n}"): ABOUT_BIRDS for n in range(20)})
    assert len(await ask(store, "sparrow", ABOUT_BIRDS, limit)) == limit


@pytest.mark.slow
async def test_as_many_hits_as_asked_for(store):
    count = 2 * FEWEST_CANDIDATES
    await put(store, {document(f"{n}.py", f"sparrow {n}"): ABOUT_BIRDS for n in range(count)})
    assert len(await ask(store, "sparrow", None, count)) == count


@pytest.mark.slow
@pytest.mark.parametrize("query", ["sparrow", "how do sparrows sing"])
async def test_the_best_are_the_same_however_many_are_wanted(store, query):
    """Else somebody who turns the pages meets a hit twice, and never another one."""
    texts = [f"sparrow {'and a bird that sings ' * (n % 7)} {n}" for n in range(700)]
    vectors = [ABOUT_BIRDS, ABOUT_FISH]
    files = {document(f"{n}.py", text): vectors[n % 3 == 0] for n, text in enumerate(texts)}
    await put(store, files)
    limits = (5, 20, 40, FEWEST_CANDIDATES, FEWEST_CANDIDATES + 1, 300)
    rankings = [await ask(store, query, ABOUT_BIRDS, limit) for limit in limits]
    assert [len(ranking) for ranking in rankings] == list(limits)
    for shorter, longer in pairwise(rankings):
        assert keys(longer)[: len(shorter)] == keys(shorter)
        assert [hit.score for hit in longer] == sorted((h.score for h in longer), reverse=True)
        assert longer[: len(shorter)] == shorter


@pytest.mark.parametrize("query", ["parse_cookie", "ParseCookie", "where is parse_cookie defined"])
async def test_a_definition_is_found_among_more_uses_than_there_are_candidates(store, query):
    use = "parse_cookie(parse_cookie) defined " * 5
    uses = {document(f"{n}.py", f"{use} {n}"): ABOUT_BIRDS for n in range(2 * FEWEST_CANDIDATES)}
    body = "\n".join(f"    step_{number}()" for number in range(100))
    text = f"def parse_cookie(header):\n{body}"
    defining = document("jar.py", text, symbols=("parse_cookie",))
    await put(store, uses | {defining: ABOUT_FISH})
    assert keys(await ask(store, query, None, 5))[0] == "jar.py"


async def test_the_query_is_embedded_while_its_words_are_searched(store, monkeypatch):
    await put(store, {document("a.py", "sparrow"): ABOUT_BIRDS})
    is_embedding, matching = anyio.Event(), store.matching

    async def matching_later(*arguments, **_):
        await is_embedding.wait()
        return await matching(*arguments)

    async def embed():
        is_embedding.set()
        return ABOUT_BIRDS

    monkeypatch.setattr(store, "matching", matching_later)
    with anyio.fail_after(PATIENCE_SECONDS):
        assert keys(await search(store, Query("sparrow"), embed, 5)) == ["a.py"]


@pytest.mark.parametrize("failing", [["matching"], ["nearest"], ["matching", "nearest"]])
async def test_what_fails_in_a_search_is_told_as_it_is(store, monkeypatch, failing):
    async def fail(*arguments, **_):
        raise StoreError("the disk is gone")

    for method in failing:
        monkeypatch.setattr(store, method, fail)
    with pytest.raises(StoreError, match="the disk is gone"):
        await ask(store, "sparrow", ABOUT_BIRDS, 5)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("straßenname = 1", "straßenname"),
        ("straßenname = 1", "STRASSENNAME"),
        ("label = 'ＡＢＣ'", "ABC"),
        ("abc = 1", "ＡＢＣ"),
        ("foo\u200bbar = 1", "foobar"),
        ("foobar = 1", "foo\u00adbar"),
        ("return 'cafe\u0301'", "café"),
        ("return 'café'", "cafe"),
        ("see the ﬁle", "file"),
        ("# İstanbul", "istanbul"),
        ("# ὁδός", "ΟΔΟΣ"),
        ("# имяФайла", "имя файла"),
        ("# كتـــاب", "كتاب"),
        ("# שָׁלוֹם", "שלום"),
        ("# 释放锁之后", "锁"),
        ("# 释放锁之后", "释放"),
        ("# ภาษาไทยง่าย", "ไทย"),
        ("# ﾕｰｻﾞｰ", "ユーザー"),
        ("x = '👍🏽'", "👍"),
        ("x = '👩‍💻'", "👩🏽‍💻"),
        ("x = '🇩🇪'", "🇩🇪"),
        ("x = '❤️'", "❤"),
        ("a → b", "→"),
        ("limit = '٣٤'", "34"),
    ],
)
async def test_words_alone_find_every_spelling_and_give_the_files(store, written, asked):
    others = {document(f"{n}.py", f"sparrow {n} 🇫🇷 👎 用户 กา"): ABOUT_BIRDS for n in range(3)}
    await put(store, others | {document("it.py", written): ABOUT_FISH})
    hits = await ask(store, asked, None, 5)
    assert [hit.chunk.text for hit in hits] == [written]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["café.py", "cafe\u0301.py", "Ｃａｆé.py"])
async def test_a_file_is_found_by_its_name_however_that_is_spelled(store, name):
    await put(store, {document(f"src/{name}", "x = 1"): ABOUT_BIRDS})
    await put(store, {document("src/other.py", "x = 1"): ABOUT_BIRDS})
    assert keys(await ask(store, "café", None, 5)) == [f"src/{name}"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["größe_lesen", "gro\u0308\u00dfe_lesen"])
async def test_a_definition_comes_first_however_its_name_is_spelled(store, name):
    use = document("a.py", "größe_lesen() größe_lesen() größe_lesen()")
    defining = document("b.py", f"def {name}(): pass\n" + "x = 1\n" * 50, symbols=(name,))
    await put(store, {use: ABOUT_BIRDS, defining: ABOUT_FISH})
    for asked in ("größe_lesen", "grosseLesen", "GRÖSSE_LESEN"):
        assert keys(await ask(store, asked, None, 5))[0] == "b.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    "query", ["word " * 10_000, "\n".join(f"at a.b.C{n}.run{n}" for n in range(2_500))]
)
async def test_a_long_query_keeps_nobody_waiting(store, monkeypatch, query):
    """Few terms reach the store, and no work on the words is done in the event loop's thread."""
    await put(store, {document("a.py", "word run7"): ABOUT_BIRDS})
    asked, threads = [], []
    matching, matched, rank = store.matching, searching.Query.matched.func, searching.best

    async def matching_these(words, *arguments, **_):
        asked.extend(words)
        return await matching(words, *arguments)

    def noted(function):
        def call(*arguments):
            threads.append(threading.get_ident())
            return function(*arguments)

        return call

    monkeypatch.setattr(store, "matching", matching_these)
    monkeypatch.setattr(searching, "best", noted(rank))
    monkeypatch.setattr(searching.Query, "matched", property(noted(matched)))
    assert keys(await ask(store, query, ABOUT_BIRDS, 5)) == ["a.py"]
    assert 0 < len(asked) <= 128
    assert len(threads) == 2
    assert threading.get_ident() not in threads

"""Candidates of both searches become one ranking of documents, which the same ones always give."""

import math
from dataclasses import replace

import numpy as np
import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from ranking import candidates, stored

from vector_index_mcp.engine.prose.ranking import RERANKED, Fusion, Variant, by_meaning, by_words
from vector_index_mcp.engine.types import Candidate

QUERY = np.array([1, 0, 0], np.float32)


def at(cosine):
    """A vector with this cosine to the query's."""
    return np.array([cosine, math.sqrt(1 - cosine**2), 0], np.float32)


def keys(hits):
    return [hit.chunk.key for hit in hits]


def ids(hits):
    return [hit.chunk.document_id for hit in hits]


def both(lexical, semantic, vectors, *, words=2, chunks_in_index=100):
    variant = Variant(words, candidates(lexical), candidates(semantic), QUERY)
    return Fusion([variant], vectors, chunks_in_index).ranked()


@pytest.mark.parametrize("rank", [by_words, by_meaning])
def test_a_document_stands_once_with_its_best_chunk(rank):
    found = rank(candidates({stored("a", 0): 0.2, stored("b", 3): 0.5, stored("a", 1): 0.8}))
    assert ids(found) == ["a::1", "b::3"]


def test_a_score_of_words_is_between_0_and_1_whatever_bm25_says():
    found = by_words(candidates({"a": 3.0, "b": 1.0, "c": 0.0, "d": -1.0}))
    assert [(hit.chunk.key, hit.score) for hit in found] == [
        ("a", 0.75),
        ("b", 0.5),
        ("c", 0.0),
        ("d", 0.0),
    ]


def test_a_score_of_meaning_is_the_cosine_and_none_below_0():
    found = by_meaning(candidates({"a": 1.01, "b": 0.25, "c": -0.5}))
    assert [hit.score for hit in found] == [1.0, 0.25, 0.0]


def test_a_document_that_has_no_vector_yet_is_not_behind_all_that_have_one():
    saved = stored("saved", has_vector=False)
    semantic = {"near": 0.9, "other": 0.6}
    vectors = {f"{key}::0": at(cosine) for key, cosine in semantic.items()}
    found = both({saved: 5.0, "other": 4.0, "near": 1.0}, semantic, vectors)
    assert keys(found)[0] == "saved"


@pytest.mark.parametrize("rank", [by_words, by_meaning])
def test_only_the_newest_generation_counts_even_where_it_is_worse(rank):
    old, new = stored("a", 0, revision=1), stored("a", 1, revision=2)
    assert ids(rank(candidates({old: 0.9, new: 0.1, "b": 0.5}))) == ["b::0", "a::1"]


@pytest.mark.parametrize("score", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("rank", [by_words, by_meaning])
def test_scores_that_are_no_numbers_are_left_out(rank, score):
    odd = [Candidate(stored("odd"), score), Candidate(stored("a"), 0.5)]
    assert keys(rank(odd)) == keys(rank(odd[::-1])) == ["a"]


@pytest.mark.parametrize("rank", [by_words, by_meaning])
def test_of_equals_the_first_chunk_and_the_first_key_come_first(rank):
    tied = [Candidate(stored(key, index), 0.5) for key in "ba" for index in (2, 1)]
    assert ids(rank(tied)) == ids(rank(tied[::-1])) == ["a::1", "b::1"]


@pytest.mark.parametrize("rank", [by_words, by_meaning])
def test_of_nothing_comes_nothing(rank):
    assert rank([]) == []


def test_of_two_empty_searches_comes_nothing():
    assert both({}, {}, {}) == [] == Fusion([], {}, 0).ranked()


def test_one_side_alone_is_ranked_as_that_side_is():
    vectors = {"a::0": at(0.9), "b::0": at(0.5), "c::0": at(0.1)}
    assert keys(both({}, {"a": 0.9, "b": 0.5, "c": 0.1}, vectors)) == ["a", "b", "c"]
    alike = dict.fromkeys(vectors, at(0.5))
    assert keys(both({"c": 6.0, "b": 4.0, "a": 2.0}, {}, alike)) == ["c", "b", "a"]


def test_what_both_find_is_better_than_what_one_finds():
    vectors = {"a::0": at(0.0), "b::0": at(0.6), "c::0": at(0.6)}
    found = both({"a": 5.0, "c": 5.0}, {"b": 0.6, "c": 0.6}, vectors)
    assert keys(found)[0] == "c"


def test_texts_alike_lend_each_other_their_scores():
    near, far = np.array([0.6, 0.8, 0], np.float32), np.array([0.6, 0, 0.8], np.float32)
    good = np.array([0.8, 0.6, 0], np.float32)
    vectors = {"good::0": good, "near::0": near, "far::0": far, "other::0": np.array([0, 0, 1.0])}
    found = both({}, {"good": 0.8, "far": 0.6, "near": 0.6, "other": 0.0}, vectors)
    scores = {hit.chunk.key: hit.score for hit in found}
    assert scores["near"] > scores["far"]


def test_a_chunk_without_a_vector_is_found_by_its_words():
    assert keys(both({"a": 3.0, "b": 4.0}, {"b": 0.5}, {"b::0": at(0.5)})) == ["b", "a"]
    assert keys(both({"a": 9.0, "b": 1.0}, {"b": 0.1}, {"b::0": at(0.1)})) == ["a", "b"]
    assert keys(both({"a": 5.0}, {}, {})) == ["a"]


@pytest.mark.parametrize("number", [math.nan, math.inf, 3e38])
def test_a_vector_that_is_none_costs_its_chunk_alone(number):
    semantic = dict.fromkeys("abcdefgh", 0.5)
    vectors = {f"{key}::0": at(0.5) for key in semantic}
    expected = [(h.chunk.key, h.score) for h in both({}, semantic, vectors)]
    vectors["odd::0"] = np.array([number, 0, 0], np.float32)
    found = both({}, {"odd": 0.9, **semantic}, vectors)
    assert [key for key in keys(found) if key != "odd"] == [key for key, _ in expected]
    assert all(0 <= hit.score <= 1 for hit in found)


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_so_does_a_score_of_words_that_is_no_number(score):
    vectors = {"a::0": at(0.9), "b::0": at(0.5)}
    semantic = candidates({"a": 0.9, "b": 0.5})
    lexical = [Candidate(stored("b"), score), Candidate(stored("a"), 2.0)]
    with_it = Fusion([Variant(1, lexical, semantic, QUERY)], vectors, 10).ranked()
    without = Fusion([Variant(1, lexical[1:], semantic, QUERY)], vectors, 10).ranked()
    assert with_it == without


def test_a_generation_that_has_no_vector_yet_hides_the_one_before():
    old, new = stored("a", 0, revision=1), stored("a", 1, revision=2)
    vectors = {"a::0": at(0.9), "b::0": at(0.2)}
    found = both({new: 5.0}, {old: 0.9, "b": 0.2}, vectors)
    assert ids(found) == ["a::1", "b::0"]


def test_a_query_without_a_direction_is_answered_by_its_words():
    variant = Variant(1, candidates({"a": 1.0, "b": 2.0}), [], np.full(3, math.nan, np.float32))
    vectors = {"a::0": at(0.5), "b::0": at(0.1)}
    assert keys(Fusion([variant], vectors, 100).ranked()) == ["b", "a"]


def test_the_query_itself_counts_more_than_another_wording_of_it():
    vectors = {"a::0": QUERY, "b::0": np.array([0, 1, 0], np.float32)}
    first = Variant(1, [], candidates({"a": 1.0}), vectors["a::0"])
    second = Variant(1, [], candidates({"b": 1.0}), vectors["b::0"])
    assert keys(Fusion([first, second], vectors, 10).ranked()) == ["a", "b"]
    assert keys(Fusion([second, first], vectors, 10).ranked()) == ["b", "a"]


def test_those_beyond_the_best_come_below_them_in_their_order():
    semantic = {f"{n:03}": 1 - n / 200 for n in range(100)}
    found = both({}, semantic, {f"{key}::0": at(score) for key, score in semantic.items()})
    assert keys(found)[RERANKED:] == sorted(semantic)[RERANKED:]
    assert set(keys(found)[:RERANKED]) == set(sorted(semantic)[:RERANKED])
    assert found[RERANKED - 1].score > found[RERANKED].score > found[-1].score >= 0


_FEW = st.sampled_from([-1.0, 0.0, 0.25, 0.5, 1.0, 30.0])
_CHUNKS = st.builds(
    lambda key, index, revision: replace(
        stored(key, index, revision=revision), document_id=f"{key}::{revision}::{index}"
    ),
    st.sampled_from("abcdefgh"),
    st.integers(0, 2),
    st.integers(1, 2),
)
_FOUND = st.lists(st.builds(Candidate, _CHUNKS, _FEW), max_size=40, unique_by=lambda c: c.chunk)
_UNIT = st.sampled_from([at(0.9), at(0.1), -at(0.5), np.array([0, 0, 1], np.float32)])


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(_FOUND, _FOUND, st.integers(0, 5), st.integers(0, 1_000), st.data())
def test_whatever_is_found_is_ranked_once_and_always_alike(lexical, semantic, words, count, data):
    found = {c.chunk.document_id: c.chunk for c in (*lexical, *semantic)}
    vectors = {
        id_: vector for id_ in sorted(found) if (vector := data.draw(st.none() | _UNIT)) is not None
    }
    hits = Fusion([Variant(words, lexical, semantic, QUERY)], vectors, count).ranked()
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    newest = {}
    for chunk in found.values():
        newest[chunk.key] = max(newest.get(chunk.key, 0), chunk.revision)
    assert len(hits) == len(newest) and set(keys(hits)) == set(newest)
    assert all(hit.chunk.revision == newest[hit.chunk.key] for hit in hits)
    lexical, semantic = (data.draw(st.permutations(side)) for side in (lexical, semantic))
    assert Fusion([Variant(words, lexical, semantic, QUERY)], vectors, count).ranked() == hits

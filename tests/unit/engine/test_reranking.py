"""What becomes of a ranking when a cross-encoder has judged it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking import stored

from vector_index_mcp.engine.ranking.reranking import by_both
from vector_index_mcp.engine.types import Hit, Why


def hits_of(count):
    """So many hits, best first: a, b, c …"""
    names = (chr(ord("a") + number) for number in range(count))
    return [Hit(stored(name), 1 / (n + 1), 0.9 / (n + 1)) for n, name in enumerate(names)]


def order(judged):
    return "".join(hit.chunk.key for hit in by_both(hits_of(len(judged)), judged))


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ([], ""),
        ([0.1], "a"),
        ([0.9, 0.5, 0.1], "abc"),
        ([0.5, 0.5, 0.5, 0.5], "abcd"),  # who has no opinion changes nothing
        ([0.1, 0.9, 0.8], "bac"),  # a is 0 + 2, b 1 + 0, c 2 + 1
        ([1e-6, 1e-3, 1e-4, 1e-5], "bacd"),  # however small
        ([0.1, 0.2, 0.3, 0.9], "abcd"),  # the opposite of ours: both say as much, ours counts
        ([0.1, 0.4, 0.3, 0.2, 0.9], "baced"),
    ],
)
def test_both_orders_count_alike(judged, expected):
    assert order(judged) == expected


@given(st.lists(st.floats(0, 1), max_size=30))
def test_nothing_is_lost_and_each_place_keeps_its_scores(judged):
    before = hits_of(len(judged))
    after = by_both(before, judged)
    assert sorted(hit.chunk.key for hit in after) == sorted(hit.chunk.key for hit in before)
    assert [hit.score for hit in after] == [hit.score for hit in before]
    assert [hit.likelihood for hit in after] == [hit.likelihood for hit in before]


def test_a_hit_says_what_was_judged_and_where_the_score_of_its_place_comes_from():
    whys = [Why(1.0, None, {}, 1.0, {}, {"base": float(-place)}) for place in range(2)]
    before = [replace(hit, why=why) for hit, why in zip(hits_of(2), whys, strict=True)]
    judged = by_both([*before, replace(before[1], chunk=stored("c"))], [0.1, 0.9, 0.8])
    assert [(hit.chunk.key, hit.why.judged) for hit in judged] == [
        ("b", 0.9),
        ("a", 0.1),
        ("c", 0.8),
    ]
    assert judged[0].why.likelihood == {"base": 0.0}

"""Rankings are merged by the published formula, and no file crowds out the others."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.rank import MAX_PER_FILE, RRF_K, fuse, spread
from vector_index_mcp.engine.types import Hit, StoredChunk


def chunk(key, index=0, revision=1, text=""):
    return StoredChunk(
        document_id=f"{key}::{index}",
        key=key,
        original_path=f"/project/{key}",
        content_hash="",
        modified=0.0,
        chunk_index=index,
        total_chunks=1,
        text=text,
        chunk_hash="",
        start_line=1,
        end_line=1,
        language="",
        revision=revision,
    )


def ranking(names):
    return [chunk(name) for name in names]


def names(hits):
    return [hit.chunk.key for hit in hits]


@pytest.mark.parametrize(
    ("rankings", "ranks"),
    [
        (["a"], {"a": [1]}),
        (["ab"], {"a": [1], "b": [2]}),
        (["ab", "ab"], {"a": [1, 1], "b": [2, 2]}),
        (["ab", "ba"], {"a": [1, 2], "b": [2, 1]}),
        (["abc", "d"], {"a": [1], "b": [2], "c": [3], "d": [1]}),
        (["ab", ""], {"a": [1], "b": [2]}),
        (["abc", "cx", "cb"], {"a": [1], "b": [2, 2], "c": [3, 1, 1], "x": [2]}),
    ],
)
def test_a_score_is_the_share_of_the_highest_possible_sum(rankings, ranks):
    hits = fuse([ranking(keys) for keys in rankings])
    highest = len(rankings) / (60 + 1)
    assert {hit.chunk.key: hit.score for hit in hits} == pytest.approx(
        {key: sum(1 / (60 + rank) for rank in found) / highest for key, found in ranks.items()}
    )
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_the_constant_is_the_published_one():
    assert RRF_K == 60


@pytest.mark.parametrize("rankings", [[], [[]], [[], []]])
def test_nothing_found_is_no_hits(rankings):
    assert fuse(rankings) == []


def test_first_everywhere_scores_one():
    for count in range(1, 6):
        assert fuse([ranking("ab")] * count)[0].score == 1.0


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), max_size=4))
def test_every_chunk_found_is_one_hit_with_a_score_between_zero_and_one(rankings):
    hits = fuse([ranking(keys) for keys in rankings])
    assert sorted(names(hits)) == sorted({key for keys in rankings for key in keys})
    assert all(0 < hit.score <= 1 for hit in hits)


@pytest.mark.parametrize("order", list(permutations(["ab", "ba"])))
def test_equal_scores_stand_in_the_order_of_their_paths(order):
    assert names(fuse([ranking(keys) for keys in order])) == ["a", "b"]


def test_equal_scores_in_one_file_stand_in_the_order_of_their_chunks():
    one, two = chunk("a", 2), chunk("a", 10)
    hits = fuse([[two, one], [one, two]])
    assert [hit.chunk.chunk_index for hit in hits] == [2, 10]


def test_of_two_generations_of_a_file_the_newer_counts():
    old, new = chunk("a", text="old"), chunk("a", revision=2, text="new")
    for rankings in ([[old, new]], [[new, old]], [[old], [new]], [[new], [old]]):
        assert [hit.chunk.text for hit in fuse(rankings)] == ["new"]


def test_a_chunk_that_only_the_older_generation_had_is_dropped():
    hits = fuse([[chunk("a", 7), chunk("b")], [chunk("a", 0, revision=2)]])
    assert sorted(hit.chunk.document_id for hit in hits) == ["a::0", "b::0"]


def test_an_older_generation_costs_the_others_no_rank():
    with_old = fuse([[chunk("a"), chunk("a", revision=2), chunk("b")]])
    assert [hit.score for hit in with_old] == [hit.score for hit in fuse([ranking("ab")])]


def test_generations_of_different_files_are_not_compared():
    assert names(fuse([[chunk("a", revision=9), chunk("b", revision=1)]])) == ["a", "b"]


def test_a_chunk_met_twice_in_one_ranking_counts_once_at_its_better_rank():
    twice = fuse([[chunk("a"), chunk("a"), chunk("b")]])
    assert [hit.score for hit in twice] == [hit.score for hit in fuse([ranking("ab")])]


def hits_of(keys):
    return [Hit(chunk(key, index), 1 - index / 100) for index, key in enumerate(keys)]


@pytest.mark.parametrize(
    ("keys", "limit", "expected"),
    [
        ("aaaab", 4, "aaab"),
        ("aaaab", 5, "aaaba"),
        ("aaaaabbbbb", 7, "aaabbba"),
        ("abcabc", 6, "abcabc"),
        ("aaaaa", 4, "aaaa"),
        ("abc", 10, "abc"),
        ("abc", 0, ""),
        ("", 5, ""),
    ],
)
def test_a_file_has_three_hits_until_nothing_else_is_left(keys, limit, expected):
    assert MAX_PER_FILE == 3
    assert "".join(names(spread(hits_of(keys), limit))) == expected


@given(st.text("abc", max_size=30), st.integers(0, 40), st.integers(1, 5))
def test_spreading_loses_and_invents_nothing(keys, limit, per_file):
    hits = hits_of(keys)
    found = spread(hits, limit, per_file)
    assert len(found) == min(limit, len(hits))
    assert len(set(map(id, found))) == len(found)
    assert set(map(id, found)) <= set(map(id, hits))

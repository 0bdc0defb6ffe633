"""Two searches' candidates become one ranking, which the same candidates always give."""

from dataclasses import replace
from functools import partial
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking import candidates, stored

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import STEPS, WEIGHTS, best, rank
from vector_index_mcp.engine.ranking.signals import SIGNALS
from vector_index_mcp.engine.types import Candidate

SENTENCE = Query("where is it all put together")
SYMBOL = Query("parse_cookie")
EVERYTHING = {*SIGNALS, *STEPS}
HALF = replace(WEIGHTS, semantic=0.5)


def names(hits):
    return [hit.chunk.key for hit in hits]


def scores(hits):
    return {hit.chunk.document_id: hit.score for hit in hits}


def fused(lexical, semantic, *, query=SENTENCE, weights=HALF):
    """The scores by file of a ranking that fuses and does nothing else."""
    hits = rank(
        query, candidates(lexical), candidates(semantic), weights=weights, without=EVERYTHING
    )
    return {hit.chunk.key: hit.score for hit in hits}


# -- names in plain words --------------------------------------------------------------------


def test_beside_the_definition_of_a_spelled_out_name_its_file_is_not_likely():
    definition = stored("mark.go", 0, text="func WaitForMark() {}", symbols=["WaitForMark"])
    others = [stored("mark.go", n, text="wait for a mark", total_chunks=4) for n in (1, 2, 3)]
    caller = stored("txn.go", text="wait for the mark")
    found = candidates({definition: 5.0, caller: 4.0} | dict.fromkeys(others, 4.5))
    first, *behind = best(Query("wait for mark"), found, [], 5)
    assert first.chunk == definition
    assert max(hit.likelihood for hit in behind) < first.likelihood / 2
    assert "txn.go" in names(behind)[:2]


# -- fusion ----------------------------------------------------------------------------------


def test_a_score_is_the_weighted_sum_of_both_searches_scores():
    weights = replace(WEIGHTS, semantic=0.25)
    found = fused({"a": 10.0, "b": 5.0}, {"a": 0.9, "b": 0.7, "c": 0.5}, weights=weights)
    # a: .75 * 1 + .25 * 1, b: .75 * .5 + .25 * .5, c: .25 * 0
    assert found == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0})


def test_lexical_scores_are_measured_from_zero_and_semantic_ones_from_the_last():
    assert fused({"a": 10.0, "b": 9.0}, {}) == pytest.approx({"a": 1.0, "b": 0.9})
    semantic = {"a": 0.9, "b": 0.7, "c": 0.5}
    assert fused({}, semantic) == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0})


def test_the_last_of_a_few_near_chunks_is_not_taken_for_worthless():
    assert fused({}, {"a": 0.9, "b": 0.85, "c": 0.8})["c"] > 0.5


@pytest.mark.parametrize(("share", "first"), [(0.0, "word"), (0.1, "word"), (0.9, "meaning")])
def test_the_weight_decides_whether_words_or_meaning_lead(share, first):
    weights = replace(WEIGHTS, semantic=share)
    found = fused({"word": 2.0, "meaning": 1.0}, {"meaning": 0.9, "word": 0.1}, weights=weights)
    assert max(found, key=found.get) == first


def test_identifiers_are_fused_with_a_weight_of_their_own():
    weights = replace(WEIGHTS, semantic=1.0, semantic_for_symbols=0.0)
    lexical, semantic = {"word": 2.0, "meaning": 1.0}, {"meaning": 0.9, "word": 0.1}
    for query, first in ((SENTENCE, "meaning"), (SYMBOL, "word")):
        found = fused(lexical, semantic, query=query, weights=weights)
        assert max(found, key=found.get) == first


def test_meaning_counts_less_for_an_identifier_than_for_a_sentence():
    assert WEIGHTS.semantic_for_symbols < WEIGHTS.semantic


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_a_search_that_found_nothing_has_no_say(share):
    weights = replace(WEIGHTS, semantic=share)
    assert fused({"a": 4.0, "b": 2.0}, {}, weights=weights) == {"a": 1.0, "b": 0.5}
    only_near = fused({}, {"a": 0.7, "b": 0.5, "c": 0.1}, weights=weights)
    assert only_near == pytest.approx({"a": 1.0, "b": 0.5, "c": 0.0})


def test_what_words_alone_have_found_counts_by_its_meaning_as_well():
    lexical = {"far.py": 9.0, "near.py": 9.0}
    cosines = {"far.py": 0.1, "near.py": 0.6}
    plainly = partial(rank, QUESTION, without=SIGNALS.keys() | STEPS)
    known = [replace(each, cosine=cosines[each.chunk.key]) for each in candidates(lexical)]
    best = plainly(known, candidates({"other.py": 0.7}))[0]
    assert best.chunk.key == "near.py"


def test_found_by_both_beats_found_by_one_as_well():
    found = fused({"both": 1.0, "word": 1.0}, {"both": 0.9, "meaning": 0.9, "far": 0.1})
    assert found["both"] > max(found["word"], found["meaning"])


QUESTION = Query("how are sparrows counted")


def test_a_chunk_without_a_vector_counts_by_its_words_alone():
    saved = stored("saved.py", text="how sparrows are counted", has_vector=False)
    lexical, semantic = {saved: 9.0, "other.py": 3.0}, {"near.py": 0.9, "other.py": 0.5}
    plainly = partial(rank, QUESTION, without=SIGNALS.keys() | STEPS)
    assert plainly(candidates(lexical), candidates(semantic))[0].chunk == saved
    with_vector = replace(saved, has_vector=True)  # which is far from the question
    lexical = {with_vector: 9.0, "other.py": 3.0}
    semantic = {"near.py": 0.9, "other.py": 0.5, with_vector: 0.1}
    assert plainly(candidates(lexical), candidates(semantic))[0].chunk.key == "near.py"


def test_vectors_of_others_change_nothing_of_how_likely_a_chunk_without_one_is():
    saved = stored("saved.py", text="how sparrows are counted", has_vector=False)
    lexical = candidates({saved: 9.0, "other.py": 3.0})
    [alone, *_] = best(QUESTION, lexical, [], 5)
    [beside, *_] = best(QUESTION, lexical, candidates({"near.py": 0.9}), 5)
    assert (alone.chunk, beside.chunk) == (saved, saved)
    assert beside.likelihood == pytest.approx(alone.likelihood)
    assert beside.why.meaning is None


def test_a_second_place_of_a_file_is_as_likely_in_the_right_file_as_the_first():
    plain, weak = (stored("a.py", place, text=text) for place, text in enumerate(("sparrow", "")))
    lexical = candidates({plain: 9.0, weak: 0.1})
    first, second = best(QUESTION, lexical, [], 5)
    assert (first.chunk, second.chunk) == (plain, weak)
    assert first.likelihood == second.likelihood
    first, second = best(Query("Sparrow"), lexical, [], 5)
    assert first.likelihood > second.likelihood


@pytest.mark.parametrize("score", [0.5, 0.0, -0.5])
def test_equally_near_chunks_are_all_as_good_as_the_best(score):
    assert fused({}, {"a": score, "b": score}) == {"a": 1.0, "b": 1.0}


def test_scores_of_zero_are_no_division_by_zero():
    assert fused({"a": 0.0}, {}) == {"a": 0.0}


@pytest.mark.parametrize("query", [SENTENCE, SYMBOL, Query(""), Query("???")])
def test_nothing_found_is_no_hits(query):
    assert rank(query, [], []) == []


def test_a_chunk_met_twice_by_full_text_counts_once():
    # As while its vector is being filled in: the row is added again before the old one goes.
    twice = candidates({"a": 2.0, "b": 1.0})
    assert rank(SENTENCE, [twice[0], *twice], []) == rank(SENTENCE, twice, [])


# -- generations of a file -------------------------------------------------------------------


@pytest.mark.parametrize("searches", [("both", ""), ("", "both"), ("old", "new"), ("new", "old")])
def test_of_two_generations_of_a_file_the_newer_counts(searches):
    old = Candidate(stored("a", text="old"), 0.9)
    new = Candidate(stored("a", text="new", revision=2), 0.1)
    known = {"old": [old], "new": [new], "both": [old, new], "": []}
    hits = rank(SENTENCE, *(known[search] for search in searches))
    assert [hit.chunk.text for hit in hits] == ["new"]


def test_a_chunk_that_only_the_older_generation_had_is_dropped():
    lexical = candidates({stored("a", 7): 2.0, stored("b"): 1.0})
    semantic = candidates({stored("a", 0, revision=2): 0.5})
    assert set(scores(rank(SENTENCE, lexical, semantic))) == {"a::0", "b::0"}


def test_an_older_generation_does_not_weigh_on_the_others():
    new, other = stored("a", revision=2), stored("b")
    with_old = candidates({stored("a", 3): 100.0, new: 2.0, other: 1.0})
    assert rank(SENTENCE, with_old, []) == rank(SENTENCE, candidates({new: 2.0, other: 1.0}), [])


def test_generations_of_different_files_are_not_compared():
    found = candidates({stored("a", revision=9): 2.0, stored("b", revision=1): 1.0})
    assert names(rank(SENTENCE, found, [])) == ["a", "b"]


# -- support and spread ----------------------------------------------------------------------

ONLY_SUPPORT = EVERYTHING - {"support"}
ONLY_SPREAD = EVERYTHING - {"spread"}


def test_a_file_with_several_good_places_is_preferred():
    found = {stored("single"): 1.0} | {stored("several", index): 0.95 for index in range(4)}
    lexical = candidates(found)
    assert names(rank(SENTENCE, lexical, [], without=EVERYTHING))[0] == "single"
    assert names(rank(SENTENCE, lexical, [], without=ONLY_SUPPORT))[0] == "several"


def test_support_raises_the_best_place_of_a_file_only():
    lexical = candidates({stored("a"): 1.0, stored("b", 0): 0.9, stored("b", 1): 0.8})
    plain = scores(rank(SENTENCE, lexical, [], without=EVERYTHING))
    raised = scores(rank(SENTENCE, lexical, [], without=ONLY_SUPPORT))
    highest = max(rank(SENTENCE, lexical, [], without=ONLY_SUPPORT), key=lambda hit: hit.score)
    assert highest.chunk.document_id == "b::0"
    assert plain["b::1"] / plain["a::0"] > raised["b::1"] / raised["a::0"]
    assert raised["b::0"] / raised["b::1"] > plain["b::0"] / plain["b::1"]


def test_support_of_no_strength_changes_nothing():
    lexical = candidates({stored("a"): 1.0, stored("b", 0): 0.9, stored("b", 1): 0.8})
    weights = replace(WEIGHTS, support=0.0)
    assert rank(SENTENCE, lexical, [], weights=weights, without=ONLY_SUPPORT) == rank(
        SENTENCE, lexical, [], without=EVERYTHING
    )


def test_another_file_goes_before_more_of_the_same():
    lexical = candidates({stored("a", i): 1.0 - i / 100 for i in range(3)} | {stored("b"): 0.8})
    assert names(rank(SENTENCE, lexical, [], without=EVERYTHING)) == ["a", "a", "a", "b"]
    assert names(rank(SENTENCE, lexical, [], without=ONLY_SPREAD)) == ["a", "b", "a", "a"]


def test_each_further_place_of_a_file_counts_less_than_the_one_before():
    weights = replace(WEIGHTS, repeated=0.5)
    lexical = candidates({stored("a", i): 8.0 for i in range(4)})
    hits = rank(SENTENCE, lexical, [], weights=weights, without=ONLY_SPREAD)
    assert [hit.score for hit in hits] == [1.0, 0.5, 0.25, 0.125]


def test_spreading_loses_no_hit():
    lexical = candidates({stored("a", i): 1.0 + i for i in range(50)})
    assert len(rank(SENTENCE, lexical, [])) == 50


# -- signals ---------------------------------------------------------------------------------


def test_a_signal_moves_a_better_answer_up():
    defining, using = stored("a.py", symbols=["parse_cookie"]), stored("b.py")
    lexical = candidates({using: 1.0, defining: 0.9})
    assert names(rank(SYMBOL, lexical, [], without=EVERYTHING)) == ["b.py", "a.py"]
    assert names(rank(SYMBOL, lexical, [], without=EVERYTHING - {"defines"})) == ["a.py", "b.py"]


# For each name: what a query prefers about `better` when that one is all that tells it apart.
TELLING = {
    "defines": ("parse_cookie", stored("x.py", symbols=["parse_cookie"]), stored("x2.py")),
    "part_of_name": ("parse_cookie", stored("x.py", symbols=["ParseCookieHeader"]), stored("y.py")),
    "holds": ("parse_cookie", stored("x.py", text="parse_cookie()"), stored("y.py", text="parse")),
    "path": ("the cookie jar", stored("cookie/x.py"), stored("other/x.py")),
    "coverage": ("the cookie jar", stored("x.py", text="cookie jar"), stored("y.py")),
    "named": ("see lib/x.py", stored("lib/x.py"), stored("src/y.py")),
    "quoted": ("'no such'", stored("x.py", text="no such"), stored("y.py", text="such no")),
    "numbered": ("news of 1.2.3", stored("x.py", text="1.2.3"), stored("y.py", text="1.2.34")),
    "verbatim": (
        "Error: the cookie jar is full",
        stored("x.py", text="fail('The cookie jar '\n 'is full')"),
        stored("y.py", text="if error: full = the jar, is cookie"),
    ),
    "kind_of_file": ("the cookie jar", stored("src/x.py"), stored("tests/x.py")),
    "support": ("the cookie jar", stored("x.py"), stored("y.py")),
    "spread": ("the cookie jar", stored("x.py"), stored("y.py")),
    "files": ("the cookie jar", stored("x.py", total_chunks=2), stored("y.py", total_chunks=90)),
}


def test_the_table_names_every_signal_and_step():
    assert set(TELLING) == EVERYTHING


@pytest.mark.parametrize("name", sorted(EVERYTHING))
def test_every_signal_and_step_can_be_left_out(name):
    query, better, worse = TELLING[name]
    proposed = {better: 1.0, worse: 1.0}
    if name == "support":
        proposed[stored("x.py", 1)] = 0.9
    if name == "spread":
        proposed[stored("y.py", 1)] = 1.0
    lexical = candidates(proposed)
    with_it = rank(Query(query), lexical, [], without=EVERYTHING - {name})
    assert scores(with_it)[better.document_id] == 1.0
    others = [hit.score for hit in with_it if hit.chunk.document_id != better.document_id]
    assert min(others) < 1.0
    left_out = scores(rank(Query(query), lexical, [], without=EVERYTHING))
    assert left_out == {c.chunk.document_id: c.score for c in lexical}


# -- order -----------------------------------------------------------------------------------


def test_equal_scores_stand_in_the_order_of_paths_and_chunks():
    tied = [stored("b"), stored("a", 10), stored("a", 2)]
    for order in permutations(tied):
        hits = rank(SENTENCE, candidates(dict.fromkeys(order, 1.0)), [], without=EVERYTHING)
        assert [hit.chunk.document_id for hit in hits] == ["a::2", "a::10", "b::0"]


@pytest.mark.parametrize("without", [set(), ONLY_SUPPORT, ONLY_SPREAD])
def test_the_order_in_which_equals_are_found_does_not_matter(without):
    tied = [stored("a", 10), stored("a", 2), stored("b", 1), stored("b", 0)]
    rankings = [
        rank(SENTENCE, [Candidate(chunk, 1.0) for chunk in order], [], without=without)
        for order in permutations(tied)
    ]
    assert all(ranking == rankings[0] for ranking in rankings)


chunks = st.builds(
    stored,
    st.sampled_from(["a.py", "tests/a.py", "src/cookie.py", "docs/x.md", "b"]),
    st.integers(0, 3),
    text=st.sampled_from(["", "cookie", "def parse_cookie(): pass", "a cookie jar"]),
    scope=st.sampled_from(["", "class Cookie"]),
    symbols=st.sampled_from([(), ("parse_cookie",), ("Cookie", "Jar")]),
    revision=st.integers(1, 2),
)
lexical_candidates = st.dictionaries(chunks, st.floats(0, 100), max_size=8).map(candidates)
semantic_candidates = st.dictionaries(chunks, st.floats(-1, 1), max_size=8).map(candidates)
queries = st.sampled_from(["parse_cookie", "where is the cookie jar", '"cookie"', "src/cookie.py"])


@given(queries, lexical_candidates, semantic_candidates)
def test_scores_go_from_one_down_to_zero(query, lexical, semantic):
    found = [hit.score for hit in rank(Query(query), lexical, semantic)]
    assert found == sorted(found, reverse=True)
    assert all(0 <= score <= 1 for score in found)
    assert not found or found[0] == 1.0 or set(found) == {0.0}


@given(queries, lexical_candidates, semantic_candidates)
def test_every_chunk_of_the_newest_generation_is_one_hit(query, lexical, semantic):
    found = [candidate.chunk for candidate in (*lexical, *semantic)]
    newest = {key: max(c.revision for c in found if c.key == key) for key in {c.key for c in found}}
    expected = {c.document_id for c in found if c.revision == newest[c.key]}
    hits = [hit.chunk.document_id for hit in rank(Query(query), lexical, semantic)]
    assert sorted(hits) == sorted(expected)


def test_the_whole_of_a_message_is_a_better_answer_than_most_of_it():
    message = "Encountered Promise during synchronous parse. Use .parseAsync() instead."
    whole = stored("core.ts", text=f"super(`{message}`)")
    most = stored(
        "types.ts", text="Async encountered during synchronous parse. Use .parseAsync instead."
    )
    other = stored("parse.ts", text="parse async")
    lexical = candidates({most: 1.0, whole: 0.84, other: 0.47})
    semantic = candidates({other: 0.75, most: 0.6, whole: 0.44})
    assert names(rank(Query(message), lexical, semantic))[0] == "core.ts"


# -- documents --------------------------------------------------------------------------------

SHARING = "can several servers share stored tasks"
FAQ = stored("docs/faq.md", language="markdown", text="Sharing between several servers")


CODE = {stored(f"src/{name}.py", text="tasks"): 8 - n / 10 for n, name in enumerate("abcdefgh")}


def test_where_nothing_is_likely_the_document_that_matches_best_is_the_fifth():
    hits = best(Query(SHARING), candidates(CODE | {FAQ: 9}), [], limit=9)
    assert hits[0].likelihood < 0.2
    assert names(hits).index(FAQ.key) == 4
    assert len({*names(hits)}) == 9
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert names(best(Query(SHARING), candidates(CODE | {FAQ: 9}), [], limit=5)) == names(hits)[:5]


def test_a_document_waits_its_turn_where_something_is_likely():
    sure = stored("src/share.py", text="stored tasks are shared between several servers")
    hits = best(Query(SHARING), candidates({sure: 11.9, FAQ: 12} | CODE), [], limit=10)
    assert hits[0].likelihood >= 0.2
    assert names(hits).index(FAQ.key) > 4


def test_a_document_waits_its_turn_where_others_match_better():
    hits = best(Query(SHARING), candidates({FAQ: 7.9} | CODE), [], limit=9)
    assert hits[0].likelihood < 0.2
    assert names(hits).index(FAQ.key) > 4

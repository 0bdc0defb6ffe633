"""Which file comes first: small made projects in the shape of those where the order was wrong."""

from dataclasses import replace

import pytest
from ranking import candidates, stored

from vector_index_mcp.engine.ranking import linear
from vector_index_mcp.engine.ranking.file_order import (
    BY_MEANING,
    BY_SOME_MEANING,
    BY_WORDS,
    FileEvidence,
)
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import found_for, rank

WHERE = Query("where are the differences shown to the user")


def order(query, lexical, semantic=None, **named):
    hits = rank(query, candidates(lexical), candidates(semantic or {}), **named)
    return list(dict.fromkeys(hit.chunk.key for hit in hits))


# A central file, whose chunks each mention a word of the question, and a file about the subject. No
# text repeats the question word for word.
HUB = {
    stored("core.py", 3, text="differences of users", total_chunks=120): 13.0,
    stored("core.py", 40, text="the user is shown", total_chunks=120): 6.0,
    stored("core.py", 77, text="user differences", total_chunks=120): 5.0,
}
SUBJECT = {
    stored("view/changes.py", 0, text="differences that the user is shown", total_chunks=2): 9.0,
    stored("view/changes.py", 1, text="user sees differences", total_chunks=2): 7.0,
}


def test_a_small_file_about_the_subject_comes_before_a_hub_that_mentions_it():
    assert order(WHERE, HUB | SUBJECT, without=["files"])[0] == "core.py"
    assert order(WHERE, HUB | SUBJECT)[0] == "view/changes.py"


def test_by_meaning_as_well():
    near = {chunk: 0.60 - 0.02 * place for place, chunk in enumerate([*HUB, *SUBJECT])}
    assert order(WHERE, HUB | SUBJECT, near, without=["files"])[0] == "core.py"
    assert order(WHERE, HUB | SUBJECT, near)[0] == "view/changes.py"


def test_a_file_with_two_good_places_comes_before_one_that_was_met_once():
    once = {stored("once.py", 1, text="differences", total_chunks=4): 10.0}
    twice = {
        stored("twice.py", 1, text="differences", total_chunks=4): 9.5,
        stored("twice.py", 2, text="shown", total_chunks=4): 9.4,
    }
    assert order(WHERE, once | twice)[0] == "twice.py"


def test_files_that_hold_the_question_together_beat_those_that_repeat_a_word():
    repeats = {
        stored("log.py", 0, text="user user user", total_chunks=3): 10.0,
        stored("log.py", 1, text="user again", total_chunks=3): 8.0,
    }
    holds = {
        stored("view.py", 0, text="shown differences", total_chunks=3): 9.5,
        stored("view.py", 1, text="user", total_chunks=3): 8.0,
    }
    assert order(WHERE, repeats | holds)[0] == "view.py"


def test_a_file_that_is_called_what_is_asked_for_comes_before_one_that_is_not():
    called = {stored("view/difference.py", 0, text="shown to users", total_chunks=3): 9.0}
    defines = {stored("b.py", 0, text="user", symbols=["show_differences"], total_chunks=3): 9.0}
    mentions = {stored("a.py", 0, text="shown to users", total_chunks=3): 9.9}
    assert order(WHERE, mentions | called)[0] == "view/difference.py"
    assert order(WHERE, mentions | defines)[0] == "b.py"


def test_the_best_place_of_each_of_ten_files_comes_before_a_second_one():
    lexical = {
        stored(f"{name}.py", place, text="differences", total_chunks=9): 10.0 - number - place / 10
        for number, name in enumerate("abcde")
        for place in range(1, 4)
    }
    hits = rank(WHERE, candidates(lexical), [])
    assert [hit.chunk.key for hit in hits[:5]] == [f"{name}.py" for name in "abcde"]
    assert len(hits) == len(lexical)
    assert hits[0].chunk.chunk_index == 1


def test_two_places_of_a_file_that_stands_out_come_before_files_that_match_less():
    less = {
        stored(f"{name}.py", 0, text="users differences", total_chunks=9): 7.0 - number / 10
        for number, name in enumerate("abcdefgh")
    }
    found = [hit.chunk for hit in rank(WHERE, candidates(SUBJECT | less), [])]
    assert [chunk.key for chunk in found[:3]] == ["view/changes.py", "view/changes.py", "a.py"]


def test_scores_begin_at_one_and_fall():
    hits = rank(WHERE, candidates(HUB | SUBJECT), [])
    scores = [hit.score for hit in hits]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)


@pytest.mark.parametrize(
    "query",
    ["parse_cookie", "class Cookie", "view/changes.py", "'shown to the user'"],
)
def test_what_is_named_or_quoted_is_left_to_the_chunks(query):
    lexical = HUB | SUBJECT
    assert order(Query(query), lexical) == order(Query(query), lexical, without=["files"])


def test_a_log_and_code_that_others_should_be_like_are_left_to_the_chunks():
    text = " ".join(f"word{number} of" for number in range(60))
    assert not Query(text).is_question
    assert Query("how are the differences shown").is_question


def test_there_may_be_nothing_to_order():
    assert rank(WHERE, [], []) == []
    assert found_for(WHERE, [], []).evidence() == {}


def test_evidence_is_of_whole_files():
    found = found_for(WHERE, candidates(HUB | SUBJECT), [])
    hub, subject = (found.evidence()[key] for key in ("core.py", "view/changes.py"))
    assert hub.score == 1.0
    assert 0 < subject.second < subject.score
    assert hub.meaning == subject.meaning == 0.0
    assert hub.size > subject.size
    assert 0 < subject.coverage <= 1


def test_each_weight_has_the_sign_that_its_meaning_demands():
    for weights in (BY_MEANING, BY_WORDS):
        assert weights.size < 0
        assert min(weights.score, weights.second, weights.coverage, weights.names) > 0
    assert BY_MEANING.meaning > BY_SOME_MEANING.meaning > 0
    assert BY_WORDS.meaning == 0
    assert linear.total(FileEvidence(1, 1, 1, 1, 1, 1), BY_MEANING) == pytest.approx(
        3.38 + 1.75 + 2.81 + 2.2 + 1.98 - 0.63
    )


def test_without_vectors_other_weights_are_used():
    near = candidates({next(iter(SUBJECT)): 0.5})
    assert found_for(WHERE, candidates(SUBJECT), []).weights == BY_WORDS
    assert found_for(WHERE, candidates(SUBJECT), near).weights == BY_MEANING


def test_while_vectors_are_made_their_nearness_counts_less():
    first, second = SUBJECT
    words = candidates({first: 9.0, replace(second, has_vector=False): 7.0})
    assert found_for(WHERE, words, candidates({first: 0.5})).weights == BY_SOME_MEANING


def test_the_nearest_chunk_shows_how_near_a_file_is():
    lexical = {stored(name, n, text="differences"): 9.0 - n for name in "ab" for n in range(3)}
    cosines = dict(zip(lexical, (0.5, 0.5, 0.5, 0.7, 0.1, 0.1), strict=True))
    found = found_for(WHERE, candidates(lexical), candidates(cosines))
    assert found.evidence()["b"].meaning > found.evidence()["a"].meaning


def test_what_only_tells_of_code_is_not_nearer_than_the_code():
    lexical = {stored("docs/view.md", text="differences", language="markdown"): 9.0}
    lexical |= {stored("view.py", text="differences"): 9.0}
    near = dict.fromkeys(lexical, 0.7)
    found = found_for(WHERE, candidates(lexical), candidates(near)).evidence()
    assert found["docs/view.md"].meaning == pytest.approx(0.4 * found["view.py"].meaning)

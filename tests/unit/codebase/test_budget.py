"""Answers keep to their length: texts are shortened before results are left out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranking import stored

from vector_index_mcp.codebase.budget import CHARS_PER_TOKEN, TOKENS_PER_HIT, fit
from vector_index_mcp.engine.types import Hit

SHORTEST = 200


def hits_of(texts):
    return [
        Hit(stored(f"{number}.py", text=text), 1 - number / 1000)
        for number, text in enumerate(texts)
    ]


def estimate(texts):
    """How many tokens an answer of these texts takes."""
    return len(texts) * TOKENS_PER_HIT + sum(map(len, texts)) / CHARS_PER_TOKEN


def lines(count, length=20):
    return ("x" * (length - 1) + "\n") * count


texts = st.lists(
    st.one_of(
        st.text("ab \n", max_size=1500),
        st.builds(lines, st.integers(0, 80), st.integers(1, 100)),
        st.integers(0, 3000).map(lambda length: "x" * length),
    ),
    max_size=20,
)
token_limits = st.integers(500, 20_000)


@given(texts, token_limits)
def test_an_answer_keeps_to_its_length(found, max_tokens):
    shown = fit(hits_of(found), max_tokens)
    assert estimate([one.text for one in shown]) <= max_tokens


@given(texts, token_limits)
def test_the_best_hits_stay_in_their_order_and_at_least_one(found, max_tokens):
    hits = hits_of(found)
    shown = fit(hits, max_tokens)
    assert [one.hit for one in shown] == hits[: len(shown)]
    assert shown or not hits


@given(texts, token_limits)
def test_what_is_shown_of_a_text_are_its_first_whole_lines(found, max_tokens):
    for one in fit(hits_of(found), max_tokens):
        whole = one.hit.chunk.text
        assert whole.startswith(one.text)
        assert bool(one.text) == bool(whole)
        assert one.is_cut == (one.text != whole)
        assert not one.is_cut or one.text.endswith("\n") or "\n" not in one.text


@given(texts, token_limits)
def test_what_fits_is_shown_whole(found, max_tokens):
    if estimate(found) <= max_tokens:
        assert [one.text for one in fit(hits_of(found), max_tokens)] == found


@given(texts, token_limits)
def test_results_are_left_out_only_when_texts_cannot_be_shorter(found, max_tokens):
    shown = fit(hits_of(found), max_tokens)
    if len(shown) < len(found):
        shortest = [text[:SHORTEST] for text in found[: len(shown) + 1]]
        assert estimate(shortest) > max_tokens


@given(texts, token_limits)
def test_the_longest_texts_are_shortened_first(found, max_tokens):
    shown = fit(hits_of(found), max_tokens)
    cut = [len(one.text) for one in shown if one.is_cut and "\n" not in one.text]
    whole = [len(one.text) for one in shown if not one.is_cut]
    if cut and whole:
        assert max(whole) <= min(cut)


@pytest.mark.parametrize("max_tokens", [500, 8_000])
def test_no_hits_are_no_hits(max_tokens):
    assert fit([], max_tokens) == []


def test_one_long_text_gets_the_room_that_short_ones_leave():
    found = [lines(2), lines(1000), lines(2)]
    shown = fit(hits_of(found), 3_000)
    assert [one.is_cut for one in shown] == [False, True, False]
    # Not even one more line would fit.
    assert estimate([one.text for one in shown]) + 20 / CHARS_PER_TOKEN > 3_000


def test_a_first_line_longer_than_the_room_is_cut_inside():
    [shown] = fit(hits_of(["x" * 10_000 + "\nmore\n"]), 500)
    assert shown.is_cut
    assert set(shown.text) == {"x"}


def test_short_texts_leave_room_for_more_results():
    found = ["short\n"] * 10
    assert len(fit(hits_of(found), 10 * TOKENS_PER_HIT + 100)) == 10


@given(st.integers(2, 100))
def test_a_longer_answer_shows_no_less(count):
    hits = hits_of([lines(60)] * count)
    shorter, longer = fit(hits, 4_000), fit(hits, 8_000)
    assert len(shorter) <= len(longer)
    assert sum(len(one.text) for one in shorter) <= sum(len(one.text) for one in longer)

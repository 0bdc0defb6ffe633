"""Answers keep to their length: texts are shortened before results are left out."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.codebase.budget import fit, sent_chars

SHORTEST = 200
FRAME = 100


def fitted(texts, most_chars):
    return fit(texts, [FRAME] * len(texts), most_chars)


def length(texts):
    """How long an answer of these texts is, as JSON."""
    return sum(FRAME + len(json.dumps(text, ensure_ascii=False)) - 2 for text in texts)


def lines(count, length=20):
    return ("x" * (length - 1) + "\n") * count


texts = st.lists(
    st.one_of(
        st.text('ab \n"\\\x00é', max_size=1500),
        st.builds(lines, st.integers(0, 80), st.integers(1, 100)),
        st.integers(0, 3000).map(lambda length: "x" * length),
    ),
    max_size=20,
)
limits = st.integers(1_500, 60_000)


@pytest.mark.slow
@given(texts, limits)
def test_an_answer_keeps_to_its_length(found, most_chars):
    assert length(fitted(found, most_chars)) <= most_chars


@given(texts, limits)
def test_at_least_one_hit_stays(found, most_chars):
    assert bool(fitted(found, most_chars)) == bool(found)


@given(texts, limits)
def test_what_is_shown_of_a_text_are_its_first_whole_lines(found, most_chars):
    for shown, whole in zip(fitted(found, most_chars), found, strict=False):
        assert whole.startswith(shown)
        assert bool(shown) == bool(whole)
        assert shown == whole or shown.endswith("\n") or "\n" not in shown


@given(texts, limits)
def test_what_fits_is_shown_whole(found, most_chars):
    if length(found) <= most_chars:
        assert fitted(found, most_chars) == found


@given(texts, limits)
def test_results_are_left_out_only_when_texts_cannot_be_shorter(found, most_chars):
    shown = fitted(found, most_chars)
    if len(shown) < len(found):
        rest = [min(sent_chars(text), SHORTEST) for text in found[: len(shown) + 1]]
        assert sum(rest) + FRAME * len(rest) > most_chars


@given(texts, limits)
def test_the_longest_texts_are_shortened_first(found, most_chars):
    pairs = list(zip(fitted(found, most_chars), found, strict=False))
    cut = [sent_chars(whole) for shown, whole in pairs if shown != whole]
    uncut = [sent_chars(whole) for shown, whole in pairs if shown == whole]
    if cut and uncut:
        assert max(uncut) <= min(cut)


@pytest.mark.parametrize("most_chars", [1_500, 24_000])
def test_no_hits_are_no_hits(most_chars):
    assert fitted([], most_chars) == []


def test_one_long_text_gets_the_room_that_short_ones_leave():
    found = [lines(2), lines(1000), lines(2)]
    shown = fitted(found, 9_000)
    assert [one == whole for one, whole in zip(shown, found, strict=True)] == [True, False, True]
    assert length(shown) + sent_chars(lines(1)) > 9_000  # not even one more line would fit


def test_a_first_line_longer_than_the_room_is_cut_inside():
    [shown] = fitted(["x" * 10_000 + "\nmore\n"], 1_500)
    assert set(shown) == {"x"}


def test_short_texts_leave_room_for_more_results():
    assert len(fitted(["short\n"] * 10, 10 * FRAME + 100)) == 10


@given(st.integers(2, 100))
def test_a_longer_answer_shows_no_less(count):
    found = [lines(60)] * count
    shorter, longer = fitted(found, 12_000), fitted(found, 24_000)
    assert len(shorter) <= len(longer)
    assert sum(map(len, shorter)) <= sum(map(len, longer))

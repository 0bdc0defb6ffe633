"""How much of a query a text repeats."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.ranking.verbatim import Repeats

MESSAGE = "The setup method can no longer be called"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        (MESSAGE, 1.0),
        ("x = 1; raise E('The setup method can no longer be called')  # never", 1.0),
        ("raise E(\n    'the setup method can '\n    'no longer be called')", 1.0),
        ("THE_SETUP_METHOD_CAN_NO_LONGER_BE_CALLED", 1.0),
        ("f'The setup {method} can no longer be called'", 1.0),
        ("f'The setup {kind} method can no longer be called'", 6 / 8),
        ("the setup method is called; it can no longer be", 4 / 8),
        ("the setup method is called, no longer", 0.0),
        ("a method can no longer be called setup", 6 / 8),
        ("", 0.0),
    ],
)
def test_the_longest_run_of_words_counts(text, share):
    assert Repeats(MESSAGE).found_in(text).in_a_row == share


@pytest.mark.parametrize("query", ["", "no longer called", "word " * 61, "???"])
def test_of_few_words_and_of_a_log_nothing_is_repeated(query):
    repeats = Repeats(query)
    assert not repeats.is_possible
    assert repeats.found_in(query) == (0.0, 0.0)


def test_words_are_whole_and_folded():
    repeats = Repeats("Größe ist zu klein")
    assert repeats.found_in("die GRÖSSE ist zu klein!").in_a_row == 1.0
    assert repeats.found_in("größe ist zu kleinlich").in_a_row == 0.0


@given(st.lists(st.sampled_from("abcd"), min_size=4, max_size=60), st.text(max_size=50))
def test_a_text_that_has_all_of_it_repeats_all_of_it(words, around):
    query = " ".join(words)
    assert Repeats(query).found_in(f"{around} {query} {around}") == (1.0, 1.0)


FILLED = "all handlers for tcp on lo are down"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("log('all handlers for %s on %s are down')", 6 / 8),
        ("f'all handlers for {self.kind!r} on {self.name!r} are down'", 6 / 8),
        ("`all handlers for ${kind} on ${host.name} are down`", 6 / 8),
        ("'all handlers for ' + kind + ' on ' + name +\n    ' are down'", 6 / 8),
        ("all for on are", 4 / 8),
        ("all on are", 0.0),
        ("down are on for handlers all", 0.0),
        ("all a b c d handlers a b c d for a b c d on", 0.0),
        ("all a b c handlers a b c for a b c on", 4 / 8),
    ],
)
def test_words_around_what_is_filled_in_count_in_their_order(text, share):
    assert Repeats(FILLED).found_in(text).in_order == share


def test_what_is_filled_in_may_be_a_path():
    message = "cannot open /srv/a/b/c/d.json for writing now"
    assert Repeats(message).found_in("cannot open %s for writing now").in_order == 1.0
    assert Repeats(message).found_in("cannot open it for writing").in_order == 4 / 5


def test_what_no_text_has_was_filled_in():
    repeats = Repeats("all handlers for tcp are down", lambda word: word == "tcp")
    assert repeats.found_in("all handlers for %s are down").in_order == 1.0


@pytest.mark.parametrize("query", ["d c b a " * 15, "a a a a a a a a a a a a b c d " * 4])
def test_words_that_come_again_and_again_cost_no_more_than_others(query):
    """Counted in steps of the interpreter: a clock would tell how busy the machine is."""
    text, other = "a b c d " * 300, "e f g h " * 300
    repeats = Repeats(query)
    assert _steps(repeats, text) < 80 * len(text.split()) + _steps(repeats, other)


def _steps(repeats, text):
    count = 0

    def counted(_, event, __):
        nonlocal count
        count += event == "line"
        return counted

    before = sys.gettrace()
    sys.settrace(counted)
    try:
        repeats.found_in(text)
    finally:
        sys.settrace(before)
    return count


@given(st.text(max_size=200), st.text(max_size=200))
def test_it_is_a_share(query, text):
    row, order = Repeats(query).found_in(text)
    assert 0.0 <= row <= order <= 1.0

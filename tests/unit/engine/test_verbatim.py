"""How much of a query a text repeats."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.verbatim import Repeats

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
    assert Repeats(MESSAGE).share_in(text) == share


@pytest.mark.parametrize("query", ["", "no longer called", "word " * 61, "???"])
def test_of_few_words_and_of_a_log_nothing_is_repeated(query):
    repeats = Repeats(query)
    assert not repeats.is_possible
    assert repeats.share_in(query) == 0.0


def test_words_are_whole_and_folded():
    repeats = Repeats("Größe ist zu klein")
    assert repeats.share_in("die GRÖSSE ist zu klein!") == Repeats("größe ist zu klein").share_in(
        "GRÖSSE ist zu klein"
    )
    assert repeats.share_in("größe ist zu kleinlich") == 0.0


@given(st.lists(st.sampled_from("abcd"), min_size=4, max_size=60), st.text(max_size=50))
def test_a_text_that_has_all_of_it_repeats_all_of_it(words, around):
    query = " ".join(words)
    assert Repeats(query).share_in(f"{around} {query} {around}") == 1.0


@given(st.text(max_size=200), st.text(max_size=200))
def test_it_is_a_share(query, text):
    assert 0.0 <= Repeats(query).share_in(text) <= 1.0

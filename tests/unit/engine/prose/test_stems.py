"""Words of texts and queries meet by their stems, in any spelling and script."""

import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.prose import stems
from vector_index_mcp.engine.prose.stems import asked_stems, stemmed, stems_of


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("running", "She runs."),
        ("connected", "Connections connect."),
        ("Cafés", "the cafe"),
        ("user names", "getUserName"),
        ("get_user_name", "the name of a user: GetUserName"),
        ("naïve", "naive"),
        ("ＦＵＬＬ", "full"),
        ("Straße", "STRASSE"),
        ("Москва", "москва"),
        ("北京", "我在北京。"),
        ("東京都", "東京都は"),
        ("한국어", "한국어"),
    ],
)
def test_a_query_meets_a_text(query, text):
    asked = asked_stems(query)
    assert asked and set(asked) & set(stems_of(text))


@pytest.mark.parametrize(("query", "text"), [("university", "unit"), ("mars", "marble")])
def test_other_words_stay_others(query, text):
    assert not set(asked_stems(query)) & set(stems_of(text))


def test_repeated_words_of_a_query_are_kept_and_grammar_is_not():
    assert asked_stems("What is the price of prices?") == ["price", "price"]
    assert asked_stems("what is it") == ["what", "is", "it"]  # there is nothing else
    assert asked_stems("") == asked_stems("?!") == []


def test_the_stems_of_a_text_stand_in_its_order():
    assert stemmed("Runs, running; and RUNNING") == "run run and run"
    assert stems_of("Runs, running") == ["run", "run"]


@pytest.mark.slow
@settings(max_examples=examples(300))
@given(st.lists(st.text(min_size=1, max_size=12), max_size=6))
def test_a_text_is_found_by_each_of_its_words(words):
    text = " ".join(words)
    found = set(stems_of(text))
    for word in text.split():
        assert found.issuperset(stems_of(word))
        assert found.issuperset(asked_stems(word))


def test_so_many_words_are_kept_and_no_more(monkeypatch):
    monkeypatch.setattr(stems, "_MOST_KEPT", 10)
    monkeypatch.setattr(stems, "_STEMS", stems._Stems())
    assert stemmed(" ".join(f"words{letter}s" for letter in "abcdefghijklmnop")).count("s") > 0
    assert len(stems._STEMS) <= 10

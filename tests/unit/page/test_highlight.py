"""Coloured spans are the text they were made of, whatever it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk.grammars import GRAMMARS
from vector_index_mcp.files.language import OTHER, known_language
from vector_index_mcp.page.highlight import spans

CODE = 'def get_user(name):\n    # a comment\n    return find("text", 42)\n'


def joined(pieces):
    return "".join(text for _, text, _ in pieces)


def test_tokens_have_the_class_of_their_kind():
    kinds = {text.strip(): kind for kind, text, _ in spans(CODE, "python", set())}
    assert kinds["def"] == "k"
    assert kinds["get_user"] == "f"
    assert kinds["# a comment"] == "c"
    assert kinds['"text"'] == "s"
    assert kinds["42"] == "n"


@pytest.mark.parametrize("wanted", ["user", "getuser"])
def test_identifiers_with_a_word_that_was_asked_for_are_marked(wanted):
    marked = [text for _, text, is_marked in spans(CODE, "python", {wanted}) if is_marked]
    assert marked == ["get_user"]


def test_a_mark_inside_of_a_token_divides_it():
    pieces = spans("# the user came", "python", {"user"})
    assert pieces == [("c", "# the ", 0), ("c", "user", 1), ("c", " came", 0)]


def test_an_unknown_language_stays_plain():
    assert spans(CODE, "no such language", set()) == [("", CODE, 0)]


def test_what_is_very_long_stays_plain():
    text = CODE * 1_000
    assert spans(text, "python", set()) == [("", text, 0)]


@pytest.mark.parametrize("language", ["python", "javascript", "html", "markdown", "other", "json"])
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=200), data=st.data())
def test_no_character_is_lost(language, text, data):
    wanted = data.draw(st.sets(st.sampled_from(["a", "b", "0"])))
    assert joined(spans(text, language, wanted)) == text


@pytest.mark.parametrize("text", ["\r\n\tx = 1\r\n", "\x1b[31mred\x1b[0m", "\ufeffx\0y\u2028z", ""])
def test_odd_characters_stay(text):
    assert joined(spans(text, "python", set())) == text


@pytest.mark.parametrize("language", sorted({*GRAMMARS, OTHER}))
def test_every_language_that_is_cut_by_syntax_is_coloured(language):
    assert known_language(language) is not None
    text = "'text' \"text\" 42 // # -- comment\nfunction def class if end return <a b='c'>\n" * 3
    assert joined(spans(text, language, set())) == text
    assert language in {OTHER} or len(spans(text, language, set())) > 1

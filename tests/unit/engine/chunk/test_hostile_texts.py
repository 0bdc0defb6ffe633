"""Texts nobody meant to write are cut like any other, in every language."""

import re

import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from snippets import SNIPPETS
from test_cut import check, every_language
from test_headings import ASCIIDOC, MARKDOWN, RESTRUCTURED_TEXT

pytestmark = pytest.mark.slow  # texts that are made to be slow to cut

REAL = {language: text for language, (text, _) in SNIPPETS.items()} | {
    "markdown": MARKDOWN,
    "rst": RESTRUCTURED_TEXT,
    "asciidoc": ASCIIDOC,
    "other": MARKDOWN,
}
DEPTH = 5_000
_TOKEN = re.compile(r"\w+|\s+|.")

_INVISIBLE = st.text(st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp", "Zs"]), max_size=20)
_LONG_LINES = st.builds(
    lambda piece, length: piece * (length // len(piece)),
    st.text(st.characters(), min_size=1, max_size=5),
    st.integers(500, 4_000),
)
_BREAKS = st.sampled_from(["\n", "\r\n", "\r", "\r\r\n", "\v", "\0", "\0\n", "\x1a", "\ufeff"])
noise = st.lists(
    st.one_of(st.text(st.characters(), max_size=40), _INVISIBLE, _BREAKS, _LONG_LINES), max_size=8
).map("".join)
sizes = st.integers(1, 400)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """`text` with tokens deleted, repeated, turned around, torn apart or left open."""
    tokens = _TOKEN.findall(text)
    for _ in range(draw(st.integers(1, 8))):
        start = draw(st.integers(0, len(tokens)))
        end = min(start + draw(st.integers(1, 12)), len(tokens))
        piece = tokens[start:end]
        to = draw(st.sampled_from(["", "", "twice", "often", "backwards", "noise", "swallow"]))
        tokens[start:end] = {
            "": [],
            "twice": piece * 2,
            "often": piece * 20,
            "backwards": piece[::-1],
            "noise": [*piece, draw(noise) if to == "noise" else ""],
            "swallow": [draw(st.sampled_from(['"', "'''", "/*", "<!--", "`", "{", "(", "<<A\n"]))],
        }[to]
    return "".join(tokens)


@every_language
@settings(max_examples=examples(10), derandomize=True)
@given(noise, sizes)
def test_noise_is_cut_like_any_other_text(language: str, text: str, max_chars: int) -> None:
    check(text, language, max_chars)


@every_language
@settings(max_examples=examples(15), derandomize=True)
@given(st.data(), sizes)
def test_a_text_with_damaged_syntax_is_cut_like_any_other(
    language: str, data: st.DataObject, max_chars: int
) -> None:
    check(data.draw(damaged(REAL[language])), language, max_chars)


@every_language
@settings(max_examples=examples(5), derandomize=True)
@given(st.data(), sizes)
def test_a_text_with_lines_of_windows_is_cut_like_any_other(
    language: str, data: st.DataObject, max_chars: int
) -> None:
    text = data.draw(st.one_of(st.just(REAL[language]), damaged(REAL[language])))
    check(text.replace("\n", "\r\n"), language, max_chars)


@pytest.mark.parametrize("opening", ["(", "[", "{", "{\n"])
@every_language
def test_a_text_deep_in_brackets_is_cut_like_any_other(language: str, opening: str) -> None:
    closing = opening.translate(str.maketrans("([{", ")]}"))
    check(opening * DEPTH + REAL[language] + closing * DEPTH, language, 300)

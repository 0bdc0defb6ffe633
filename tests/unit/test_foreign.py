"""Nothing of foreign texts is shown that a terminal would obey or that nobody would see."""

import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.foreign import OBEYED, as_json, visible, visible_values

# Persian and emoji are written with the two joiners; the others are signs that can be seen.
SHOWN_FORMATS = {
    "\u200c", "\u200d", *map(chr, range(0x600, 0x606)), "\u06dd", "\u070f", "\u0890", "\u0891",
    "\u08e2", "\U000110bd", "\U000110cd",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("src/naïve file (1).py", "src/naïve file (1).py"),
        ("emoji 👩‍💻 日本語", "emoji 👩‍💻 日本語"),
        ("\x1b]0;title\x07.py", "\\x1b]0;title\\x07.py"),
        ("\x9b31mred", "\\x9b31mred"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("pay\u200bpal\u2028", "pay\\u200bpal\\u2028"),
        ("a\u3164b\u115f\u034f", "a\\u3164b\\u115f\\u034f"),
        ("invalid \udcff byte", "invalid \\udcff byte"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(name, shown):
    assert visible(name) == shown


@given(st.text())
def test_json_is_safe_to_print_and_reads_as_the_same_value(text):
    written = as_json({text: [text, 1]}, indent=2)
    assert visible(written, keep="\n") == written
    assert json.loads(written) == {text: [text, 1]}


def test_json_shows_letters_and_escapes_what_a_terminal_would_obey():
    assert as_json("naïve 日本 \x9b31m\x7f \udcff \U000e0041") == (
        '"naïve 日本 \\u009b31m\\u007f \\udcff \\udb40\\udc41"'
    )


def test_a_text_keeps_its_lines_and_tabs():
    assert visible("a\tb\r\nc\rd\n", keep="\n\t") == "a\tb\nc\\rd\n"


@given(st.text(st.characters()))
def test_no_control_character_is_left(text):
    shown = visible(text)
    assert {unicodedata.category(c) for c in shown}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert {unicodedata.bidirectional(c) for c in shown}.isdisjoint(
        {"LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI"}
    )
    assert shown == text or len(shown) > len(text)


def test_names_are_made_visible_wherever_they_stand():
    values = {"a\nb": ["\x1b", {"deep": "\r"}, 1, None, True]}
    assert visible_values(values) == {"a\\nb": ["\\x1b", {"deep": "\\r"}, 1, None, True]}


@pytest.mark.slow
def test_what_controls_or_formats_is_shown_as_it_is_only_if_it_can_be_seen():
    every = map(chr, range(sys.maxunicode + 1))
    acting = {c for c in every if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert {c for c in acting if visible(c) == c} == SHOWN_FORMATS


def test_the_table_is_in_order():
    ends = [end for each in OBEYED for end in each]
    assert ends == sorted(ends)

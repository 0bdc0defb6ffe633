"""Nothing that a terminal would obey reaches one."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.console.terminal import visible, visible_values, write


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
        ("invalid \udcff byte", "invalid \\udcff byte"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_what_a_terminal_would_obey_is_shown_instead(name, shown):
    assert visible(name) == shown


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


def test_what_an_encoding_lacks_is_written_in_ascii():
    sink = io.BytesIO()
    stream = io.TextIOWrapper(sink, encoding="ascii", newline="\n")
    write("größe", stream)
    assert sink.getvalue() == b"gr\\xf6\\xdfe\n"

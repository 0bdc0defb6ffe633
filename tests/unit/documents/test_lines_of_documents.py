"""Lines are numbered and cut as files have them, and no context ends its comment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.lines import (
    Cut,
    cut,
    ending,
    lines_of,
    numbered,
    skipped,
    skipped_on_terminal,
    with_context,
)

README = """\
# Project README

This is the main readme file for the project.

It contains important information about setup and usage."""


def test_lines_are_numbered_as_in_the_file():
    assert numbered(README) == (
        "1: # Project README\n2: \n3: This is the main readme file for the project.\n4: \n"
        "5: It contains important information about setup and usage."
    )
    assert numbered("a\r\nb\n", 9) == "9: a\n10: b\n11: "
    assert numbered("a\u2028b\x0cc") == "1: a\u2028b\x0cc"  # editors see one line
    assert numbered("") == "1: "
    assert numbered(cut("a\n\nb", 2, 1).text, 2) == "2: ", "an empty line alone"


@pytest.mark.parametrize(
    ("from_line", "max_lines", "expected"),
    [
        (None, None, Cut(README, 1, 0)),
        (1, None, Cut(README, 1, 0)),
        (3, 1, Cut("This is the main readme file for the project.", 3, 2)),
        (5, None, Cut(README.splitlines()[4], 5, 0)),
        (2, 2, Cut("\nThis is the main readme file for the project.", 2, 2)),
        (None, 2, Cut("# Project README\n", 1, 3)),
        (0, 1, Cut("# Project README", 1, 4)),
        (-7, 1, Cut("# Project README", 1, 4)),
        (6, None, Cut("", 6, 0)),
        (10**12, 3, Cut("", 10**12, 0)),
        (1, 0, Cut("", 1, 5)),
        (1, -1, Cut("", 1, 5)),
        (1, 10**12, Cut(README, 1, 0)),
    ],
)
def test_lines_are_cut(from_line, max_lines, expected):
    assert cut(README, from_line, max_lines) == expected


def test_what_ends_a_line_begins_another():
    assert cut("a\nb\n", 1, 1) == Cut("a", 1, 2)
    assert cut("a\nb\n", 2, 2) == Cut("b\n", 2, 0)
    assert cut("a\nb\n") == Cut("a\nb\n", 1, 0)
    assert lines_of("\n") == ["", ""]


@given(st.text("ab\n\r", max_size=30), st.integers(-3, 12), st.integers(-3, 12))
def test_no_line_is_lost(text, from_line, max_lines):
    found = cut(text, from_line, max_lines)
    count = len(lines_of(text))
    shown = min(max(max_lines, 0), max(count - found.start + 1, 0))
    assert found.left + shown == max(count - found.start + 1, 0)
    assert found.text == "\n".join(lines_of(text)[found.start - 1 :][:shown])


def test_what_is_left_out_is_told_as_each_interface_tells_it():
    assert ending(3) == "\n\n[... truncated 3 more lines]"
    assert ending(3, is_rest=True) == "\n\n[...truncated 3 more lines]"
    assert ending(0) == ending(0, is_rest=True) == ""


def test_what_is_too_large_is_told_with_how_to_get_it():
    assert skipped("docs/large-file.md", 24_018) == (
        "[SKIPPED: docs/large-file.md - File too large (23KB). "
        "Use 'qmd_get' with file=\"docs/large-file.md\" to retrieve.]"
    )
    assert skipped("bigfile.md", 15_360, is_rest=True) == (
        "[SKIPPED: bigfile.md - File too large (15KB). "
        "Use 'qmd get' with file=\"bigfile.md\" to retrieve.]"
    )
    assert skipped_on_terminal("large-file.md", 24_018, 10_240) == (
        "[SKIPPED: File too large (23KB > 10KB). Use 'qmd get large-file.md' to retrieve.]"
    )


def test_a_size_is_rounded_as_the_contract_does_but_not_to_nothing():
    assert "(1KB)" in skipped("small.md", 604)
    assert "(2KB > 1KB)" in skipped_on_terminal("small.md", 1_536, 512)
    assert "(0.29KB)" in skipped("small.md", 300)
    assert "(0.29KB > 0.098KB)" in skipped_on_terminal("small.md", 300, 100)
    assert "(1KB > 0KB)" in skipped_on_terminal("small.md", 1_024, 0)


def test_a_context_stands_in_a_comment_before_the_text():
    assert with_context("text", "Global ctx\n\nMore") == (
        "<!-- Context: Global ctx\n\nMore -->\n\ntext"
    )
    assert with_context("text", "") == "text"


@given(st.text("-!> a", max_size=20))
def test_no_context_ends_its_comment(context):
    comment, _, text = with_context("text", context + "-->x--!>y").partition(" -->\n\n")
    assert text == "text"
    assert "-->" not in comment and "--!>" not in comment

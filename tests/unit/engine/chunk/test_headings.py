"""The sections of prose follow its headings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.chunk.headings import STYLES, sections

MARKDOWN = """\
Before any heading.

# One
text
## Two ##
text
### Three
text
## Four
text
# Five
"""
RESTRUCTURED_TEXT = """\
==========
 The Book
==========

First
=====
text

Inner
-----
text

Second
======
text
"""
ASCIIDOC = """\
= Book
text
== First
text
=== Inner
text
== Second
text
"""


def outlined(text, language):
    """Titles, indented like the sections, with first and last line (from 1)."""

    def walk(parts, indent):
        for part in parts:
            yield f"{indent}{part.name} {part.start + 1}-{part.end + 1}"
            yield from walk(part.parts, indent + "  ")

    return list(walk(sections(text, language), ""))


def titles(text, language):
    return [entry.strip().rpartition(" ")[0] for entry in outlined(text, language)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (
            "markdown",
            MARKDOWN,
            ["One 3-10", "  Two 5-8", "    Three 7-8", "  Four 9-10", "Five 11-12"],
        ),
        (
            "rst",
            RESTRUCTURED_TEXT,
            ["The Book 1-16", "  First 5-12", "    Inner 9-12", "  Second 13-16"],
        ),
        ("asciidoc", ASCIIDOC, ["Book 1-9", "  First 3-6", "    Inner 5-6", "  Second 7-9"]),
    ],
)
def test_a_section_ends_where_the_next_of_its_level_begins(language, text, expected):
    assert outlined(text, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Title\n=====\n\nSub\n---\ntext", ["Title 1-6", "  Sub 4-6"]),
        ("# A\n### B\n## C\n", ["A 1-4", "  B 2-2", "  C 3-4"]),
        ("## A\n# B\n", ["A 1-1", "B 2-3"]),
        ("# A\r\ntext\r\n# B\r\n", ["A 1-2", "B 3-4"]),
    ],
)
def test_sections_of_markdown_nest_by_level(text, expected):
    assert outlined(text, "markdown") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A", ["A"]),
        ("   ## A ##  ", ["A"]),
        ("# Using C#", ["Using C#"]),
        ("# `code` and *more*", ["`code` and *more*"]),
        ("#no heading", []),
        ("    # code", []),
        ("####### seven", []),
        ("#", []),
        ("A\n=", ["A"]),
        ("- item\n---", []),
        ("\n---\n", []),
        ("| a | b\n---", []),
        ("a | b\n--- | ---", []),
        ("---\ntitle: x\n---\n# A", ["A"]),
        ("---\ntitle: x\n# A", ["A"]),
        ("---\ntitle: x\n# a comment\n...\n# A", ["A"]),
        ("+++\ntitle = 'x'\n# a comment\n+++\n# A", ["A"]),
        ("---\nintro\n\n# One\n\ntext\n\n---\n\n# Two", ["One", "Two"]),
        ("---\n" + "a: b\n" * 1_000 + "# One\n---\n# Two", ["One", "Two"]),
        ("text\n\n---\n\ntext", []),
    ],
)
def test_a_heading_of_markdown(text, expected):
    assert titles(text, "markdown") == expected


@pytest.mark.parametrize(
    ("opening", "closing"),
    [("```", "```"), ("~~~", "~~~"), ("```python", "```"), ("````", "`````"), ("  ```", "```")],
)
def test_what_a_fence_holds_is_no_heading(opening, closing):
    text = f"# A\n{opening}\n# comment\nsome\n----\n{closing}\n# B\n"
    assert titles(text, "markdown") == ["A", "B"]


@pytest.mark.parametrize(("fence", "other"), [("```", "~~~"), ("~~~", "```"), ("````", "```")])
def test_a_fence_is_closed_by_its_own_kind(fence, other):
    text = f"# A\n{fence}\n{other}\n# comment\n{other}\n# comment\n{fence}\n# B\n"
    assert titles(text, "markdown") == ["A", "B"]


def test_a_fence_that_never_closes_reaches_to_the_end():
    assert titles("# A\n```\n# comment\n# comment\n", "markdown") == ["A"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A\n~~~\n\nB\n===\n\nC\n~~~\n", ["A 1-6", "  B 4-6", "C 7-9"]),
        ("===\nA\n===\n\nB\n===\n", ["A 1-7", "  B 5-7"]),
        ("===\n A\n===\n", ["A 1-4"]),
        ("Long title\n---\n", []),
        (" Indented\n=========\n", []),
        ("===\n\n===\n", []),
        ("text\n\n-----\n\ntext\n", []),
        ("A\n==\n", []),
    ],
)
def test_a_heading_of_restructured_text_has_the_level_of_its_adornment(text, expected):
    assert outlined(text, "rst") == expected


@pytest.mark.parametrize("line", ["==", "==   ", "==A", " == A", "======= A"])
def test_what_is_no_heading_of_asciidoc(line):
    assert titles(line, "asciidoc") == []


@pytest.mark.parametrize("delimiter", ["----", "....", "====", "++++", "////", "--------"])
def test_what_a_block_of_asciidoc_holds_is_no_heading(delimiter):
    text = f"= A\n{delimiter}\n== inside\n{delimiter}\n== B\n"
    assert titles(text, "asciidoc") == ["A", "B"]


def test_a_block_of_asciidoc_is_closed_by_its_own_delimiter():
    text = "= A\n----\n....\n== inside\n....\n== inside\n----\n== B\n"
    assert titles(text, "asciidoc") == ["A", "B"]


@pytest.mark.parametrize("language", STYLES)
def test_a_heading_is_no_symbol(language):
    text = {"markdown": MARKDOWN, "rst": RESTRUCTURED_TEXT, "asciidoc": ASCIIDOC}[language]
    (part, *_) = sections(text, language)
    assert (part.kind, part.is_symbol, part.named_at) == ("section", False, part.start)


@pytest.mark.parametrize(
    "line",
    ["# a" + " " * 20_000 + "b", "# " + "#" * 20_000 + "b", "=" * 20_000 + " x", "`" * 20_000],
    ids=["blanks", "hashes", "equals", "backticks"],
)
@pytest.mark.parametrize("language", STYLES)
@pytest.mark.timeout(10)  # an expression that backtracks takes hours
def test_a_line_of_one_repeated_character_is_read_at_once(language, line):
    assert len(sections(f"{line}\n{line}\n", language)) <= 2


_LINES = st.sampled_from(
    ["# A", "## B", "### C", "Title", "=====", "-----", "~~~~~", "```", "----", "", "= A", "== B"]
)


@given(st.sampled_from(sorted(STYLES)), st.lists(_LINES | st.text(max_size=6), max_size=30))
def test_sections_lie_in_order_and_inside_each_other(language, lines):
    text = "\n".join(lines)
    last_line = text.count("\n")

    def check(parts, first, last):
        for part in parts:
            assert first <= part.start <= part.end <= last
            assert part.name
            check(part.parts, part.start, part.end)
            first = part.end + 1

    check(sections(text, language), 0, last_line)


def test_a_title_is_cut_to_a_readable_length():
    (part,) = sections("# " + "word " * 100, "markdown")
    assert 100 <= len(part.name) <= 120

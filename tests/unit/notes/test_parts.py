"""A text in parts: splitting loses nothing, and what only looks like a heading is none."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.notes.texts import parts
from vector_index_mcp.notes.texts.parts import split

LINES = (
    "## A", "## B", "##\tT", "##", "## ", "##X", "### S", "# T", "  ## I", "> ## Q", "- ## L",
    "text", "", "  ", "```", "~~~", "````", "```py", "   ```", "    ~~~", "\t```", "- ```", "---",
    "title: x", "a ``` b", "``` a`", "\ufeff## A", "## a\u2028b", "\x0c## F", "\x1c", "\x85",
)  # fmt: skip
ENDS = ("\n", "\r\n", "\r")
TEXTS = st.one_of(
    st.text(),
    st.builds(
        lambda lines, end: end.join(lines), st.lists(st.sampled_from(LINES)), st.sampled_from(ENDS)
    ),
)

# -- what is a heading -------------------------------------------------------------------------

HEADINGS = {
    "## A": ["A"],
    "##  A  ": ["A"],
    "##\tA": ["A"],
    "## A ##": ["A ##"],
    "## A\n## B": ["A", "B"],
    "## A\r\ntext\r\n## B\r\n": ["A", "B"],
    "## ## A": ["## A"],
    "text\n## A": ["A"],
    "\ufeff## A": ["A"],
    "\ufeff\n## A": ["A"],
    "text\n\ufeff## A": [],
    "##A": [],
    "##": [],
    "## ": [],
    "## \n## A": ["A"],
    "# A": [],
    "### A": [],
    " ## A": [],
    "> ## A": [],
    "a ## A": [],
    "A\n--": [],
    "": [],
}
CODE = {
    "```\n## no\n```\n## A": ["A"],
    "~~~\n## no\n~~~\n## A": ["A"],
    "```md\n## no\n```\n## A": ["A"],
    "   ```\n## no\n   ```\n## A": ["A"],
    "- item\n\n      ```\n## no\n      ```\n## A": ["A"],
    "````\n```\n## no\n```\n````\n## A": ["A"],
    "~~~\n```\n## no\n~~~\n## A": ["A"],
    "```\n~~~\n## no\n```\n## A": ["A"],
    "```\n## no\n`````\n## A": ["A"],
    "````\n## no\n```\n## no": [],
    "```\r\n## no\r\n```\r\n## A\r\n": ["A"],
    "\ufeff```\n## no\n```\n## A": ["A"],
    "```\n## no": [],
    "~~~\n## no\n```\n## no": [],
    "```\n## no\n```\n## A\n```\n## no\n```\n## B": ["A", "B"],
    "## A\n```\n## no\n```": ["A"],
    "`` `\n## A": ["A"],
    "``` in a line ```\n## A": ["A"],
    "``\n## A": ["A"],
    "text ```\n## A": ["A"],
    # Too far in for a fence that nothing closes.
    "    ```\n## A": ["A"],
}


@pytest.mark.parametrize("text", HEADINGS)
def test_a_line_with_two_marks_and_words_is_a_heading(text):
    assert split(text).titles == HEADINGS[text]


@pytest.mark.parametrize("text", CODE)
def test_what_stands_between_fences_is_no_heading(text):
    assert split(text).titles == CODE[text]


# -- nothing is lost ---------------------------------------------------------------------------


@given(TEXTS)
def test_the_pieces_joined_are_the_text(text):
    found = split(text)
    assert found.text == text
    assert found.head + "".join(part.line + part.body for part in found.parts) == text


@given(TEXTS)
def test_pieces_split_once_more_are_the_same(text):
    found = split(text)
    assert split(found.text) == found


@given(TEXTS)
@example("## a\u2028b")
def test_every_part_is_found_by_its_title(text):
    found = split(text)
    for part in found.parts:
        assert part.title
        number = found.find(part.title)
        assert found.parts[number].title == part.title
        assert found.find(f" {part.title} ") == number
        assert part.title in part.line
        assert part.line.startswith("##")
        assert "\n" not in part.line.removesuffix("\n")


def test_the_first_of_equal_titles_is_found():
    found = split("## A\nfirst\n## A\nsecond")
    assert found.find("A") == 0
    assert found.find("B") is None
    assert found.find("a") is None


def test_a_part_says_what_it_holds():
    [part] = split("## A  \n\n  first\nline\n \nsecond\n\n").parts
    assert (part.title, part.line, part.body) == ("A", "## A  \n", "\n  first\nline\n \nsecond\n\n")
    assert part.content == "first\nline\n \nsecond"
    assert part.paragraph == "first line"


def test_the_paragraph_of_a_text_from_windows_ends_with_it():
    [part] = split("## A\r\n\r\nfirst\r\nline\r\n\r\nsecond\r\n").parts
    assert part.paragraph == "first line"


# -- changes ---------------------------------------------------------------------------------


def test_a_part_is_replaced_and_its_heading_stays_as_it_is():
    found = split("head\n\n##  A\none\n## B\r\ntwo\n")
    assert parts.replaced(found, 0, "new").text == "head\n\n##  A\n\nnew\n\n## B\r\ntwo\n"
    assert parts.replaced(found, 1, "new").text == "head\n\n##  A\none\n## B\r\n\nnew"


def test_a_heading_at_the_end_gets_its_line_ended():
    assert parts.replaced(split("## A"), 0, "new").text == "## A\n\nnew"


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("", 0, "\n\n## N\n\nnew"),
        ("head", 0, "head\n\n## N\n\nnew"),
        ("head\n\n\n", 0, "head\n\n## N\n\nnew"),
        ("head\n## A\none", 0, "head\n\n## N\n\nnew\n\n## A\none"),
        ("head\n## A\none", 1, "head\n## A\none\n\n## N\n\nnew"),
        ("## A\none\n\n\n", 1, "## A\none\n\n## N\n\nnew"),
        ("## A\none", 0, "## N\n\nnew\n\n## A\none"),
    ],
)
def test_a_part_is_inserted_behind_one_blank_line(text, number, expected):
    assert parts.inserted(split(text), number, parts.made("N", "new")).text == expected


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("## A\none\n\n\n\n## B\ntwo\n\n\n## C\n", 1, "## A\none\n\n## C\n"),
        ("head\n\n\n## A\none", 0, "head\n"),
        ("## A\none\n\n## B\ntwo", 0, "## B\ntwo"),
        ("\n\n## A\none\n## B", 0, "## B"),
        ("## A", 0, ""),
        ("head\n## A\none\n## B\ntwo", 1, "head\n## A\none\n"),
    ],
)
def test_one_blank_line_stays_where_a_part_was(text, number, expected):
    assert parts.removed(split(text), number).text == expected


def test_titles_that_went_missing_are_named():
    assert parts.swallowed(["A", "B"], split("## B\n## A")) == ""
    assert parts.swallowed(["A", "B"], split("## A\n```\n## B")) == "B"
    assert parts.swallowed(["A", "A"], split("## A")) == "A"
    assert parts.swallowed([], split("## A")) == ""


def test_a_byte_order_mark_stays_at_the_top():
    text = "\ufeff## A\n\na\n\n## B\n\nb\n"
    found = split(text)
    assert (found.head, found.titles, found.text) == ("\ufeff", ["A", "B"], text)
    assert parts.replaced(found, 0, "new\n").text == "\ufeff## A\n\nnew\n\n## B\n\nb\n"
    assert parts.removed(found, 0).text == "\ufeff## B\n\nb\n"
    added = parts.inserted(found, 0, parts.made("C", "c\n"))
    assert added.text == "\ufeff## C\n\nc\n\n## A\n\na\n\n## B\n\nb\n"

"""What stands at the top of a document is read with patience, and changed line by line."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.notes.texts import matter
from vector_index_mcp.notes.texts.matter import Metadata

MOMENT = "2024-05-06T07:08:09.010Z"
LINES = (
    "---", "+++", "...", "--- ", "title: T", "title: Rust: a tour", 'title: "a # b" # c', "a: [b",
    "keywords: [x, y]", "keywords:", "  - x", "- x", "updated: never", "Updated: Never", "updated:",
    "updated : |", "  updated: inner", "not updated: no", "# comment", "", "## A", "text", "\ttab",
    '"updated": quoted', "x" * 50,
)  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.builds(
        lambda first, lines, end: end.join([first, *lines]),
        st.sampled_from(["---", "---", "text"]),
        st.lists(st.sampled_from(LINES), max_size=12),
        st.sampled_from(["\n", "\r\n"]),
    ),
)


# -- apart -------------------------------------------------------------------------------------


@pytest.mark.slow
@given(TEXTS)
@example("---\na: b\n---")
@example("---\r\na: b\r\n---\r\ntext")
def test_front_matter_and_text_joined_are_the_text(text):
    front, rest = matter.parted(text)
    assert front + rest == text
    if front:
        lines = front.splitlines()
        assert lines[0].rstrip() == "---"
        assert lines[-1].rstrip() in {"---", "..."}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text",
        "\n---\na: b\n---\n",
        "---\na: b\n",
        "+++\na = 1\n+++\n",
        "---\nSome words\nand more\n---\ntext",
        "----\na: b\n----\n",
    ],
)
def test_what_is_no_front_matter_is_text(text):
    assert matter.parted(text) == ("", text)


def test_front_matter_without_end_costs_no_long_look():
    text = "---\n" + "a: b\n" * 2_000 + "---\n"
    assert matter.parted(text) == ("", text)


# -- read --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("front", "expected"),
    [
        ("", Metadata("", (), "", "")),
        ("---\n---\n", Metadata("", (), "", "")),
        ("---\ntitle: Rust: a tour\n---\n", Metadata("Rust: a tour", (), "", "")),
        ("---\ntitle: 'It # is' # mine\n---\n", Metadata("It # is", (), "", "")),
        ('---\ntitle: "a \\"b\\""\n---\n', Metadata('a "b"', (), "", "")),
        ("---\nTitle: T\r\n---\n", Metadata("T", (), "", "")),
        ("---\ntitle: [a, b]\n---\n", Metadata("a, b", (), "", "")),
        ("---\nkeywords: one\n---\n", Metadata("", ("one",), "", "")),
        ("---\nkeywords: [a, 'b c']\n---\n", Metadata("", ("a", "b c"), "", "")),
        ("---\nkeywords:\n  - a\n  - b\n---\n", Metadata("", ("a", "b"), "", "")),
        ("---\ncreated: 2024-01-02\nupdated: 'u'\n---\n", Metadata("", (), "2024-01-02", "u")),
        ("---\ntitle: T\nbroken: {[\nkeywords: [k]\n---\n", Metadata("T", ("k",), "", "")),
    ],
)
def test_people_are_understood(front, expected):
    assert matter.metadata(front) == expected


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_what_is_so_is_so(word):
    assert matter.is_true(f"---\ncompleted: {word} # done\n---\n", "completed")


@pytest.mark.parametrize("line", ["completed: false", "completed:", "completed: yes", "x: true"])
def test_what_is_not_so_is_not(line):
    assert not matter.is_true(f"---\n{line}\n---\n", "completed")
    assert not matter.is_true("", "completed")


# -- written -----------------------------------------------------------------------------------

TITLES = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zl", "Zp")), min_size=1)
KEYWORDS = st.lists(st.from_regex(r"[a-zA-Z0-9._-]{1,50}", fullmatch=True), max_size=50)


@given(TITLES.filter(lambda text: text.strip()), KEYWORDS)
@example("null", ["null", "true", "1e3", "-", ".", "~"])
@example("---", ["---"])
@example('a: "b" \\ #c', ["a"])
def test_what_is_written_is_read(title, keywords):
    front = matter.written(Metadata(title, tuple(keywords), MOMENT, "later"))
    found = matter.metadata(front)
    assert matter.parted(front + "text") == (front, "text")
    assert (found.keywords, found.created, found.updated) == (tuple(keywords), MOMENT, "later")
    assert found.title.strip() == title.strip()


@given(TEXTS)
@example("---\n---\n")
@example("---\r\nupdated: never\r\n---\r\ntext")
@example("---\ntitle: T\n---")
def test_a_touched_document_differs_in_one_line(text):
    front, _ = matter.parted(text)
    new = matter.touched(front, MOMENT)
    old_lines, lines = front.split("\n"), new.split("\n")
    if not front:
        assert new == ""
        return
    if sum("updated" in line.lower() for line in old_lines) <= 1:  # of two the last one counts
        assert matter.metadata(new).updated == MOMENT
    assert matter.parted(new) == (new, "")
    if len(lines) == len(old_lines):
        assert sum(a != b for a, b in zip(old_lines, lines, strict=True)) <= 1
        assert new.count("\r") == front.count("\r")
    else:
        lines.remove(f"updated: '{MOMENT}'")
        assert lines == old_lines


@given(TEXTS)
def test_a_line_more_stands_at_the_end(text):
    front, _ = matter.parted(text)
    new = matter.with_line(front, "completed: true")
    assert matter.is_true(new, "completed")
    assert matter.parted(new + "\ntext")[0] == (new if new.endswith("\n") else f"{new}\n")
    lines = new.split("\n")
    lines.remove("completed: true")
    assert front == "" or "\n".join(lines) == front


def test_a_moment_is_written_as_javascript_does():
    moment = datetime(2024, 5, 6, 7, 8, 9, 10_999, UTC)
    assert matter.iso(moment) == MOMENT
    assert matter.iso(moment.astimezone(timezone(timedelta(hours=5)))) == MOMENT
    assert matter.iso(datetime(2024, 1, 2, tzinfo=UTC)) == "2024-01-02T00:00:00.000Z"
    assert datetime.fromisoformat(matter.now()).utcoffset() == timedelta(0)


def test_front_matter_behind_a_byte_order_mark_is_read_and_kept():
    text = "\ufeff---\r\ntitle: Guide\r\nupdated: never\r\n---\r\n\r\nText.\r\n"
    front, rest = matter.parted(text)
    assert front + rest == text
    assert rest == "\r\nText.\r\n"
    assert matter.metadata(front).title == "Guide"
    assert matter.touched(front, "now") == front.replace("updated: never", "updated: 'now'")
    plain = "\ufeffNo front matter.\n"
    assert matter.parted(plain) == ("", plain)

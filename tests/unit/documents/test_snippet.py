"""A snippet shows the lines that were meant, with the numbers that they have in the file."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.lines import lines_of
from vector_index_mcp.documents.snippet import snippet_of

PLAN = "# Plan\n\nNo heading match. The budget roadmap is here.\nline four\nline five\nsix\nseven"
MEETING = """\
# February Meeting Notes

Followed up on Q1 progress.

## Updates

- Budget approved
- Two candidates interviewed
"""
SETTINGS = "---\ntitle: budget budget\ntags: [roadmap]\n---\n\n# Plan\n\nNothing else.\n"


def words(text):
    """Words without a plural's s, as a stand-in for stems."""
    return {word.lower().rstrip("s") for word in re.findall(r"\w+", text)}


def snippet(text, query, **others):
    return snippet_of(text, words(query), words, **others)


@pytest.mark.parametrize(
    ("text", "query", "line", "expected"),
    [
        (
            PLAN,
            "budget",
            3,
            "@@ -2,4 @@ (1 before, 2 after)\n\nNo heading match. The budget roadmap is here.\n"
            "line four\nline five",
        ),
        (
            MEETING,
            "budget",
            7,
            "@@ -6,3 @@ (5 before, 0 after)\n\n- Budget approved\n- Two candidates interviewed",
        ),
        (
            MEETING,
            "meeting",
            1,
            "@@ -1,3 @@ (0 before, 5 after)\n# February Meeting Notes\n\n"
            "Followed up on Q1 progress.",
        ),
    ],
)
def test_a_snippet_stands_behind_a_header_on_a_terminal(text, query, line, expected):
    found = snippet(text, query)
    assert found.line == line
    assert found.with_header == expected


def test_a_snippet_has_the_numbers_of_the_file():
    found = snippet(PLAN, "budget")
    assert found.numbered == (
        "2: \n3: No heading match. The budget roadmap is here.\n4: line four\n5: line five"
    )
    part = snippet("\n".join(PLAN.split("\n")[1:4]), "budget", start_line=42, file_lines=50)
    assert part.line == 43
    assert part.with_header.startswith("@@ -42,3 @@ (41 before, 6 after)\n")
    assert part.numbered.startswith("42: \n43: No heading")


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("budget roadmap", 3),
        ("line", 4),
        ("line five", 5),
        ("five line four", 4),
        ("HEADINGS", 3),
        ("meant alone", 1),
        ("", 1),
    ],
)
def test_the_line_with_the_most_words_is_the_best_and_of_those_the_first(query, line):
    assert snippet(PLAN, query).line == line


def test_settings_at_the_top_are_never_shown():
    for query in ("budget", "roadmap", "unheard of"):
        found = snippet(SETTINGS, query)
        assert (found.line, found.start) == (6, 5)
        assert "title" not in found.text and "---" not in found.text
    first = snippet(SETTINGS.replace("\n---\n\n", "\n---\n"), "plan")
    assert (first.line, first.start, first.lines_before) == (5, 5, 4)


def test_only_what_is_closed_at_the_top_is_settings():
    assert snippet("---\ntitle: budget\n", "budget").line == 2
    assert snippet("text\n---\ntitle: budget\n---\n", "budget").line == 3
    assert snippet(SETTINGS, "budget", start_line=9).line == 10
    assert snippet("+++\nbudget = 1\n+++\nPlan", "budget").line == 4


@pytest.mark.parametrize("text", ["", "\n", "\n\n", "---\na: b\n---\n", "---\na: b\n---", "***"])
def test_a_text_that_says_nothing_has_a_snippet(text):
    found = snippet(text, "a")
    assert 1 <= found.line <= max(len(lines_of(text)), 1)
    assert found.text.strip() in {"", "***"}
    assert found.with_header.startswith("@@ -")


def test_what_says_something_is_shown_if_no_word_is_there():
    assert snippet("\n***\n\n  - - -\nFirst words.\nMore", "absent").line == 5


def test_a_long_line_is_cut_around_the_words():
    line = "x " * 5_000 + "the Budgets and the roadmap" + " y" * 5_000
    found = snippet(f"before\n{line}\nafter", "roadmap budget")
    assert found.line == 2
    best = found.lines[found.line - found.start]
    assert "the Budgets and the roadmap" in best
    assert best.startswith("...") and best.endswith("...")
    assert len(found.text) <= 300


@pytest.mark.parametrize(
    ("line", "is_cut_before", "is_cut_behind"),
    [
        ("budget " + "x " * 900, False, True),
        ("x " * 900 + "budget", True, False),
        ("x" * 900 + " budget " + "x" * 900, True, True),
        ("x/" * 900 + "budget" + "/x" * 900, True, True),
        ("x " * 900, False, True),
    ],
)
def test_what_is_left_out_of_a_line_is_told(line, is_cut_before, is_cut_behind):
    found = snippet(line, "budget").text
    assert ("budget" in found) == ("budget" in line)
    assert found.startswith("...") == is_cut_before
    assert found.endswith("...") == is_cut_behind


@pytest.mark.parametrize("shift", range(0, 110, 3))
def test_a_word_is_found_wherever_a_line_is_cut(shift):
    assert "budget" in snippet("-" * (900 + shift) + "budget" + "-" * 900, "budget").text


def test_an_empty_line_before_a_long_one_is_shown():
    found = snippet("# Large Document\n\n" + "Lorem ipsum " * 2_000, "Lorem")
    assert found.with_header.startswith("@@ -2,2 @@ (1 before, 0 after)\n\nLorem ipsum")
    assert found.text.endswith("...") and 250 < len(found.text) <= 300


@given(
    st.text("ab -\n\r.é", max_size=400),
    st.sets(st.sampled_from("ab")),
    st.integers(1, 50),
    st.integers(10, 200),
)
def test_a_snippet_is_short_and_in_its_place(text, wanted, start_line, most_chars):
    found = snippet_of(text, wanted, words, start_line=start_line, most_chars=most_chars)
    lines = lines_of(text)
    if not text or text.endswith("\n"):
        lines.pop()
    assert len(found.text) <= most_chars
    assert len(found.lines) <= 4
    assert found.lines_before + len(found.lines) + found.lines_after == start_line - 1 + len(lines)
    for number, shown in enumerate(found.lines, found.start):
        whole = lines[number - start_line]
        if not ("..." in shown and len(shown) < len(whole)):
            assert shown == whole
    if found.lines:
        assert found.start <= found.line < found.start + len(found.lines)
    if wanted and start_line > 1:
        best = words(lines[found.line - start_line]) & wanted if lines else set()
        assert len(best) == max((len(words(line) & wanted) for line in lines), default=0)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["word\n", "word ", "x", "\n", "é ", "---\n", "漢", "a/b.c-"])
def test_a_megabyte_keeps_nobody_waiting(unit):
    text = unit * (1_000_000 // len(unit))
    start = time.thread_time()
    snippet(text, "budget roadmap")
    assert time.thread_time() - start < 5  # most take 0.5


def test_of_lines_with_equally_many_words_the_one_with_the_rarest_is_best():
    text = (
        "client.request({\n  path: '/',\n})\nclient.close()\n\nThe certificate goes into connect.\n"
    )
    found = snippet_of(text, {"client", "certificate"}, words)
    assert found.line == 6


def test_then_the_one_whose_neighbours_have_more_words():
    text = "A train.\n\n\n\n\nA train beside\na boat.\n\n\n\nA boat.\n"
    assert snippet_of(text, {"boat", "train"}, words).line == 6

"""A document as it is begun, what it says of itself, and what may not be done to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.texts import knowledge, matter, sections
from vector_index_mcp.notes.texts.knowledge import document
from vector_index_mcp.notes.texts.parts import split

NAME = "guide.md"
TEXT = "---\ntitle: Guide\n---\n\nhead\n\n## A\n\none\n\n## B\n\ntwo\n"
MAIN = "head\n\n## A\n\none\n\n## B\n\ntwo\n"
MOMENT = "2024-05-06T07:08:09.010Z"


@pytest.fixture
def moment(monkeypatch):
    """At which everything happens."""
    monkeypatch.setattr(matter, "now", lambda: MOMENT)


def begun(title="T", introduction="I", keywords=("k",), chapters=()):
    return knowledge.created(title, introduction, keywords, chapters)


# -- a new document ----------------------------------------------------------------------------


def test_a_document_is_written_in_its_form(moment):
    text = begun("User Guide", "What it is.", ["faq", "1.5"], [("A", "one\n"), (" B ", "two")])
    assert text == (
        "---\n"
        "title: User Guide\n"
        'keywords: [faq, "1.5"]\n'
        f"created: '{MOMENT}'\n"
        f"updated: '{MOMENT}'\n"
        "---\n"
        "\n"
        "What it is.\n"
        "\n"
        "## A\n"
        "\n"
        "one\n"
        "\n"
        "## B\n"
        "\n"
        "two"
    )


PLAIN = st.text(st.characters(exclude_categories=("Cs", "Cc", "Cn", "Zl", "Zp")), min_size=1)
LINES = PLAIN.filter(lambda text: text.strip() not in {"", "~", "null", "Null", "NULL"})
BODIES = st.text(st.sampled_from("ab \n#-`'\"\\é")).filter(
    lambda text: text.strip() and "\n##" not in f"\n{text}" and "```" not in text
)


@pytest.mark.slow
@given(LINES, BODIES, st.lists(st.tuples(LINES, BODIES), unique_by=lambda each: each[0].strip()))
def test_a_document_is_read_as_it_was_written(title, introduction, chapters):
    found = document(NAME, begun(title, introduction, ["a.b", "1", "true"], chapters))
    assert found.metadata.title.strip() == title.strip()
    assert found.metadata.keywords == ("a.b", "1", "true")
    assert found.introduction == introduction.strip()
    assert [(part.title, part.content) for part in found.parts.parts] == [
        (name.strip(), text.strip()) for name, text in chapters
    ]


def test_chapters_of_an_introduction_and_a_chapter_are_chapters():
    found = document(NAME, begun("T", "I\n\n## A\n\none", ["k"], [("B", "two\n\n## C\n\nthree")]))
    assert [(part.title, part.content) for part in found.parts.parts] == [
        ("A", "one"), ("B", "two"), ("C", "three"),
    ]  # fmt: skip


def test_a_change_says_when_it_was(moment):
    old = "2020-01-01T00:00:00.000Z"
    text = begun().replace(f"updated: '{MOMENT}'", f"updated: '{old}'")
    assert document(NAME, text).metadata.updated == old
    changed = knowledge.extended(document(NAME, text), "N", "c", "end", None)
    assert document(NAME, changed).metadata.updated == MOMENT
    assert document(NAME, changed).metadata.created == MOMENT


# -- what it says of itself --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: Said\n---\n# Heading\n", "Said"),
        ("---\nkeywords: [k]\n---\n\n# Heading\n", "Heading"),
        ("# Heading\n\ntext", "Heading"),
        ("text\n# Heading\n", "guide"),
        ("## Chapter\n", "guide"),
        ("", "guide"),
    ],
)
def test_a_document_without_a_title_has_one_all_the_same(text, title):
    assert document(NAME, text).metadata.title == title


def test_a_chapter_is_summed_up_by_its_beginning():
    long = "word " * 100
    [a, b, c] = document(NAME, f"## A\n\none\ntwo\n\nthree\n## B\n## C\n{long}\n").parts.parts
    assert [knowledge.first_line(part) for part in (a, b)] == ["one...", "..."]
    assert [knowledge.summary(part) for part in (a, b)] == ["one two", ""]
    assert knowledge.summary(c) == long[:300] + "..."
    assert knowledge.first_line(c) == long[:300] + "..."


def test_a_document_from_windows_stays_one():
    text = "---\r\ntitle: T\r\n---\r\nhead\r\n\r\n## A\r\n\r\none\r\n\r\n## B\r\n\r\ntwo\r\n"
    found = document(NAME, text)
    assert (found.metadata.title, found.introduction) == ("T", "head")
    assert [(part.title, part.content) for part in found.parts.parts] == [
        ("A", "one"),
        ("B", "two"),
    ]
    changed = knowledge.updated(found, "A", "new")
    assert changed.startswith("---\r\ntitle: T\r\n")
    assert "---\r\nhead\r\n\r\n## A\r\n" in changed
    assert changed.endswith("## B\r\n\r\ntwo\r\n")


# -- refusals ----------------------------------------------------------------------------------


def refusal(do, *arguments):
    with pytest.raises(Refusal) as refused:
        do(*arguments)
    return refused.value.code.value, str(refused.value)


@pytest.mark.parametrize(
    ("do", "arguments", "code", "words"),
    [
        (knowledge.updated, ("a", "x"), "CHAPTER_NOT_FOUND", 'Chapter "a" not found in guide.md'),
        (knowledge.without, ("C",), "CHAPTER_NOT_FOUND", 'Chapter "C" not found in guide.md'),
        (
            knowledge.extended, ("A", "x", "end", None),
            "FILE_ALREADY_EXISTS", 'Chapter "A" already exists in guide.md',
        ),
        (
            knowledge.extended, (" A ", "x", "end", None),
            "FILE_ALREADY_EXISTS", 'Chapter " A " already exists in guide.md',
        ),
        (
            knowledge.extended, ("N", "x", "after", None),
            "INVALID_INPUT", 'Position "before" or "after" requires reference_chapter',
        ),
        (
            knowledge.extended, ("N", "x", "before", "C"),
            "CHAPTER_NOT_FOUND", 'Reference chapter "C" not found in guide.md',
        ),
        (knowledge.extended, ("N\nM", "x", "end", None), "INVALID_INPUT", "A title must be one"),
        (knowledge.extended, ("N\u2028M", "x", "end", None), "INVALID_INPUT", "A title must be"),
        (knowledge.extended, (" ", "x", "end", None), "INVALID_INPUT", "A title must be one line"),
        (knowledge.updated, ("A", "~~~"), "INVALID_CONTENT", 'Chapter "B" would become part of'),
        (knowledge.extended, ("N", "```", "before", "B"), "INVALID_CONTENT", 'Chapter "B" would'),
        (knowledge.extended, ("N", "x\n\n## A", "end", None), "INVALID_INPUT", '"## A" begins a'),
        (knowledge.extended, ("N", "## M\n\n## M", "end", None), "INVALID_INPUT", '"## M" begins'),
        (knowledge.updated, ("A", "x\n\n## B\n\ny"), "INVALID_INPUT", '"## B" begins a chapter'),
    ],
)  # fmt: skip
def test_what_cannot_be_done_to_a_chapter_is_refused(do, arguments, code, words):
    found = refusal(do, document(NAME, TEXT), *arguments)
    assert found[0] == code
    assert found[1].startswith(words)


def test_the_chapter_whose_code_never_ends_is_named():
    found = document(NAME, "---\ntitle: T\n---\n\n## A\n\none\n\n## F\n\n```\nopen\n")
    _, words = refusal(knowledge.extended, found, "N", "x", "end", None)
    assert words == (
        'Chapter "N" would become part of a code block: a fence (``` or ~~~) in "F" is never '
        "closed; close it"
    )


@pytest.mark.parametrize(
    ("do", "arguments", "code", "words"),
    [
        (
            sections.updated, ("## a", "x"),
            "SECTION_NOT_FOUND", 'Section "## a" not found in project main',
        ),
        (sections.without, ("## C",), "SECTION_NOT_FOUND", 'Section "## C" not found in project'),
        (
            sections.extended, ("##  A", "x", "end", None),
            "FILE_ALREADY_EXISTS", 'Section "##  A" already exists in project main',
        ),
        (
            sections.extended, ("## N", "x", "after", None),
            "INVALID_INPUT", 'reference_header is required when position is "before" or "after"',
        ),
        (
            sections.extended, ("## N", "x", "before", "## C"),
            "SECTION_NOT_FOUND", 'Reference section "## C" not found in project main',
        ),
        (sections.extended, ("## N\nM", "x", "end", None), "INVALID_INPUT", "A section's"),
        (sections.extended, ("## ", "x", "end", None), "INVALID_INPUT", "A section's header must"),
        (sections.updated, ("## A", "```"), "INVALID_CONTENT", 'Section "B" would become part of'),
    ],
)  # fmt: skip
def test_what_cannot_be_done_to_a_section_is_refused(do, arguments, code, words):
    found = refusal(do, MAIN, *arguments)
    assert found[0] == code
    assert found[1].startswith(words)


@pytest.mark.parametrize(
    ("chapters", "code"),
    [
        ([("A", "one"), (" A ", "two")], "INVALID_INPUT"),
        ([("A\nB", "one")], "INVALID_INPUT"),
        ([("A", "~~~"), ("B", "two")], "INVALID_CONTENT"),
    ],
)
def test_a_document_whose_chapters_get_lost_is_not_begun(chapters, code):
    """A second chapter of a title, which the contract allows, could not be addressed by it."""
    assert refusal(begun, "T", "I", ["k"], chapters)[0] == code
    assert refusal(begun, "T", "```", ["k"], [("A", "one")])[0] == Code.INVALID_CONTENT
    assert refusal(begun, "T\nU", "I", ["k"], [])[0] == Code.INVALID_INPUT


def test_a_chapter_is_not_hidden_behind_another_of_its_title():
    found = document(NAME, TEXT)
    with pytest.raises(Refusal):
        knowledge.updated(found, "A", "## B\n\n```")


def test_a_section_is_not_hidden_behind_another_of_its_title():
    with pytest.raises(Refusal):
        sections.updated(MAIN, "## A", "## B\n\n```")


def test_a_rule_at_the_top_becomes_no_front_matter():
    found = document(NAME, "---\n\n## A\n\none\n")
    with pytest.raises(Refusal):
        knowledge.updated(found, "A", "key: value\n---")


@pytest.mark.parametrize("new", ["NEW", "NEW\n"])
def test_the_last_section_ends_with_a_line_feed(new):
    """A chapter at the end of a document ends where its text ends, as recorded."""
    text = "# P\n\n## A\na\n\n## B\nb\n"
    assert sections.updated(text, "## B", new) == "# P\n\n## A\na\n\n## B\n\nNEW\n"
    assert sections.updated(text, "## A", new) == "# P\n\n## A\n\nNEW\n\n## B\nb\n"
    assert sections.updated("## A", "## A", "") == "## A\n\n"


def test_blank_lines_collapse_only_where_a_section_was():
    """The contract collapses them everywhere; that would change code in other sections."""
    text = "## A\n```\none\n\n\n\ntwo\n```\n\n\n\n## B\nb\n\n\n\n## C\nc\n"
    assert sections.without(text, "## B") == "## A\n```\none\n\n\n\ntwo\n```\n\n## C\nc\n"


def test_all_sections_may_go():
    text = sections.without(sections.without(MAIN, "## A"), "##  B ")
    assert text == "head\n"
    assert split(text).parts == ()

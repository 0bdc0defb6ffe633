"""Any changes of chapters and sections leave what a plain list says they should, to the letter.

The texts that are drawn are built of blocks of which the test knows what they are; nothing of them
is parsed here.
"""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.texts import knowledge, sections
from vector_index_mcp.notes.texts.knowledge import document
from vector_index_mcp.notes.texts.parts import split

NAME = "guide.md"
NONE = ("", "")
FRONT = (
    "---\ntitle: Guide\nkeywords: [a, b]\ncreated: '2024-01-01T00:00:00.000Z'\n"
    "updated: '2024-01-01T00:00:00.000Z'\n---\n",
    '---\n# mine\nowner: Ann # of it\ntitle: "a: b"\nupdated: never\nlist:\n  - x\n---\n',
    "---\r\ntitle: Guide\r\nupdated: never\r\nmine: 1\r\n---\r\n",
    "---\ntitle: no time\n---",
    "",
)

# -- what is drawn -----------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["one", "two words", "- item", "  indented", "### deeper", "#no", "a ``` b"]
)
FENCED = st.sampled_from(
    [
        "```\n## no heading\n```",
        "~~~ md\n## no heading\n\n```\n~~~",
        "````\n```\n## no heading\n```\n````",
        "   ```\n## no heading\n   ```",
        "- item\n\n  ~~~\n## no heading\n  ~~~~",
    ]
)
BLOCKS = st.one_of(WORDS, FENCED, st.just(NONE))
"""A text, or `NONE` for a heading, which gets a title of its own."""


@st.composite
def contents(draw, prefix):
    """What stands below a heading: pairs of a title and its text, the first one without a title."""
    found = [("", [])]
    for number, block in enumerate(draw(st.lists(BLOCKS, max_size=4))):
        if block == NONE:
            found.append((f"{prefix} {number}", []))
        else:
            found[-1][1].append(block)
    return [(title, "\n\n".join(blocks)) for title, blocks in found]


def written(content):
    """The text of what `contents` draws."""
    pieces = [f"## {title}\n\n{text}".rstrip() if title else text for title, text in content]
    return "\n\n".join(pieces).strip("\n")


CONTENT = contents("own").filter(written)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("update"), st.integers(0, 20), contents("new")),
        st.tuples(st.just("remove"), st.integers(0, 20), st.just([])),
        st.tuples(
            st.sampled_from(["before", "after", "end"]), st.integers(0, 20), contents("added")
        ),
    ),
    max_size=8,
)


@st.composite
def texts(draw):
    """A text of a head and parts, its ends of lines, and what stands in it: (head, parts)."""
    head = "\n\n".join(block for block in draw(st.lists(BLOCKS, max_size=3)) if block != NONE)
    found = [
        (f"part {number}", "\n\n".join(b for b in blocks if b != NONE))
        for number, blocks in enumerate(draw(st.lists(st.lists(BLOCKS, max_size=3), max_size=4)))
    ]
    between = draw(st.sampled_from(["\n", "\n\n"]))
    pieces = [head] * bool(head)
    pieces += [f"## {title}{between}{text}".rstrip("\n") for title, text in found]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = ("\n\n".join(pieces) + draw(st.sampled_from(["", "\n"]))).replace("\n", end)
    return text, head.replace("\n", end), [(t, c.replace("\n", end)) for t, c in found]


# -- the plain list ----------------------------------------------------------------------------


def applied(parts, what, at, content, step):
    """The list after a step, and the call that does it: name, title, text, position, reference."""
    own = [(title and f"{title} of step {step}", text) for title, text in content or [NONE]]
    if what == "end" or not parts:
        where, what, reference = len(parts), "end", None
    else:
        where = at % len(parts)
        reference = parts[where][0]
        where += what == "after"
    text = written(own)
    if what in {"update", "remove"}:
        new = [] if what == "remove" else [(reference, own[0][1]), *own[1:]]
        return [*parts[:where], *new, *parts[where + 1 :]], (what, reference, text, "", None)
    title = f"step {step}"
    new = [(title, own[0][1]), *own[1:]]
    return [*parts[:where], *new, *parts[where:]], ("add", title, text, what, reference)


def stands_in(parts):
    """What there is, without the blank lines around it."""
    return [(part.title, part.body.strip("\r\n")) for part in parts]


def is_plain(parts):
    """Whether no blank lines pile up between parts."""
    return not any(re.search(r"(\r?\n){3}\Z", part.text) for part in parts)


@pytest.mark.slow
@given(texts(), STEPS, st.sampled_from(FRONT))
@example(("", "", []), [("end", 0, [("", "")])], "")
def test_chapters_are_what_a_list_says_they_are(text, steps, front):
    start, head, expected = text
    assume(front.endswith("\n") or not start)
    found = document(NAME, front + start)
    for step, (what, at, content) in enumerate(steps):
        expected, (name, title, new, position, reference) = applied(
            expected, what, at, content, step
        )
        if name == "update":
            after = knowledge.updated(found, title, new)
        elif name == "remove":
            after = knowledge.without(found, title)
        else:
            after = knowledge.extended(found, title, new, position, reference)
        found = document(NAME, after)
        assert stands_in(found.parts.parts) == expected
        assert found.introduction == head.strip()
        assert is_plain(found.parts.parts)
        assert without_updated(found.front) == without_updated(front)
    assert not steps or "2024" not in found.metadata.updated


def without_updated(front):
    return [line for line in front.splitlines() if not line.startswith("updated:")]


@pytest.mark.slow
@given(texts(), STEPS)
@example(("", "", []), [("end", 0, [("", "")])])
def test_sections_are_what_a_list_says_they_are(text, steps):
    main, head, expected = text
    for step, (what, at, content) in enumerate(steps):
        expected, (name, title, new, position, reference) = applied(
            expected, what, at, content, step
        )
        header = f"## {title}"
        if name == "update":
            main = sections.updated(main, header, new)
        elif name == "remove":
            main = sections.without(main, header)
        else:
            mark = None if reference is None else f"##  {reference} "
            main = sections.extended(main, header, new, position, mark)
        found = split(main)
        assert stands_in(found.parts) == expected
        assert found.head.strip() == head.strip()
        assert is_plain(found.parts)


@given(texts(), st.integers(0, 20), CONTENT)
def test_what_a_change_leaves_alone_keeps_every_character(text, at, content):
    start, _, parts = text
    assume(parts)
    found = document(NAME, FRONT[0] + start)
    number = at % len(parts)
    old = found.parts
    before = FRONT[0] + old.head + "".join(part.text for part in old.parts[:number])
    behind = "".join(part.text for part in old.parts[number + 1 :])
    updated = knowledge.updated(found, parts[number][0], written(content))
    assert skeleton(updated).startswith(skeleton(before))
    assert updated.endswith(written(content) + ("\n\n" + behind if behind else ""))
    removed = knowledge.without(found, parts[number][0])
    assert skeleton(removed).startswith(skeleton(before).rstrip("\r\n"))
    assert removed.endswith(behind)


def skeleton(text):
    """A text without the moment at which it was changed."""
    return re.sub(r"updated: '.*'", "updated: ''", text)


# -- fences that are never closed --------------------------------------------------------------

OPEN = st.sampled_from(["```", "~~~ md\n## no heading", "text\n\n````\n```", "   ~~~"])


@given(texts(), st.integers(0, 20), OPEN)
def test_a_fence_that_is_never_closed_hides_no_chapter(text, at, content):
    start, _, parts = text
    assume(parts)
    number = at % len(parts)
    found = document(NAME, FRONT[0] + start)
    if number == len(parts) - 1:
        new = document(NAME, knowledge.updated(found, parts[number][0], content))
        assert stands_in(new.parts.parts) == [*parts[:-1], (parts[-1][0], content)]
        with pytest.raises(Refusal) as refused:
            knowledge.extended(new, "N", "more", "end", None)
    else:
        with pytest.raises(Refusal) as refused:
            knowledge.updated(found, parts[number][0], content)
    assert refused.value.code is Code.INVALID_CONTENT
    with pytest.raises(Refusal) as refused:
        sections.extended(start, "## N", content, "before", f"## {parts[number][0]}")
    assert refused.value.code is Code.INVALID_CONTENT


BEHIND_AN_OPEN_FENCE = "## One\n\n```\nmake\n\n## Two\n\nprecious\n"


@pytest.mark.parametrize("content", ["new", "```\nnew\n```", "Two", ""])
def test_what_an_open_fence_turns_into_code_is_not_lost(content):
    found = document(NAME, BEHIND_AN_OPEN_FENCE)
    for change in (
        lambda: knowledge.updated(found, "One", content),
        lambda: knowledge.without(found, "One"),
        lambda: sections.updated(BEHIND_AN_OPEN_FENCE, "## One", content),
        lambda: sections.without(BEHIND_AN_OPEN_FENCE, "## One"),
    ):
        with pytest.raises(Refusal, match='so "## Two" behind it counts as code') as refused:
            change()
        assert refused.value.code is Code.INVALID_CONTENT


@pytest.mark.parametrize(
    ("content", "titles"),
    [("```\nmake\n```\n\n## Two\n\nprecious\n", ["One", "Two"]), ("```\n## Two\n```\n", ["One"])],
)
def test_who_writes_the_whole_text_may_close_the_fence(content, titles):
    changed = knowledge.updated(document(NAME, BEHIND_AN_OPEN_FENCE), "One", content)
    assert document(NAME, changed).parts.titles == titles
    assert split(sections.updated(BEHIND_AN_OPEN_FENCE, "## One", content)).titles == titles


def test_of_two_headings_of_one_title_none_is_lost():
    found = document(NAME, f"{BEHIND_AN_OPEN_FENCE}\n## Two\n\nother\n")
    with pytest.raises(Refusal, match='so "## Two" behind it counts as code'):
        knowledge.updated(found, "One", "```\n```\n\n## Two\n\nprecious\n")


# -- comments that end elsewhere ---------------------------------------------------------------

COMMENTED = "## Template\n\n<!-- begun\n\n## Example\n\n```\n## no heading\n```\n\n## Flow\n\nold\n"


def test_the_end_of_a_comment_turns_no_code_of_another_chapter_into_a_heading():
    found = document(NAME, COMMENTED)
    for change in (
        lambda: knowledge.updated(found, "Flow", "a --> b"),
        lambda: knowledge.extended(found, "N", "a --> b", "end", None),
        lambda: sections.updated(COMMENTED, "## Flow", "a --> b"),
        lambda: sections.extended(COMMENTED, "## N", "a --> b", "before", "## Flow"),
    ):
        with pytest.raises(Refusal, match='"Example" would be read in another way') as refused:
            change()
        assert refused.value.code is Code.INVALID_CONTENT
    with pytest.raises(Refusal, match='"Two" would be read in another way'):
        chapters = [("One", "<!--"), ("Two", "```\n## x\n```"), ("Three", "-->")]
        knowledge.created("T", "about it", ["k"], chapters)


def test_the_end_of_a_comment_turns_no_code_of_the_head_or_of_its_own_into_a_heading():
    head = COMMENTED.replace("## Template", "about it").replace("## Example\n\n", "")
    for text, new in (
        (head, "a --> b"),
        ("<!-- begun\n\n## Flow\n\nold\n", "```\n## x\n```\n-->"),
    ):
        with pytest.raises(Refusal, match="The text would be read in another way"):
            sections.updated(text, "## Flow", new)


def test_a_comment_may_be_ended_where_it_begins():
    changed = knowledge.updated(document(NAME, COMMENTED), "Template", "<!-- begun -->")
    assert document(NAME, changed).parts.titles == ["Template", "Example", "Flow"]
    assert changed.endswith("## Example\n\n```\n## no heading\n```\n\n## Flow\n\nold\n")


def test_a_chapter_after_a_list_with_code_stays():
    text = "## One\n\n- ```bash\n  make\n  ```\n\n## Two\n\nprecious\n"
    changed = knowledge.updated(document(NAME, text), "One", "new")
    assert changed.endswith("## One\n\nnew\n\n## Two\n\nprecious\n")
    assert sections.updated(text, "## One", "new") == "## One\n\nnew\n\n## Two\n\nprecious\n"

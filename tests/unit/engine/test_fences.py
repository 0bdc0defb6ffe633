"""Which lines of a Markdown text are fenced code."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vector_index_mcp.engine.text import fences as fences_module
from vector_index_mcp.engine.text.fences import fences, lines_of_code, open_fence, outside

# What a whole text is read as: `#` marks lines of code.
TEXTS = {
    "in an item": "- ```bash\n  make\n  ```\n\n## Two|###..",
    "in a numbered item": "1. Run\n   ~~~\n   make\n   ~~~\n## Two|.###.",
    "in an item of an item": "- a\n  - b\n    ```py\n    # c\n    ```\n## Two|..###.",
    "an item's, never closed": "- a\n\n  ```\n  make\n## Two|..##.",
    "on an item's line, never closed": "* ~~~\n  make\n## Two|##.",
    "behind a box": "- [ ] ```\n  make\n  ```\n## Two|..#.",
    "a quote's, never closed": "> ```\n> make\n## Two|##.",
    "after text that goes on": "- a\ngoes on\n  ```\n  make\n## Two|..##.",
    "in a comment": "<!--\n```\n-->\n## Two|....",
    "in a comment that never ends": "<!--\n```\n## no\n```\n## Two|.###.",
    "a longer fence": "``````````\n`````````\n## no\n``````````\n## Two|####.",
    "further left than its item": "1. Run:\n   ```bash\ncd shop\n## first\n   ```\n## Two|.####.",
    "of two items, the first never closed": "- a\n  ```\n## Two\n- b\n  ```\n  make\n  ```|.#..###",
    "too far in": "!!! note\n    ```\n    make\n    ```\n## Two|.###.",
    "too far in, never closed": "    ```\n    make\n## Two|...",
    "below a fence that is too far in": "    ```\n  ```\n\n```\n## Two|.###.",
    "a fence that is too far in closes nothing": "```\n    ```\n## no\n```\n## Two|####.",
    "with line ends of Windows": "- ~~~\r\n## first\r\n  ~~~\r\n## Two|###.",
    "tabs": "-\t```\n\tmake\n\t```\n## Two|###.",
    "never closed": "a\n```\n## no|.##",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_lines_of_code(name):
    text, _, expected = TEXTS[name].partition("|")
    lines = text.split("\n")
    code = lines_of_code(lines)
    assert "".join("#" if number in code else "." for number in range(len(lines))) == expected
    assert [line for n, line in enumerate(outside(lines)) if line.startswith("#")] == [
        line for n, line in enumerate(lines) if line.startswith("#") and n not in code
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\n~~~~ x\nb", (1, "~~~~")),
        ("```\n```\n  ```` py", (2, "````")),
        ("```\nclosed\n```", None),
        ("- ```\n  the item's end closes it", None),
        ("    ```\n    too far in", None),
        ("a", None),
    ],
)
def test_the_fence_that_is_open_at_the_end(text, found):
    assert open_fence(text.split("\n")) == found


# Without what is read otherwise than CommonMark has it: code further left than its item.
LINES = st.sampled_from(
    ["## H", "- a", "- ```", "1. ~~~", "> ```", "1. x", "> q", "", "text", "***"]
    + ["   text", "   ```", "```", "```py", "~~~", "<!-- c -->", "<!--", "-->"]
)


@given(st.lists(LINES, max_size=9))
def test_what_commonmark_has_as_a_heading_is_outside(lines):
    """But for code further left than its item, which ends with a fence that CommonMark has open."""
    tokens = MarkdownIt("commonmark").parse("\n".join(lines))
    headings = {t.map[0] for t in tokens if t.type == "heading_open" and t.markup == "##"}
    ours = {n for n, line in enumerate(outside(lines)) if re.match("#+ ", line)}
    assert ours >= {n for n in headings if lines[n].startswith("#")} or "   ```" in lines


LONG = {
    "items": "- ```\n",
    "items with code": "- ```\n  x\n",
    "items of quotes": "> - ```\n",
    "further left": "- a\n  ```\nx\n   ```\n",
    "deep": "    ```x\n",
    "open comments": "<!--\n",
}


@pytest.mark.parametrize("name", LONG)
def test_each_line_is_looked_at_a_few_times(name, monkeypatch):
    seen = []
    closes = fences_module._FENCE.match

    class Counting:
        def match(self, line):
            seen.append(line)
            return closes(line)

    monkeypatch.setattr(fences_module, "_FENCE", Counting())
    lines = (LONG[name] * 2_000).split("\n")
    list(fences(lines))
    assert len(seen) < 6 * len(lines)


def test_what_is_left_outside_has_no_fence_and_every_other_line():
    lines = ["- ```x``` in [a](a.md)", "    ```", "[b](b.md) ```", "", "# H", ""]
    assert outside(lines) == ["- ```x``` in [a](a.md)", "", "[b](b.md) ```", "", "# H", ""]


def test_a_chapter_between_two_blocks_of_lists_is_outside():
    lines = "- run\n  ```\n  make\n\n## B\n\nprecious:\n\n  ```\n  x\n  ```\n".split("\n")
    assert "## B" in outside(lines)
    assert list(fences(lines)) == [(1, 3), (8, 10)]

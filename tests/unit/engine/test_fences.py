"""Which lines of a Markdown text are fenced code."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from vector_index_mcp.engine.fences import fences, open_fence, outside

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
    code = {number for first, last in fences(lines) for number in range(first, last + 1)}
    assert "".join("#" if number in code else "." for number in range(len(lines))) == expected
    assert outside(lines) == ["" if n in code else line for n, line in enumerate(lines)]


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
    ["## H", "- a", "1. x", "> q", "", "text", "  text", "```", "```py", "~~~", "<!-- c -->"]
)


@given(st.lists(LINES, max_size=9).map("\n".join))
def test_the_headings_outside_are_those_of_commonmark(text):
    headings = [line.strip() for line in outside(text.split("\n")) if re.match("#+ ", line)]
    tokens = MarkdownIt("commonmark").parse(text)
    assert len(headings) == sum(t.type == "heading_open" and t.markup == "##" for t in tokens)

"""Links lead to other documents, as their text says so; what is code or in the web is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.prose import properties_of
from vector_index_mcp.engine.prose.links import MOST_LINKS, links_in


def links_of(text):
    return properties_of("a/b.md", text, "markdown")[0].links


@pytest.mark.parametrize(
    ("line", "links"),
    [
        ("[a](b.md)", ["b.md"]),
        ("[a](b.md 'title') and [c]( d.md )", ["b.md", "d.md"]),
        ("[a](b%20c.md#part) [d](../e.md?raw=1)", ["b c.md", "../e.md"]),
        ("[a](<my file.md>) [b](<c.md> 'd')", ["my file.md", "c.md"]),
        ("[a](b(c).md)", ["b(c).md"]),
        ("[![image](i.png)](b.md)", ["i.png", "b.md"]),
        ("[a](b.md) [c](b.md)", ["b.md"]),
        ("[a]: b.md 'title'", ["b.md"]),
        ("   [a]: <my file.md>", ["my file.md"]),
        ("[[a]] [[b|c]] [[d#e]] ![[f]] [[ g ]]", ["[[a", "[[b", "[[d", "[[f", "[[g"]),
        ("| [[a\\|b]] | [[c\\|d]] |", ["[[a", "[[c"]),
        ("[a](ab%3Acd.md)", ["ab:cd.md"]),
        ("`code` [a](b.md) `code`", ["b.md"]),
        ("a `[b](c.md)", ["c.md"]),
        ("[a](b%FF.md)", ["b\ufffd.md"]),
    ],
)
def test_where_a_line_leads(line, links):
    assert links_of(line) == tuple(links)
    assert links_of(f"text\r\n{line}\r\n") == tuple(links)


@pytest.mark.parametrize(
    "line",
    [
        *("[a](https://b.org/c.md)", "[a](mailto:b@c.org)", "[a](//b.org)", "[a]: http://b.org"),
        *("[a](#part)", "[a]()", "[a]", "[[]]", "[[#part]]", "[[ ]]", "[[open", "[^1]: A note"),
        *(
            "`[a](b.md)`",
            "``[a](b.md)``",
            "`` ` [a](b.md) ``",
            "`a` `[[b]]`",
            "~~~\n[a](b.md)\n~~~",
        ),
        *("```\n[a](b.md)", "- a\n\n    ```\n    [b](c.md)\n    ```", "````\n```\n[a](b)\n````"),
        "```\n```js\n[a](b.md)\n```",
    ],
)
def test_what_is_no_link(line):
    assert links_of(line) == ()


def test_code_in_a_line_hides_no_link_below_it():
    assert links_of("```code``` in a line\n[a](b.md)") == ("b.md",)
    assert links_of("    ```\nnever closed\n[a](b.md)") == ("b.md",)


def test_there_are_not_too_many():
    assert len(links_in(f"[a]({number})" for number in range(5_000))) == MOST_LINKS


@given(st.text("[]()<>|#`\\ %a:/^!", max_size=60))
def test_any_line_has_links_or_none(line):
    assert all(link and link != "[[" for link in links_in([line]))

"""Markdown as elements: what people read, and nothing that could run."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.page.markup import MOST_CHARS, name_of, rendered

KEYS = {"other.md": "notes/other.md", "[[Plan": "notes/plan.md", "a b.md": "notes/a b.md"}
ALLOWED = {
    *"a p ul ol li blockquote em strong s code pre table thead tbody tr th td hr br span".split(),
    *(f"h{level}" for level in range(1, 7)),
}


def tree(text, first_line=1):
    return rendered(text, lambda link: KEYS.get(link, ""), first_line)


def words(nodes):
    """The text of a tree."""
    found = []
    for node in nodes:
        if isinstance(node, str):
            found.append(node)
        else:
            found.append(words(node.get("children", ())))
            found += [piece for _, piece, _ in node.get("spans", ())]
    return "".join(found)


def elements(nodes):
    for node in nodes:
        if not isinstance(node, str):
            yield node
            yield from elements(node.get("children", ()))


def test_headings_have_names_and_lines():
    [one, two] = tree("# The *first* one\n\ntext\n".replace("\n\ntext\n", "\n\n## Über 2!\n"), 5)
    assert (one["tag"], one["name"], one["line"]) == ("h1", "the-first-one", 5)
    assert (two["tag"], two["name"], two["line"]) == ("h2", "über-2", 7)


def test_lists_tables_and_code_are_what_they_look_like():
    text = (
        "- a\n- b\n\n3. c\n\n| x | y |\n|---|--:|\n| 1 | ~~2~~ |\n\n"
        "```python\ndef f(): pass\n```\n\n> said\n\n`x` **y**\n\n---\n"
    )
    found = tree(text)
    assert [node["tag"] for node in found] == [
        *("ul", "ol", "table", "pre", "blockquote", "p", "hr"),
    ]
    assert found[0]["children"][0] == {"tag": "li", "line": 1, "children": ["a"]}
    assert found[1]["start"] == 3
    assert [e["align"] for e in elements(found) if e["tag"] == "td" and "align" in e] == ["right"]
    assert ("k", "def", 0) in found[3]["spans"]
    assert tree("0. a\n1. b\n")[0]["start"] == 0


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("[x](other.md)", {"key": "notes/other.md"}),
        ("[x](other.md#A%20b)", {"key": "notes/other.md", "fragment": "a-b"}),
        ("[x](a%20b.md)", {"key": "notes/a b.md"}),
        ("[[Plan|x]]", {"key": "notes/plan.md"}),
        ("[[Plan#Next steps|x]]", {"key": "notes/plan.md", "fragment": "next-steps"}),
        ("[x](#part)", {"fragment": "part"}),
        ("[x](https://example.org/a)", {"href": "https://example.org/a"}),
        ("<mailto:a@b.c>", {"href": "mailto:a@b.c"}),
    ],
)
def test_links_lead_to_documents_headings_and_the_web(text, link):
    [paragraph] = tree(text)
    [found] = paragraph["children"]
    assert found["tag"] == "a"
    assert {name: found[name] for name in found.keys() - {"tag", "children"}} == link


@pytest.mark.parametrize("text", ["[x](nowhere.md)", "[[Nowhere|x]]"])
def test_a_link_to_no_document_is_marked_and_leads_nowhere(text):
    [found] = tree(text)[0]["children"]
    assert found == {"tag": "span", "kind": "dead", "children": ["x"]}


@pytest.mark.parametrize(
    "text",
    [
        "<script>hacked = 1</script>",
        "<img src=x onerror=hacked=1>",
        "a <b onclick=x>b</b>",
        "[x](javascript:hacked=1)",
        "[x](JaVaScRiPt:hacked=1)",
        "[x](data:text/html,hacked)",
        "[x](vbscript:hacked)",
        "[x](file:///etc/passwd)",
        "[x](//evil.example/x)",
        "![x](http://evil.example/x.png)",
        "<javascript:hacked>",
        "[x]: javascript:hacked\n\n[x]",
        "[[javascript:hacked]]",
        "| <script> |\n|---|\n| <iframe src=x> |",
        "```html\n<script>hacked = 1</script>\n```",
    ],
)
def test_nothing_runs_and_nothing_is_loaded(text):
    for element in elements(tree(text)):
        assert element["tag"] in ALLOWED
        assert element.keys() <= {"tag", "children", "spans", "kind", "line", "href", "name"}
        assert element.get("href", "https://").startswith(("http://", "https://", "mailto:"))


def test_what_is_html_stays_text():
    assert words(tree("<b>bold</b> &amp; <script>x</script>")) == "<b>bold</b> & <script>x</script>"


@given(st.text(alphabet="ab \n#*_`~[]()<>!|-+1.:\\/&\"'{}@\t\x00é", max_size=200))
def test_any_text_becomes_elements_that_json_can_hold(text):
    found = tree(text)
    assert json.loads(json.dumps(found)) is not None
    assert {element["tag"] for element in elements(found)} <= ALLOWED


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "*" * 5_000 + "a" + "*" * 5_000,
        "> " * 5_000 + "a",
        "".join("  " * depth + "- a\n" for depth in range(300)),
        "[" * 20_000 + "a" + "](b)" * 20_000,
        "[[" * 40_000,
        "![" * 40_000,
        "`" * MOST_CHARS,
        "a|b\n-|-\n" + "x\n" * 40_000,
    ],
    ids=lambda text: text[:10],
)
def test_what_is_made_to_be_slow_or_deep_ends_and_is_flat_enough_for_json(text):
    assert json.dumps(tree(text[:MOST_CHARS]))


@pytest.mark.slow
def test_cells_that_nobody_wrote_are_not_made_by_the_million():
    wide = "|" + "a|" * 181 + "\n|" + "-|" * 181 + "\n" + "|\n" * 362 + "\n"
    cells = [each for each in elements(tree(wide * 60)) if each["tag"] in {"th", "td"}]
    assert len(cells) < 50_000
    narrow = tree("| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * 1_000)
    assert sum(each["tag"] == "td" for each in elements(narrow)) == 2_000


def test_names_of_headings_are_as_elsewhere():
    assert name_of(" What's new, in 2.0? ") == "whats-new-in-20"

"""What is known of a text is what it says of itself, else what its name says, in bounds."""

import json

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.prose import Properties, properties_of
from vector_index_mcp.engine.prose.properties import bare_name_of

_ANY = st.characters()  # lone surrogates, too


def of(text, key="c/notes/the-name.md", language="markdown"):
    return properties_of(key, text, language)[0]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: One\n---\n# Two\n", "One"),
        ('+++\ntitle = "One"\n+++\n# Two\n', "One"),
        ("---\ntitle: '  '\n---\n# Two\n", "Two"),
        ("---\ntags: a\n---\n\n## Two ##\n\n# Three\n", "Two"),
        ("---\ntags: a\n---", "the-name"),
        ("### Three\n\n# One\n", "One"),
        ("One\r\n===\r\n", "One"),
        ("```\n# code\n```\n~~~~\n# code\n~~~\n# code\n~~~~\n# One", "One"),
        ("```code```\n# One", "One"),
        ("- a\n\n      ```\n# code\n      ```\n# One", "One"),
        ("---\nText.\n\n# One\n\n---\n# Two", "One"),
        ("---\n# One\n", "One"),
        ("#tag\n### Three\n", "the-name"),
        ("", "the-name"),
        ("# A   title\twith \u00a0 spaces", "A title with spaces"),
    ],
)
def test_the_title(text, title):
    assert of(text).title == title


@pytest.mark.parametrize(
    ("text", "heading"),
    [
        ("---\ntitle: One\n---\nText.\n\n# Two\n", "Two"),
        ("---\ntitle: One\n---\nText.\n\n## See also\n\n# Two\n", ""),
        ("---\ntitle: One\n---\n# One\n\n## Two\n", ""),
        ("---\ntitle: One\n---\n### Three\n", ""),
        ("# Two\n", ""),
    ],
)
def test_a_heading_that_is_not_the_title_is_known(text, heading):
    assert of(text).heading == heading


@pytest.mark.parametrize(
    ("language", "text"),
    [("rst", "One\n===\n\nTwo\n---\n"), ("asciidoc", "= One\n\n== Two\n"), ("markdown", "# One")],
)
def test_the_title_in_every_language_with_headings(language, text):
    assert of(text, language=language).title == "One"
    assert of(text, language="other").title == "the-name"


@pytest.mark.parametrize(
    ("key", "title"),
    [("c/a.b.md", "a.b"), ("c/.hidden", ".hidden"), ("c/LICENSE", "LICENSE"), ("c/ .md", "c/ .md")],
)
def test_a_text_without_a_title_is_called_as_its_file(key, title):
    assert of("text", key).title == Properties.loaded("", key).title == title


@pytest.mark.parametrize(
    ("inner", "tags"),
    [
        ("tags: one", ["one"]),
        ("tags: one two", ["one", "two"]),
        ("tags: one two, three", ["one two", "three"]),
        ("tags: [one, two]\ntag: three", ["one", "two", "three"]),
        ("tags:\n- one\n- '#two'\n- #three", ["one", "two", "three"]),
        ("tags: '#one #two'\nkeywords: [one]\ncategories: four", ["one", "two", "four"]),
        ("tags: #one #two", ["one", "two"]),
        ("tags: [a, a, '', '#']", ["a"]),
        ("tags: {a: b}", []),
    ],
)
def test_the_tags(inner, tags):
    assert of(f"---\n{inner}\n---\n").tags == tuple(tags)


def test_aliases_are_kept_whole():
    assert of("---\naliases: [One name, Other]\nalias: A third\n---\n").aliases == (
        "One name",
        "Other",
        "A third",
    )


@pytest.mark.parametrize(
    ("inner", "key", "dates"),
    [
        ("date: 2024-01-02", "c/a.md", ("2024-01-02", "")),
        (
            "created: 2024-01-02T03:04:05Z\nupdated: 2024-02-03 10:00",
            "c/a.md",
            ("2024-01-02", "2024-02-03"),
        ),
        ("lastmod: '2024-02-03'", "c/2023-12-31 note.md", ("2023-12-31", "2024-02-03")),
        ("date: yesterday", "c/2023-12-31.md", ("2023-12-31", "")),
        ("date: 2024-13-01", "c/12023-12-31.md", ("", "")),
        ("date: ٢٠٢٤-٠١-٠٢", "c/2023-12-311.md", ("", "")),
    ],
)
def test_the_dates(inner, key, dates):
    found = of(f"---\n{inner}\n---\n", key)
    assert (found.created, found.updated) == dates


def test_a_text_that_is_no_markdown_has_neither_front_matter_nor_links():
    found, first = properties_of("c/a.txt", "---\ntitle: One\n---\n[a](b.md)", "text")
    assert (found, first) == (Properties("a"), 0)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("---\na: b\n---\nx", 3),
        ("---\r\na: b\r\n---\r\nx", 3),
        ("---\nx\n---", 0),
        ("x", 0),
        ("", 0),
    ],
)
def test_where_the_text_begins(text, first):
    assert properties_of("c/a.md", text, "markdown")[1] == first


def check(properties):
    """What holds for all properties, whoever has written what they are made of."""
    properties.dumped().encode("utf-8")
    assert 1 <= len(properties.title) <= 300
    assert " ".join(properties.title.split()) == properties.title
    assert len(properties.heading) <= 300
    assert " ".join(properties.heading.split()) == properties.heading
    for texts, most, longest in (
        (properties.tags, 100, 100),
        (properties.aliases, 100, 300),
        (properties.links, 1_000, 1_000),
    ):
        assert isinstance(texts, tuple) and len(texts) <= most
        assert all(isinstance(text, str) and 1 <= len(text) <= longest for text in texts)
    assert all(
        len(date) in {0, 10} and date.isascii() for date in (properties.created, properties.updated)
    )


_LINES = st.one_of(
    st.text(_ANY, max_size=30),
    st.text(max_size=500).map(lambda text: f"# {text}"),
    st.text(_ANY, max_size=10).map(lambda text: f"title: {json.dumps(text)}"),
    st.text(max_size=10).map(lambda text: f"tags: [{text}, {text * 30}]"),
    st.text(_ANY, max_size=10).map(lambda text: f"aliases: {json.dumps([text, text * 90])}"),
    st.text(max_size=10).map(lambda text: f"[a]({text}) [[{text}]]"),
    st.sampled_from(
        ["---", "+++", "```", "---\r", "date: 2024-01-02", '"\\ud800": x', "===", "- x"]
    ),
)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(
    st.lists(_LINES, max_size=12).map("\n".join),
    st.booleans(),
    st.sampled_from(["markdown", "rst"]),
)
@example('title: "\\ud800"\n---', True, "markdown")
@example("title: " + "x " * 150 + "y\n---", True, "markdown")
@example("# " + "x " * 300, False, "markdown")
def test_stored_properties_are_read_as_they_were(text, begins, language):
    found = of(f"---\n{text}" if begins else text, language=language)
    check(found)
    assert Properties.loaded(found.dumped(), "c/notes/the-name.md") == found


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(_ANY, max_size=400),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=10,
)
_NAMES = st.sampled_from(
    ["title", "heading", "tags", "aliases", "created", "updated", "links", "other"]
)


@pytest.mark.slow
@settings(max_examples=examples(400))
@given(st.one_of(_VALUES, st.dictionaries(_NAMES, _VALUES)).map(json.dumps) | st.text(_ANY))
@example("[" * 100_000)
@example('{"tags":' + "[" * 100_000)
@example(f'{{"title": {"9" * 5_000}}}')
@example('{"tags": "abc", "aliases": {"a": 1}, "links": [1, null, "b"], "created": ["2024-01-02"]}')
@example('{"title": "\\ud800", "tags": ["\\udfff"], "links": ["\\ud800"]}')
@example(json.dumps({"tags": [str(n) for n in range(999)], "links": ["x" * 9_999] * 2_000}))
@example(json.dumps({"title": "x" * 9_999, "aliases": ["y" * 9_999], "created": "2024-01-02" * 99}))
def test_what_somebody_else_has_stored_is_bounded_and_of_the_right_types(stored):
    found = Properties.loaded(stored, "c/name.md")
    check(found)
    assert Properties.loaded(found.dumped(), "c/name.md") == found


def test_a_text_in_place_of_a_list_is_none():
    assert Properties.loaded('{"tags": "abc", "links": {"a": 1}}', "c/a.md") == Properties("a")


@pytest.mark.parametrize(
    ("key", "name"), [("c/a.md", "a"), ("a/b.c/d", "d"), (".x", ".x"), ("", "")]
)
def test_the_bare_name_of_a_key(key, name):
    assert bare_name_of(key) == name

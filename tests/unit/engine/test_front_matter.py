"""Front matter is read as people write it; what is broken costs its key, what is text stays."""

import time

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.engine.text.front_matter import split

_RULES = [f"  a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]


def settings_in(inner, mark="---", newline="\n"):
    """What is read of these lines between two marks, which all are to be front matter."""
    lines = [mark, *inner.split("\n"), mark, "body", ""]
    values, first = split(newline.join(lines).split("\n"))
    assert first == len(lines) - 2
    return values


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("inner", "values"),
    [
        ("title: A tour", {"title": "A tour"}),
        ("Title : A tour", {"title": "A tour"}),
        ('"title": A tour', {"title": "A tour"}),
        ("标题: 一", {"标题": "一"}),
        ("title: Rust: a tour", {"title": "Rust: a tour"}),
        ("title: 'it''s'", {"title": "it's"}),
        ('title: "a \\"b\\"" # so', {"title": 'a "b"'}),
        ("title: a # so", {"title": "a"}),
        ("title: C#", {"title": "C#"}),
        ("title: 2024", {"title": "2024"}),
        ("draft: yes\ndate: 2024-01-02", {"draft": "yes", "date": "2024-01-02"}),
        ("title: >\n  two\n  lines", {"title": "two lines"}),
        ("title: two\n  lines", {"title": "two lines"}),
        ("tags: [a, 'b', #c]", {"tags": ["a", "b", "#c"]}),
        ('tags: [a, "b, c"]', {"tags": ["a", "b, c"]}),
        ("tags: [\n  a,\n  b\n]", {"tags": ["a", "b"]}),
        ("tags:\n  - a\n  - '#b'\n- c", {"tags": ["a", "#b", "c"]}),
        ("tags: # so\n- a\n\n# so\n- b", {"tags": ["a", "b"]}),
        ("tags: #a #b", {"tags": "#a #b"}),
        ("tags: # so", {}),
        ("tags: []", {}),
        ("title:\ntags:", {}),
        ("title: null\ntags: ~", {}),
        ("nested:\n  title: no\ntitle: yes", {"title": "yes"}),
        ("", {}),
    ],
)
def test_yaml_as_people_write_it(inner, values, newline):
    assert settings_in(inner, newline=newline) == values


@pytest.mark.parametrize(
    "broken",
    [
        *("tags: [a", 'b: "open', "b: {a: 1", "b: !!bool x", "b: !!int ''", "b: !!timestamp x"),
        *("b: *missing", "b: &a [*a]", 'b: "\\UFFFFFFFF"', "b: %x", "b: @x", "b: `x", "b: |x"),
        *("b: !!python/object/apply:os.system [x]", "no key at all", "b: [" * 500, "b: \0["),
        "\n".join(["b:", "  a0: &a0 {x: 1}", *_RULES]),
    ],
)
def test_what_is_broken_costs_its_key_alone(broken):
    began = time.process_time()
    values = settings_in(f"title: one\n{broken}\ndate: 2024-01-02")
    assert time.process_time() - began < 2
    assert values["title"] == "one" and values["date"] == "2024-01-02"


@pytest.mark.slow
def test_much_that_only_a_library_can_read_takes_no_time():
    began = time.process_time()
    settings_in("\n".join([f"k{n}: {{{'a: [b, c], ' * 100}}}" for n in range(900)]))
    assert time.process_time() - began < 3


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_toml(newline):
    inner = 'title = "A tour"\ntags = ["a", "b"]\ndate = 2024-01-02\n[extra]\nx = 1'
    assert settings_in(inner, "+++", newline) == {
        "title": "A tour",
        "tags": ["a", "b"],
        "date": "2024-01-02",
    }


@pytest.mark.parametrize(
    "broken", ["a =", f"a = {'9' * 5_000}", f"a = 0x{'f' * 5_000}", f"a = {'[' * 5_000}"]
)
def test_broken_toml_is_still_no_text(broken):
    assert settings_in(broken, "+++") == {}


@pytest.mark.parametrize(
    "text",
    [
        "---\nSome text.\n---\nMore.",
        "---\nSome text, and\nmore of it: with a colon.\n---\n",
        "---\nNote: text.\nthat goes on\nand on\n---\n",
        "---\n# Heading\n\nText.\n---\n",
        "---\n- a list\n---\n",
        "---\ntitle: never ended",
        "---",
        "--- \n",
        "----\ntitle: no\n----\n",
        " ---\ntitle: no\n---\n",
        "text\n---\ntitle: no\n---\n",
        "+++\ntext\n+++\n",
        "---\ntitle: a\n" + "\n" * 2_000 + "---\n",
        "",
    ],
)
def test_a_text_that_begins_with_a_rule_has_none(text):
    assert split(text.split("\n")) == ({}, 0)


@pytest.mark.parametrize("end", ["---", "...", "---  "])
def test_it_ends_where_yaml_does(end):
    assert split(["---", "a: b", end, "---"]) == ({"a": "b"}, 3)


def test_what_it_says_is_bounded():
    many = ", ".join(map(str, range(1_000)))
    values = settings_in(f"a: {'x' * 5_000}\nb: [{many}]\nc: ['{'x' * 5_000}']")
    assert len(values["a"]) == len(values["c"][0]) == 1_000
    assert values["b"] == [str(number) for number in range(256)]


_LINES = st.one_of(
    st.text(max_size=20),
    st.text("ab:-# []{}\"'&*!|>%@`,~\\\r\t", max_size=20),
    st.sampled_from(["title: x", "---", "+++", "- a", "k: !!int", "k:", "a = 1", "<<: *a", "[t]"]),
)


@pytest.mark.slow
@settings(max_examples=examples(500))
@given(st.sampled_from(["---", "+++"]), st.lists(_LINES, max_size=12))
@example("---", [])
def test_whatever_stands_there_is_read_or_left(mark, lines):
    values, first = split([mark, *lines])
    assert first == 0 or lines[first - 2].rstrip() in {"---", "+++", "..."}
    for key, value in values.items():
        assert key == key.lower()
        texts = [value] if isinstance(value, str) else value
        assert all(isinstance(text, str) and text for text in texts)

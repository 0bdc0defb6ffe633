"""A text in YAML is changed where it has to be, and nowhere else."""

import time
from collections import Counter
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.documents.yaml_edits import drop, put, renamed
from vector_index_mcp.documents.yaml_text import MOST_CHARS, YamlError, parsed

WRITTEN = """\
---
# mine
global_context:   'all of it'   # for everybody
collections:
    docs:   # the docs
        path:    ~/docs
        pattern: '**/*.md'
        context:
            "/": Everything
            /meetings: |
                Two
                lines

        owner: [ann, 'bob']

    # about notes
    notes:
        path: ~/notes
    # - old: entry

other: {a: 1, b: [2, 3]}
#end
"""
NOTHING = ["", "\n", "---\n", "# only a comment\n", "{}\n", "~\n", "---\n...\n"]


def loaded(text):
    return yaml.load(text, Loader=yaml.BaseLoader)


def changed_lines(before, after):
    """(lines that are gone, lines that are new)."""
    old, new = Counter(before.splitlines()), Counter(after.splitlines())
    return [*(old - new).elements()], [*(new - old).elements()]


def test_a_new_entry_is_the_only_new_line():
    after = put(WRITTEN, ["collections", "new"], {"path": "/x", "pattern": "**/*.md"})
    assert changed_lines(WRITTEN, after) == (
        [],
        ["    new:", "        path: /x", '        pattern: "**/*.md"'],
    )
    assert list(loaded(after)["collections"]) == ["docs", "notes", "new"]


def test_a_value_is_replaced_in_its_place():
    after = put(WRITTEN, ["global_context"], "new: text")
    assert after == WRITTEN.replace("'all of it'", '"new: text"')


def test_a_block_text_is_replaced_up_to_its_end():
    after = put(WRITTEN, ["collections", "docs", "context", "/meetings"], "One")
    gone = "|\n                Two\n                lines\n\n"
    assert after == WRITTEN.replace(gone, "One\n")


def test_what_is_made_on_the_way_is_indented_like_the_rest():
    after = put(WRITTEN, ["collections", "notes", "context", "/a"], "b c")
    assert changed_lines(WRITTEN, after) == ([], ["        context:", "            /a: b c"])


def test_an_entry_goes_and_the_comment_of_the_next_one_stays():
    after = drop(WRITTEN, ["collections", "docs"])
    start, end = WRITTEN.index("    docs:"), WRITTEN.index("\n    # about notes")
    assert after == WRITTEN[:start] + WRITTEN[end:]


def test_the_last_entry_goes():
    after = drop(WRITTEN, ["collections", "notes"])
    assert after == WRITTEN.replace("    notes:\n        path: ~/notes\n", "")


def test_a_name_is_changed_and_nothing_else():
    after = renamed(WRITTEN, ["collections", "docs"], "papers")
    assert after == WRITTEN.replace("    docs:   #", "    papers:   #")


@pytest.mark.parametrize("text", NOTHING[:-1])
def test_something_can_be_put_into_nothing(text):
    after = put(text, ["collections", "a"], {"path": "/x"})
    assert loaded(after) == {"collections": {"a": {"path": "/x"}}}
    assert all(line in after for line in text.splitlines() if line.startswith("#"))


@pytest.mark.parametrize(
    "text",
    ["c:\n", "c:", "c: {}\n", "c: {} # none yet\n", "c: ~\n", "c: # none yet\n", "x: 1\n", "x: 1"]
    + ["c:\nx: 1\n", "c: {}\nx: 1\n", "c:\n\n\nx: 1\n", "{c: {}}", "{c: }", "{c: {x: 1}, y: 2}"]
    + ["c:\n  b: 1", "c: {\n  b: 1,\n}\n", "c: {b: 1, }", "c:\r\n  b: 1\r\n", "c: &c\n  b: 1\n"],
)  # fmt: skip
def test_an_entry_is_put_wherever_there_is_a_place_for_it(text):
    after = put(text, ["c", "a"], {"path": "/x", "list": ["1", "b, c"]})
    was = loaded(text.replace("~", ""))
    entries = {**(was.get("c") or {}), "a": {"path": "/x", "list": ["1", "b, c"]}}
    assert loaded(after) == {**was, "c": entries}
    assert "none yet" not in text or "none yet" in after
    assert "\r\n" not in text or after.count("\r\n") == after.count("\n")


@pytest.mark.parametrize(
    ("text", "key", "left"),
    [
        ("{a: 1, b: 2, c: 3}", "a", "{b: 2, c: 3}"),
        ("{a: 1, b: 2, c: 3}", "b", "{a: 1, c: 3}"),
        ("{a: 1, b: 2, c: 3}", "c", "{a: 1, b: 2}"),
        ("{a: 1}", "a", "{}"),
        ("a: 1\nb: 2", "b", "a: 1\n"),
        ("a:\nb: 2\n", "a", "b: 2\n"),
        ("a: |+\n  x\n\n\nb: 2\n", "a", "b: 2\n"),
        ("a: >-\n  x\n\n# y\nb: 2\n", "a", "# y\nb: 2\n"),
        ("a: 'x\n\n  y'  # z\nb: 2\n", "a", "b: 2\n"),
    ],
)
def test_an_entry_goes_whatever_it_is_written_like(text, key, left):
    assert drop(text, [key]) == left


@pytest.mark.slow
@given(st.dictionaries(st.text(max_size=20), st.text(max_size=40), max_size=5), st.booleans())
def test_any_text_is_read_as_it_was_put(entries, is_flow):
    text = "{x: {y: z}}\n" if is_flow else "x:\n  y: z\n"
    for key, value in entries.items():
        text = put(text, ["x", key], value)
    expected = {"y": "z", **entries}
    assert loaded(text) == {"x": expected}
    if "<<" not in entries and "=" not in entries:
        assert yaml.safe_load(text) == {"x": expected}  # no reader takes one for anything else
    for key in entries:
        text = drop(renamed(text, ["x", key], "k\n"), ["x", "k\n"]) if key != "y" else text
    assert list(loaded(text)["x"]) == ["y"]


WORDS = ["yes", "No", "null", "~", "1", "1.5", "2024-01-01", "0x1F", "1e3", ".inf", "y", "on"]
SIGNS = ["", " a", "a ", "- a", "a: b", "a #b", "#a", "!a", "&a", "*a", "|", "%a", "@a", "`a", "a:"]
ODD = ["'", '"', "\\", "...", "---", "=", "<<", "\t", "a\r\nb", "\x85", "\x7f", "\0", "é", "😀"]
UNSEEN = ["\u2028", "\u2029", "\ufeff", "\ufffe", "\xa0", "\u200d"]


@pytest.mark.parametrize("word", WORDS + SIGNS + ODD + UNSEEN)
def test_words_that_mean_something_stay_words(word):
    text = put(put("", ["x", word], word), ["y"], word)
    assert yaml.safe_load(text) == {"x": {word: word}, "y": word}
    assert parsed(text).entries["y"][1].text == word


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: 1\nb: [\n", 3, "not YAML"),
        ("a: 1\n\tb: 2\n", 2, "not YAML"),
        ("a: 1\nb: \x01\n", 2, "not YAML"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 1\nb: !!python/object:os.system {}\n", 2, "tag"),
        ("a: 1\nb: !mine x\n", 2, "tag"),
        ("a: 1\na: 2\n", 2, "twice"),
        ("a: 1\n[b]: 2\n", 2, "cannot be a key"),
        ("a: 1\nb: *c\n", 2, "refers to no value before it"),
        ("a: &a\n  b: *a\n", 2, "refers to no value before it"),
        ("a: &a [*a]\n", 1, "refers to no value before it"),
        ("# x\n" * 3 + "a: " + "[" * 30, 4, "too many or too deeply nested"),
        ("a:\n" + "- b\n" * 60_000, 49_999, "too many or too deeply nested"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_line(text, line, words):
    with pytest.raises(YamlError, match=words) as refused:
        parsed(text)
    assert abs(refused.value.line - line) <= 2


def test_what_refers_to_much_many_times_is_refused():
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
    )
    with pytest.raises(YamlError, match="too many or too deeply nested"):
        parsed(laughs)


def test_a_value_that_is_referred_to_is_read():
    node = parsed("a: &a /x\nb: &b {c: *a}\nd: *b\n")
    assert node.entries["d"][1].entries["c"][1].text == "/x"


@pytest.mark.parametrize(
    ("beginning", "body"),
    [("", "["), ("", "{"), ("", "- "), ("", "? "), ("", "[a,"), ("", "a:"), ("", "&a ")]
    + [("", "!a "), ("a: ", "x "), ("a: ", "x\n  "), ("a: |\n", "  \n"), ("#", "x")]
    + [("'", "''"), ("", "\n")],
)  # fmt: skip
def test_no_text_takes_long(beginning, body):
    start = time.thread_time()
    with suppress(YamlError):
        parsed(beginning + body * ((MOST_CHARS - len(beginning)) // len(body)))
    assert time.thread_time() - start < 5  # with libyaml 0.3


def test_a_text_of_any_length_is_refused():
    with pytest.raises(YamlError, match="shorter"):
        parsed("x" * (MOST_CHARS + 1))


@given(st.text("ab:-[]{}#&*!|>'\"%@, \n\t?~1é", max_size=60))
def test_any_text_is_read_or_refused(text):
    with suppress(YamlError):
        put(text, ["a", "b"], "c")
    with suppress(YamlError):
        drop(text, ["a"])

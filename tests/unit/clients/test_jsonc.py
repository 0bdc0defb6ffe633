"""Editing JSON with comments, compared with a reader that knows nothing of ours."""

import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from vector_index_mcp.clients import edits
from vector_index_mcp.clients.edits import EditError
from vector_index_mcp.clients.jsonc import Json

STRICT = Json(comments=False, trailing_commas=False)
ENTRY = {"command": "/bin/ours", "args": ["a b", "ü"], "nested": {"x": 1}}
_STRING_OR_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_STRING_OR_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def reference(text: str) -> dict:
    """What a text says to someone who blanks comments and trailing commas and reads the rest."""
    bare = _STRING_OR_COMMENT.sub(lambda match: match[1] or " ", text)
    return json.loads(_STRING_OR_COMMA.sub(lambda match: match[1] or "", bare))


keys = st.sampled_from(["servers", "docs", "web", 'q"uote', "//no", "ü", ""])
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | keys
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3)
)
objects = st.dictionaries(keys, values, max_size=4)
spaces = st.sampled_from(
    ["", "", " ", "\n", "\n  ", "\n\t", "\r\n  ", "/* , */", " // }\n", "\n// {\n   ", "\n/*\n*/ "]
)


@st.composite
def texts(draw, of=objects) -> str:
    """An object as somebody may have written it."""

    def named(key) -> str:
        return "" if key is None else f"{draw(spaces)}{json.dumps(key)}{draw(spaces)}:"

    def written(value) -> str:
        before, after = draw(spaces), draw(spaces)
        if isinstance(value, (dict, list)):
            keys = value if isinstance(value, dict) else [None] * len(value)
            inner = value.values() if isinstance(value, dict) else value
            items = [named(key) + written(item) for key, item in zip(keys, inner, strict=True)]
            last = draw(st.sampled_from(["", ","])) if items else ""
            opening, closing = "{}" if isinstance(value, dict) else "[]"
            return f"{before}{opening}{','.join(items)}{last}{draw(spaces)}{closing}{after}"
        return before + json.dumps(value, ensure_ascii=draw(st.booleans())) + after

    return written(draw(of))


with_servers = st.fixed_dictionaries({"servers": objects, "docs": values})


@pytest.mark.slow
@given(texts())
def test_it_reads_what_the_reference_reads(text):
    assert Json().read(text) == reference(text)


@pytest.mark.slow
@given(texts(), st.integers(0), st.sampled_from(["", ",", "}", "]", "{", '"', "x", "1", "\n", "/"]))
def test_what_is_no_json_is_refused_and_nothing_else(text, at, new):
    """One character replaced, mostly for the worse."""
    bare = json.dumps(Json().read(text))
    at %= len(bare)
    mutated = bare[:at] + new + bare[at + 1 :]
    try:
        expected = json.loads(mutated)
    except ValueError:
        expected = None
    if isinstance(expected, dict):
        assert STRICT.read(mutated) == expected
    elif mutated.strip():
        with pytest.raises(EditError):
            STRICT.read(mutated)


@pytest.mark.slow
@given(texts(with_servers) | texts())
def test_adding_adds_and_changes_nothing_else(text):
    before = reference(text)
    assume(isinstance(before.get("servers", {}), dict))
    after = Json().add(text, ("servers", "new"), ENTRY)
    expected = {**before, "servers": {**before.get("servers", {}), "new": ENTRY}}
    assert reference(after) == expected
    assert is_subsequence(re.sub(r"\s", "", text), after)


@pytest.mark.slow
@given(texts(with_servers))
def test_removing_what_was_added_leaves_every_byte_as_it_was(text):
    assume(reference(text)["servers"])
    added = Json().add(text, ("servers", "new"), ENTRY)
    assert Json().remove(added, ("servers", "new")) == text


@pytest.mark.slow
@given(texts(with_servers), st.integers(0))
def test_removing_removes_and_changes_nothing_else(text, which):
    before = reference(text)
    assume(before["servers"])
    name = list(before["servers"])[which % len(before["servers"])]
    after = Json().remove(text, ("servers", name))
    del before["servers"][name]
    assert reference(after) == before
    assert is_subsequence(after, text)


@pytest.mark.slow
@given(texts(with_servers), st.integers(0), values)
def test_replacing_replaces_and_changes_nothing_else(text, which, value):
    before = reference(text)
    assume(before["servers"])
    name = list(before["servers"])[which % len(before["servers"])]
    after = Json().replace(text, ("servers", name), value)
    before["servers"][name] = value
    assert reference(after) == before


def is_subsequence(short: str, long: str) -> bool:
    rest = iter(long)
    return all(char in rest for char in short)


@pytest.mark.parametrize("text", ["", " \n", "// nothing yet\n", "{}", "{ }\n", "{\n}\n", "{/**/}"])
def test_adding_to_nothing_makes_lines(text):
    after = Json().add(text, ("servers", "web"), {"command": "x"})
    assert reference(after) == {"servers": {"web": {"command": "x"}}}
    assert '\n  "servers": {\n    "web": {\n      "command": "x"\n    }\n  }\n}' in after


def test_a_comment_behind_an_entry_goes_with_it_and_those_above_stay():
    text = '{"s": {\n  // above\n  "a": {}, // behind\n  // below\n  "b": {} // kept\n}}'
    after = Json().remove(text, ("s", "a"))
    assert after == '{"s": {\n  // above\n  // below\n  "b": {} // kept\n}}'


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ('{\n  "a": 1\n  "b": 2\n}', 2, '`,` or `}` is expected before `"b"`'),
        ('{\n  "a": {\n', 2, "before the end of the file"),
        ("{\n  a: 1}", 2, "'a: 1}' makes no sense here"),
        ("\n[]", 2, "an object in braces"),
        ('{"a": 1}\n}', 1, "the end is expected"),
        ('{"a": "1\n"}', 1, "makes no sense here"),
        ('{"a":\n' + "1" * 5000 + "}", 2, "4300 digits"),
        ("{" + '"a": {' * 2000, 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, line, reason):
    with pytest.raises(EditError, match=re.escape(reason)) as caught:
        Json().read(text)
    assert caught.value.line == line


def test_what_a_client_does_not_read_is_wrong():
    with pytest.raises(EditError, match="does not allow comments") as caught:
        Json(comments=False).read('{\n"a": 1 // one\n}')
    assert caught.value.line == 2
    with pytest.raises(EditError, match="does not allow a comma before `}`"):
        Json(trailing_commas=False).read('{"a": 1,}')
    with pytest.raises(EditError, match="does not allow a comma before `]`"):
        Json(trailing_commas=False).read('{"a": [1,]}')


@pytest.mark.parametrize("text", ['{"servers": []}', '{"servers": null}', '{"servers": "x"}'])
def test_servers_that_are_none_are_not_replaced(text):
    with pytest.raises(EditError, match="`servers` is not a table"):
        edits.added(Json(), text, ("servers", "web"), ENTRY)


def test_a_key_that_is_there_twice_is_left_to_a_person():
    text = '{"servers": {"web": {"command": "old"}, "web": {"command": "new"}}}'
    with pytest.raises(EditError, match="occurs twice"):
        edits.removed(Json(), text, ("servers", "web"))

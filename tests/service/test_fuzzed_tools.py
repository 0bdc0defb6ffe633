"""Arguments that nobody would think of are answered, with what they ask for, or refused."""

import contextlib
import re

import pytest
from fakes import FakeEmbedder
from hypothesis import example, given, settings
from hypothesis import strategies as st
from serving import codebase_of, serving, settled
from writing import write

from vector_index_mcp.errors import QueryError
from vector_index_mcp.files.glob import keys_meant, regex_of
from vector_index_mcp.files.language import languages_meant_by

pytestmark = pytest.mark.anyio

FILES = {
    "one.py": "def apple():\n    return 'banana'\n",
    'it\'s "odd" %_.py': "cherry = 1\n",
    "sub/two.md": "# Damson\n\napple and banana\n",
    "sub/{a,b}[c].ts": "const elderberry = apple;\n",
}
EXAMPLES = 150
# What a caller can mend, told in our words.
REFUSALS = re.compile(
    r"(query is missing|(query|path|language) must be a text |(top_k|max_tokens) must be a whole |"
    r"there is no argument '|the query is empty;|the query has no word |path has |"
    r"language is not known: |path is not a glob |path=)"
)
INJECTIONS = [
    "' OR 1=1 --", "') OR (1=1", "\\' OR true; DROP TABLE chunks", "apple\0", "%", "_", "''", '"',
    "\\", "file_path", "NULL", "{{{{", "}}", "{a,{b,c}}", "[", "[!", "[]-z]", "[[:alpha:]]",
    "[z-a]", "**/" * 300, "{a,b}" * 5, "*a" * 400, "?" * 900, "(a+)+$", "(?R)", "(?=a)", "..",
    "\\Qapple\\E", "../../etc/passwd", "/", "/etc/*", "!one.py", "#", " ", "\n", "\u202e",
    "\x1b[2J", "a" * 1_000, "one.py", "*.py", "sub/**", "+apple -banana", 'apple AND "', "apple~2",
    "apple*", "title:apple", "\U0001f600" * 200, "[\\d-a]", "[a&&b]", "x{99999999}", "(" * 500,
    "^$", "|", "a|b", "\\b\\w+\\b",
]  # fmt: skip
texts = st.text(max_size=50) | st.sampled_from(INJECTIONS) | st.lists(
    st.sampled_from(INJECTIONS), max_size=3
).map("".join)  # fmt: skip
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    root = tmp_path_factory.mktemp("fuzzed") / "project"
    root.mkdir()
    write(root, FILES)
    write(root.parent, {"outside.py": "apple = 'outside'\n"})
    async with serving(codebase_of(root, FakeEmbedder())) as client:
        await settled(client)
        yield client


async def hits(client, **arguments):
    """The hits of a search; nothing if it is refused."""
    result = await client.call_tool("search_index", {**arguments, "verbose": True})
    if result.is_error:
        assert REFUSALS.match(result.content[0].text), result.content
        return []
    found = result.structured_content["results"]
    assert {hit["file_path"] for hit in found} <= FILES.keys()
    return found


def is_within(path, key):
    """Whether `key` is what `path` names, or what it matches in one of its readings."""
    for meant in keys_meant(path, "/nowhere"):
        if meant == "" or f"{key}/".startswith(f"{meant}/"):
            return True
    for literal in ("", "[]", "{}", "[]{}"):
        with contextlib.suppress(QueryError):
            if re.search(regex_of(path, literal), key):
                return True
    return False


@settings(max_examples=EXAMPLES)
@given(query=texts, path=texts, language=st.none() | texts | st.sampled_from(["py", "C++", "md"]))
@example(query="apple", path="') OR (1=1", language=None)
@example(query="0", path="\\", language="C++")
@example(query="apple", path="", language="') OR ('1'='1")
async def test_any_texts_are_answered_within_their_limits_or_refused(client, query, path, language):
    arguments = {"query": query, "path": path}
    if language is not None:
        arguments["language"] = language
    for hit in await hits(client, **arguments):
        if path.strip():
            assert is_within(path, hit["file_path"])
        if language and language.strip():
            assert hit["language"] in languages_meant_by(language)


@settings(max_examples=EXAMPLES)
@given(
    arguments=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ["query", "top_k", "path", "language", "max_tokens", "more"], anything
        ),
    )
)
async def test_any_values_are_answered_or_refused(client, arguments):
    await hits(client, **arguments)


async def test_the_index_is_as_it_was(client):
    """After all of the above."""
    status = await settled(client)
    assert status["indexed_file_count"] == len(FILES)
    assert (status["error_message"], status["status"]) == (None, "WATCHING")

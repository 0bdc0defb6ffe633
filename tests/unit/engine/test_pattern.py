"""Which queries are regular expressions, and which words they have."""

import pytest

from vector_index_mcp.engine.ranking.pattern import Pattern, pattern_of
from vector_index_mcp.engine.ranking.query import Query


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"class\s+Foo|def bar", "class Foo def bar"),
        (r"is_.*_venv", "is_ _venv"),
        (r"def\s+handle_\w+\(", "def handle_ ("),
        (r"self\._client", "self._client"),
        (r"^import .*json", "import json"),
        (r"\bopen\b", "open"),
        (r"(?i)(get|set)_user", "get set _user"),
        (r"[A-Z_]+_TIMEOUT", "_TIMEOUT"),
        (r"(?P<name>\w+)=\[[^\]]*\]", "=[ ]"),
        (r"a{2,3}\d+", "a"),
        ("TODO|FIXME", "TODO FIXME"),
        ("[Tt]imeout", "imeout"),
        ("key[0-9]", "key"),
        ("x{3,}y", "x y"),
        (r"v\d", "v"),
        (r"headers?\b", "headers"),
        ("raise .*Error", "raise Error"),
        ('"[^"]*%d[^"]*"', '" %d "'),
        ("get(_all)?", "get _all"),
        ("Retry-After|X-Real-IP", "Retry-After X-Real-IP"),
        ("(Retry-After|X-Real-IP)", "Retry-After X-Real-IP"),
        ("std::move|std::forward", "std::move std::forward"),
        ("raise ValueError|raise TypeError", "raise ValueError raise TypeError"),
    ],
)
def test_a_regular_expression_is_recognised(text, plain):
    found = pattern_of(text)
    assert found is not None
    assert found.regex == text
    assert found.plain == plain


@pytest.mark.parametrize(
    "text",
    [
        "how are changed files noticed",
        "what does .* do?",
        r"where is `re.compile(r'\s+')` used",
        "src/**/*.py",
        "*.*",
        "test_*.*",
        r"src\server\d.py",
        r"C:\project\.git\config",
        r"App\Models\User",
        "string | number",
        "returns int|None",
        "pages/[id].tsx",
        "[Id]",
        "obj.get(key)?.name",
        "nums[i-1]",
        "malloc(strlen(s)+1)",
        "File::open(path)?",
        "isOpen(x)?1:0",
        "items[^1]",
        "footnote [^1]",
        "file{1,3}.txt",
        "x_{1,2}",
        "is it close(fd)?",
        "find .eslintrc files",
        "${1}",
        "a||b",
        "| name | age |",
        "Vec<Option<T>>",
        "int *p",
        "x[0]",
        "^1.2.3",
        "auth?",
        "is it cookies?",
        "name?: string",
        "$HOME/.config",
        "main(argc, argv)",
        "TypeError: x is not a function (reading 'y')",
        r"re.compile(" + r"\s+\w+ " * 9 + ")",  # a sample of code
        "\\w+\n\\s+",
        r"\w+" * 100,
    ],
)
def test_anything_else_is_text(text):
    assert pattern_of(text) is None


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("return None$", "return None"),
        ("user$", "user"),
        ('"$', '"'),
        ("https?://[a-z.]+", "https ://"),
        ("http://[^ ]+", "http://"),
        ("utf-?8", "utf- 8"),
        ("colou?r", "colou r"),
        ("cookies?", "cookies"),
        ("if not .*:$", "if not :"),
        ("assert .* is None", "assert is None"),
        ("[x_]{3}", ""),
        ("^#include", "#include"),
        ("x[i]*y", "x y"),
        (r"\bopen", "open"),
    ],
)
def test_what_may_be_one_is_told_from_what_can_be_nothing_else(text, plain):
    found = pattern_of(text)
    assert found is not None
    assert (found.regex, found.plain, found.is_sure) == (text, plain, False)
    assert Query(text).as_answered(is_pattern=True).pattern == found
    as_text = Query(text).as_answered(is_pattern=False)
    assert (as_text.pattern, as_text.plain) == (None, text)


def test_a_query_that_can_be_nothing_else_stays_one_if_it_matches_nothing():
    query = Query(r"def\s+\w+")
    assert query.as_answered(is_pattern=False) is query


def test_what_is_said_to_be_one_is_one_and_matches_nothing_else():
    query = Query("a.b", is_regex=True)
    assert query.as_answered(is_pattern=False) is query
    assert query.pattern.matching(["axb", "A.B", "ab"]) == [0]
    assert query.pattern.matching(["A.B"]) == []
    assert Query("bb(3", is_regex=True).pattern.matching(["bb(3"]) == []


def test_its_words_are_searched_and_not_its_signs():
    query = Query(r"def\s+handle_\w+\(")
    assert query.identifiers == ["handle_"]
    assert query.words == ["def", "handle"]
    assert not query.is_question


@pytest.mark.parametrize(
    ("regex", "lines"),
    [
        (r"b\w+\(", [2, 4]),
        (r"B\w+\(", [2, 4]),
        (r"^\s+c", [3]),
        (r"zz\w+", []),
        (r"(?=b)b\w+", []),
    ],
)
def test_the_lines_that_match_are_found(regex, lines):
    found = pattern_of(regex)
    assert found is not None
    assert found.matching(["a = 1", "b = 2", "bb(3)", "  c", "bc()"]) == lines


def test_a_line_ends_before_its_carriage_return():
    found = pattern_of(r"\w+\(\)$")
    assert found.matching(["a()\r", "b() \r", "c()"]) == [0, 2]


@pytest.mark.parametrize("regex", ["bb(3)", "bb(3"])
def test_what_matches_nothing_may_be_the_text_itself(regex):
    assert Pattern(regex, "bb 3").matching(["bb3x", "a = bb(3)"][1:]) == [0]

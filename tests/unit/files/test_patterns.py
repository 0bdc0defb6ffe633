"""Single lines; `test_ignore_like_git` compares any number of them with git itself."""

import subprocess
import sys
from collections.abc import Callable

import pytest
from drawn import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from vector_index_mcp.files import patterns
from vector_index_mcp.files.patterns import Patterns, patterns_of
from vector_index_mcp.files.wildmatch import compiled


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("a", "x/a", True),
        ("a", "ab", None),
        ("*.log", "x/y.log", True),
        ("*.log\n!keep.log", "keep.log", False),
        ("!keep.log\n*.log", "keep.log", True),
        ("/a", "x/a", None),
        ("x/a", "x/a", True),
        ("**/a/b", "x/y/a/b", True),
        ("x/**", "x/y/z", True),
        ("x/**", "x", None),
        ("x/**/z", "x/z", True),
        ("\\#a", "#a", True),
        ("#a", "#a", None),
        ("a\\ ", "a ", True),
        ("a ", "a", True),
        ("*.min.js", "a.min.js", True),
        ("*.min.js", "a.js", None),
        ("é*", "éa", True),
        ("", "a", None),
    ],
)
def test_the_last_line_that_matches_decides(text: str, path: str, expected: bool | None) -> None:
    assert Patterns(text).verdict(path, False) is expected


def test_a_slash_at_the_end_means_folders_only() -> None:
    assert Patterns("build/").verdict("x/build", True) is True
    assert Patterns("build/").verdict("x/build", False) is None


@pytest.mark.parametrize("text", ["", "\n# only a comment\n", "!", "/", "a[", "a\\"])
def test_what_matches_nothing_is_nothing(text: str) -> None:
    assert Patterns(text).verdict("a", False) is None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a*a*a*a*a*a*a*ab", "a" * 255),
        ("*?*?*?*?*?*?*?*?b", "a" * 255),
        ("[a-z]*[a-z]*[a-z]*[a-z]*[a-z]*[0-9]", "a" * 255),
        ("**/a/**/a/**/a/**/a/**/a/**/a/**/b", "a/" * 500 + "c"),
        ("**/*a*/**/*a*/**/*a*/**/*a*/**/*b", "aaa/" * 300 + "c"),
    ],
)
def test_no_line_keeps_us_busy(line: str, path: str) -> None:
    # In a process of its own, which can be ended: minutes pass where every way is tried.
    code = (
        "from vector_index_mcp.files.patterns import Patterns\n"
        f"print(Patterns({line!r}).verdict({path!r}, False))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout == "None\n"


MANY = 90_000
LONG = 1_000_000  # as large as an ignore file may be


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line_of", "path", "expected"),
    [
        (lambda n: f"name{n}.txt", "x/name89999.txt", True),
        (lambda n: f"/x{n}/name.txt", "x89999/name.txt", True),
        (lambda n: f"!x{n}/", "x89999", None),
        (lambda n: f"*.x{n}", "a.x89999", True),
        (lambda n: f"*-x{n}.txt", "a-x89999.txt", True),
        (lambda n: f"x{n}*", "x89999-a", True),
        (lambda n: f"*x{n}*y*", "a-x89999-y", True),
        (lambda n: f"**/x{n}/*.y", "a/x89999/b.y", True),
        (lambda n: f"[ab]x{n}?", "ax89999c", True),
        (lambda n: "*[ab]c?", "xacd", True),
    ],
)
def test_of_many_lines_few_are_tried(
    line_of: Callable[[int], str],
    path: str,
    expected: bool | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[str] = []
    real = patterns.compiled
    monkeypatch.setattr(
        patterns, "compiled", lambda text, **k: compiled.append(text) or real(text, **k)
    )
    rules = Patterns("\n".join(map(line_of, range(MANY))))

    assert rules.verdict(path, False) is expected
    assert rules.verdict("something/else.py", False) is None
    assert len(compiled) <= 20


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "line",
    [
        "[" + "a-z" * (LONG // 3),
        "[" + "[:" * (LONG // 2),
        "[" + "[:alpha:]" * (LONG // 9),
        "[!a]" * (LONG // 4),
        "*a" * (LONG // 2),
        "**/" * (LONG // 3) + "b",
        "**/*a*/" * (LONG // 7),
        "a/**/**/" * (LONG // 8),
        "*" * LONG + "b",
        "?" * LONG,
        "\\a" * (LONG // 2),
        "b" + " " * LONG + "c",
        "a/" * (LONG // 2),
    ],
    ids=lambda line: line[:8],
)
def test_no_line_is_too_long(line: str) -> None:
    rules = Patterns(line)

    assert rules.verdict("a/" * 100 + "a" * 250, False) is None


@pytest.mark.slow
def test_of_lines_that_are_alike_the_last_one_counts() -> None:
    lines = ["*a?", "!*a?", "*a?/"] * 10_000
    rules = Patterns("\n".join(lines))

    assert rules.verdict("xab", False) is False
    assert rules.verdict("xab", True) is True


def test_what_is_compiled_is_given_up_for_others_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patterns, "MOST_COMPILED_CHARS", 2_000)
    kept = [patterns_of(f"name{number}\n*.x{number}") for number in range(20)]

    assert sum(rules._table is not None for rules in kept) <= 4
    for number, rules in enumerate(kept):
        assert rules.verdict(f"name{number}", False) is True
        assert rules.verdict("other", False) is None


LINES = st.lists(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["", "", "!"]),
        st.sampled_from(
            "abc abcd a/abc /abc /a/abc *bc *abc *abca* abc* ab* *.abc *.c.abc *b*c *abc*bc "
            "a**/abc **/abc a/**/abc a/** **/abc* abc/** */abc a/*bc ?bc [ab]bc [!b]bc* [ab]*bcd "
            "**/[a]bc a?bc* **/abc/* \\abc* abc[".split()
        ),
        st.sampled_from(["", "", "/"]),
    ),
    max_size=6,
)
PATHS = st.sampled_from(
    "abc abcd a/abc a/b/abc x.abc x.c.abc abcabc bc abc/a a/abc/abcd abbc bbc a/xabc "
    "xabcxbc".split()
)


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(
    LINES,
    st.lists(PATHS, min_size=1, max_size=14, unique=True),
    st.booleans(),
    st.sampled_from([0, 32]),
)
def test_what_is_looked_up_is_what_would_match(
    lines: list[str], paths: set[str], is_folder: bool, few: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "_FEW_GLOBS", few)
        rules = Patterns("\n".join(lines))
        for path in paths:
            assert rules.verdict(path, is_folder) is one_by_one(lines, path, is_folder), path


def one_by_one(lines: list[str], path: str, is_folder: bool) -> bool | None:
    for line in reversed(lines):
        rule = patterns._rule(line)
        if rule is not None and (is_folder or not rule.folders_only):
            text = path.rpartition("/")[2] if rule.on_name else path
            if compiled(rule.pattern, is_name=rule.on_name).fullmatch(text):
                return rule.ignores
    return None

"""Single lines; `test_ignore_like_git` compares any number of them with git itself."""

import subprocess
import sys

import pytest

from vector_index_mcp.files.patterns import Patterns


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

"""Globs mean what they mean in a .gitignore, with a shell's braces."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.errors import QueryError, quoted
from vector_index_mcp.files.glob import folder_of, keys_meant, regex_of

PATHS = [
    "main.py",
    "setup.cfg",
    "src/main.py",
    "src/app/main.py",
    "src/app/view.ts",
    "src/app/view.tsx",
    "src/view.ts",
    "tests/test_main.py",
    "src/tests/test_view.py",
    "lib/a.c",
    "lib/b.c",
    "libs/a.c",
    "docs/index.md",
    "app/[slug]/page.tsx",
    "!odd/#name.txt",
    "sp ace/a+b (c).txt",
    "ключ/файл.py",
    "a{b}.txt",
]
globs = st.text("ab*?[]!-^{},/\\.#$()+|&~ \n", max_size=15)


def matching(glob):
    regex = re.compile(regex_of(glob))
    return [path for path in PATHS if regex.search(path)]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("main.py", ["main.py", "src/main.py", "src/app/main.py"]),
        ("/main.py", ["main.py"]),
        ("*.cfg", ["setup.cfg"]),
        ("*.ts", ["src/app/view.ts", "src/view.ts"]),
        ("src/*.py", ["src/main.py"]),
        ("src/**/*.py", ["src/main.py", "src/app/main.py", "src/tests/test_view.py"]),
        ("**/main.py", ["main.py", "src/main.py", "src/app/main.py"]),
        ("src/app/**", ["src/app/main.py", "src/app/view.ts", "src/app/view.tsx"]),
        ("src/app", ["src/app/main.py", "src/app/view.ts", "src/app/view.tsx"]),
        ("tests/", ["tests/test_main.py", "src/tests/test_view.py"]),
        ("/tests/", ["tests/test_main.py"]),
        ("lib", ["lib/a.c", "lib/b.c"]),
        ("lib/?.c", ["lib/a.c", "lib/b.c"]),
        ("lib/[ab].c", ["lib/a.c", "lib/b.c"]),
        ("lib/[!a].c", ["lib/b.c"]),
        ("lib/[b-z].c", ["lib/b.c"]),
        ("app/", ["src/app/main.py", "src/app/view.ts", "src/app/view.tsx"]
         + ["app/[slug]/page.tsx"]),
        ("page.tsx", ["app/[slug]/page.tsx"]),
        ("!odd/", ["!odd/#name.txt"]),
        ("#name.txt", ["!odd/#name.txt"]),
        ("sp ace/", ["sp ace/a+b (c).txt"]),
        ("a+b (c).txt", ["sp ace/a+b (c).txt"]),
        ("ключ/*.py", ["ключ/файл.py"]),
        ("nowhere/", []),
    ],
)  # fmt: skip
def test_a_glob_matches_as_in_a_gitignore(glob, expected):
    assert matching(glob) == expected


@pytest.mark.parametrize("glob", ["*", "**", "**/*", "/**"])
def test_a_glob_may_match_everything(glob):
    assert matching(glob) == PATHS


@pytest.mark.parametrize(
    ("glob", "same"),
    [
        ("./src/main.py", "src/main.py"),
        ("src\\app\\*.py", "src/app/*.py"),
        (".\\src\\*.py", "src/*.py"),
        ("  *.py \n", "*.py"),
    ],
)
def test_paths_may_be_written_as_on_the_command_line(glob, same):
    assert matching(glob) == matching(same) != []


@pytest.mark.parametrize(
    ("glob", "same"),
    [
        ("src/app/*.{ts,tsx}", ["src/app/*.ts", "src/app/*.tsx"]),
        ("{lib,docs}/", ["lib/", "docs/"]),
        ("src/{app/view,main}.{ts,py}", ["src/app/view.ts", "src/main.py"]),
        ("{src/{app,tests}/*.py,*.c}", ["src/app/*.py", "src/tests/*.py", "*.c"]),
        ("src/{,app/}main.py", ["src/main.py", "src/app/main.py"]),
        ("{setup.cfg}", ["setup.cfg"]),
        ("{main.py", []),
        ("setup.cfg}", []),
    ],
)
def test_braces_stand_for_each_of_their_alternatives(glob, same):
    assert set(matching(glob)) == {path for one in same for path in matching(one)}
    assert bool(matching(glob)) == bool(same)


@pytest.mark.parametrize(
    "glob",
    ["", " ", "/", "./", ".", "..", "../src/*.py", "src/./a", "{}", "{,}", "{a,}", "\\"]
    + ["[", "[a", "[z-a].c", "[[:alpha:]].c", "[a[b].c", "[a&&b].c", "[a--b].c", "[a~~b].c"]
    + ["{a,b}" * 7, "{a,b}" * 40, f"{{{','.join(map(str, range(65)))}}}"],
)
def test_a_glob_that_can_match_nothing_is_refused_with_examples(glob):
    with pytest.raises(QueryError, match='not a glob that matches files.* examples: "src/') as told:
        regex_of(glob)
    assert repr(glob) in str(told.value)


@pytest.mark.parametrize("glob", ["*" * 101, "a?" * 101, "[a]" * 101, "[z-a]" + "(" * 5_000])
def test_a_glob_that_would_keep_the_store_busy_is_refused_in_few_words(glob):
    with pytest.raises(QueryError) as told:
        regex_of(glob)
    assert quoted(glob) in str(told.value)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize(
    ("glob", "literal", "expected"),
    [
        ("app/[slug]/*.tsx", "[]", ["app/[slug]/page.tsx"]),
        ("app/[slug]/*.{ts,tsx}", "[]", ["app/[slug]/page.tsx"]),
        ("app/[slug]/*.tsx", "", []),
        ("app/\\[slug\\]/*.tsx", "[]", ["app/[slug]/page.tsx"]),
        ("app/[[]slug[]]/*", "", ["app/[slug]/page.tsx"]),
        ("a{b}.*", "{}", ["a{b}.txt"]),
        ("a[{]b}.*", "", ["a{b}.txt"]),
        ("*{b}*", "[]{}", ["a{b}.txt"]),
    ],
)
def test_brackets_and_braces_may_stand_for_themselves(glob, literal, expected):
    regex = re.compile(regex_of(glob, literal))
    assert [path for path in PATHS if regex.search(path)] == expected


def test_letters_are_matched_however_they_are_put_together():
    composed, taken_apart = (
        unicodedata.normalize(form, "d\u00e9j\u00e0") for form in ("NFC", "NFD")
    )
    for glob in (f"{composed}/*.py", f"{taken_apart}/*.py"):
        regex = re.compile(regex_of(glob))
        assert regex.search(f"{composed}/a.py")
        assert regex.search(f"{taken_apart}/a.py")


@given(globs, st.lists(st.text("ab[]{}! .", min_size=1, max_size=3), min_size=1).map("/".join))
@example("a/b", "a/b/a")
@example("/a/", "a/b")
@example("a/[b]/*", "a/b/a")
@example("./a/b/*", "a/b/b")
def test_all_that_a_glob_matches_lies_in_its_folder(glob, key):
    for literal in ("", "[]", "{}", "[]{}"):
        try:
            regex = regex_of(glob, literal)
        except QueryError:
            continue
        if re.search(regex, key) and (folder := folder_of(glob)):
            assert key.startswith(f"{folder}/")


@pytest.mark.parametrize(
    ("glob", "folder"),
    [
        ("src/app/**/*.ts", "src/app"),
        ("./src/*.py", "src"),
        ("/src/app", "src"),
        ("src/app/", "src"),
        ("src/{a,b}/c.py", "src"),
        ("*.py", ""),
        ("main.py", ""),
        ("tests/", ""),
        ("/main.py", ""),
        ("**/a/b", ""),
        ("ключ/а/*.py", ""),
    ],
)
def test_a_glob_may_begin_with_a_folder(glob, folder):
    assert folder_of(glob) == folder


@given(st.text("ab./\\ []\0\udcff", max_size=12))
@example("../../etc/passwd")
@example("a/../../b")
@example("//")
def test_no_path_leads_out_of_the_project(path):
    for key in keys_meant(path, "/home/ada/shop"):
        assert not key.startswith("/")
        assert ".." not in key.split("/")


@pytest.mark.filterwarnings("error")
@given(globs)
@example("\\)\\")
@example("[]-]")
@example("[!]a]")
@example("a/**/**/b")
@example("**a**/b")
@example("//")
def test_every_glob_is_a_regular_expression_or_refused(glob):
    try:
        regex = regex_of(glob)
    except QueryError:
        return
    assert "(?P" not in regex
    re.compile(regex).search("a/b.c")


@given(st.lists(st.from_regex(r"[a-zа-я0-9_+.() -]*[a-z_]", fullmatch=True), min_size=1))
def test_a_path_without_wildcards_matches_itself_and_what_lies_in_it(names):
    path = "/".join(names)
    regex = re.compile(regex_of(f"/{path}"))
    assert regex.search(path)
    assert regex.search(f"{path}/a.py")
    assert not regex.search(f"{path}x")
    assert not regex.search(f"§/{path}")

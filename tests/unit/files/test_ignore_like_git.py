"""Whole trees against `git ls-files`: every kind of ignore file at once, lines made of real paths.

`test_ignore` draws lines at random, most of which match nothing. Here a line is a path of the tree
in disguise, so that lines meet: one hides, the next takes back, a deeper file decides otherwise.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from drawn import examples
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from test_ignore import build, by_git, by_us, empty, git, user_of

from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems allow fewer names")

EXCLUDE = ".git/info/exclude"
GLOBAL_EXCLUDES = "../excludes"
# None of the built-in patterns matches one of these.
NAMES = (
    *("a", "b", "ab", "b.x", ".x", "A", "-a", "0", "a-b", "a b", "a ", " b", "#a", "!b"),
    *("[a]", "a*", "b?", "a\\b", "a'b", '"b"', "a$", "(a)", "{a,b}", "é-é", "日本", "😀😀"),
)


@pytest.fixture(scope="module", params=[False, True], ids=["", "ignorecase"])
def repository(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """An empty repository of a user with an excludes file, for examples one after another."""
    home = tmp_path_factory.mktemp("home")
    root = home / "repository"
    (root / EXCLUDE).parent.mkdir(parents=True)
    git(root, "init", "-q", "--template=")
    git(root, "config", "core.ignorecase", "true" if request.param else "false")
    build(home, {"gitconfig": f"[core]\nexcludesFile = {home / 'excludes'}\n"})
    with user_of(home):
        yield root


SPECIAL = "\\*?["
ENDS = ("", "", "", "", "/", "/*", "/**", "/**/", "//", " ", "   ", "\r", "\t", " \r", "\u3000")
ODD_LINES = ("", " ", "#", "# a", "!", "!!", "/", "//", "[", "[a", "a\\", "*", "!*", "*/", "!*/")


def literal(name: str) -> str:
    """The pattern of `name` alone."""
    text = "".join(f"\\{char}" if char in SPECIAL else char for char in name)
    text = f"\\{text}" if text[0] in "#!" else text
    return f"{text[:-1]}\\ " if text.endswith(" ") else text


@st.composite
def disguises(draw: st.DrawFn, name: str) -> str:
    """A pattern that matches `name` and perhaps others."""
    at = draw(st.integers(0, len(name) - 1))
    before, char, behind = name[:at], name[at], name[at + 1 :]
    escaped = "".join(f"\\{char}" for char in name)
    choices = [literal(name), literal(name), literal(name.swapcase()), escaped, "*"]
    choices += [f"{literal(before) if before else ''}*", f"*{literal(behind) if behind else ''}"]
    head, tail = (literal(text) if text else "" for text in (before, behind))
    head = head.replace("\\ ", " ")
    inside = [f"\\{char}z", f"z\\{char}", f"!z\\{char}", "!z", "^bz", "A-Za-z", f"\\{char}-z"]
    inside += [f"z-\\{char}", "[:alpha:]", "![:digit:]", f"]\\{char}"]
    choices += [f"{head}?{tail}", *(f"{head}[{members}]{tail}" for members in inside)]
    return draw(st.sampled_from(choices))


@st.composite
def lines_for(draw: st.DrawFn, paths: list[str]) -> str:
    """A line of an ignore file that names one of `paths`, more or less."""
    if not paths or draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from(ODD_LINES))
    names = draw(st.sampled_from(paths)).split("/")
    first = draw(st.integers(0, len(names) - 1))
    last = draw(st.integers(first, len(names) - 1))
    segments = [draw(disguises(name)) for name in names[first : last + 1]]
    if len(segments) > 2 and draw(st.booleans()):
        segments[1:-1] = ["**"]
    start = draw(st.sampled_from(["", "", "/", "**/", "/**/"]))
    end = draw(st.sampled_from(ENDS))
    return draw(st.sampled_from(["", "", "!"])) + start + "/".join(segments) + end


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Files and their texts: empty ones, and ignore files of every kind."""
    path = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)
    drawn = draw(st.sets(path, min_size=2, max_size=14))
    paths = sorted(p for p in drawn if not any(other.startswith(p + "/") for other in drawn))
    files = dict.fromkeys(paths, "")
    folders = sorted({"", *("/".join(p.split("/")[:n]) for p in paths for n in range(1, 4))})
    folders = [folder for folder in folders if folder not in files]
    where = draw(st.lists(st.sampled_from(folders), max_size=3, unique=True))
    for name in (
        EXCLUDE,
        GLOBAL_EXCLUDES,
        *(f"{folder}/.gitignore".lstrip("/") for folder in where),
    ):
        prefix = name.removesuffix(".gitignore") if name.endswith(".gitignore") else ""
        below = [p.removeprefix(prefix) for p in paths if p.startswith(prefix)]
        lines = draw(st.lists(lines_for(below), max_size=4))
        files[name] = "\n".join(lines) + draw(st.sampled_from(["", "\n"]))
    return files


def write(repository: Path, files: Mapping[str, str]) -> None:
    """Make `files` and no others."""
    empty(repository)
    build(repository, {EXCLUDE: "", GLOBAL_EXCLUDES: "", **files})


def sources(files: Mapping[str, str]) -> set[str]:
    return set(files) - {EXCLUDE, GLOBAL_EXCLUDES}


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(trees())
@example({"a/b": "", "b": "", GLOBAL_EXCLUDES: "b", EXCLUDE: "!b", "a/.gitignore": "b"})
@example({"a/b/a": "", ".gitignore": "!a/b", EXCLUDE: "a/*", GLOBAL_EXCLUDES: "*\n!*/"})
@example({"a ": "", "#a": "", "!b": "", ".gitignore": "a\\ \n\\#a\n\\!b"})
def test_a_walk_of_a_whole_tree_finds_what_git_lists(
    repository: Path, files: dict[str, str]
) -> None:
    write(repository, files)
    assert by_us(repository) == by_git(repository)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(trees())
@example({"a/b": "", ".gitignore": "a/\n!a/b"})
def test_a_file_asked_for_alone_is_ignored_if_git_does_not_list_it(
    repository: Path, files: dict[str, str]
) -> None:
    write(repository, files)
    rules = Ignore(Folder(repository))
    shown = {path for path in sources(files) if not rules.is_ignored(path, is_folder=False)}
    assert shown == by_git(repository)


@pytest.mark.long
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(trees(), st.data())
def test_a_project_in_a_folder_of_a_repository_finds_what_git_lists_below_it(
    repository: Path, files: dict[str, str], data: st.DataObject
) -> None:
    inner = sorted({p.rpartition("/")[0] for p in sources(files)} - {""})
    assume(inner)
    folder = data.draw(st.sampled_from(inner))
    write(repository, files)
    assume(not Ignore(Folder(repository)).is_ignored(folder, is_folder=True))  # a project never is
    prefix = f"{folder}/"
    below = {p.removeprefix(prefix) for p in by_git(repository) if p.startswith(prefix)}
    assert by_us(repository / folder) == below


# Any line at all, over a tree whose names are what such lines may name.
PIECES = (
    *"aabbxyzc*?*?*?[]!^-\\//. #\t\ré",
    *(
        "**",
        "**/",
        "***",
        "[a-z]",
        "[!b]",
        "[[:alpha:]]",
        "[[:upper:]]",
        "[A-C]",
        "[!A]",
        "A",
        "\\A",
        "[[:foo:]]",
        "[z-a]",
        "[]",
        "[a/]",
        "\\ ",
    ),
)
TREE = (
    *(
        "a",
        "b",
        "ab",
        "a-b",
        "]",
        "[a]",
        "z",
        "aXb",
        "é",
        "a b",
        "a ",
        "a\t",
        "a\n",
        "\\",
        "-",
    ),
    *(
        "a\\b",
        "^",
        "!a",
        "#a",
        "0",
        "A",
        "a.b",
        ".q",
        "e/a",
        "x/y/a",
        "x/a",
        "x/b",
        "c/a/b",
        "c/c/a",
    ),
    *("aa/b", "x\ny/a", "a!b", "a*b", "日", "éa", "c/d/e/a"),
)


@pytest.mark.slow
@settings(max_examples=examples(400), deadline=None, derandomize=True)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=6).map("".join), min_size=1, max_size=3))
@example(["c/**/"])
@example(["x[!b]a", "*[!a]b"])
@example(["[z-ab]", "[!z-a]", "[a-Z]"])
@example(["[\\a]", "[a\\]b]", "[a\\-c]"])
@example(["[[:alpha:]]", "*.[[:digit:]]"])
@example(["a\t", "a\\  ", "a\\\\ "])
@example(["b**/*", "***/x"])
@example(["a\\/b", "a\0b"])
@example(["c**/[!b]"])
@example(["A", "!B", "X/Y"])
@example(["[[:upper:]]", "A[A-Z]B", "[A]b", "\\Z", "E/*"])
def test_any_line_means_what_it_means_to_git(repository: Path, lines: list[str]) -> None:
    write(repository, {**dict.fromkeys(TREE, ""), ".gitignore": "\n".join(lines)})
    assert by_us(repository) == by_git(repository)

"""Which paths are not looked at: git is the reference, asked with `git ls-files`."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from vector_index_mcp.files.folder import Folder, Reading, Selection
from vector_index_mcp.files.ignore import Ignore, concerns_rules
from vector_index_mcp.files.repository import forget_settings
from vector_index_mcp.files.scan import walk

# None of the built-in patterns matches one of these.
NAMES = ["a", "b", "ab", "a.x", "b.x", "A", "a b", "#a", "!b", "[a]", "a*", "a-b", "a\\b", "a]"]

NOBODY = 65_534


@contextmanager
def user_of(home: Path) -> Iterator[None]:
    """The time in which git and we obey the settings below `home` and no others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CONFIG_HOME", str(home / "xdg"))
        patch.setenv("GIT_CONFIG_GLOBAL", str(home / "gitconfig"))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        forget_settings()
        yield
    forget_settings()


@pytest.fixture(scope="module", autouse=True)
def _no_settings_of_this_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with user_of(tmp_path_factory.mktemp("home")):
        yield


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty repository, for examples one after another."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "-q")
    return folder


def git(folder: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True).stdout


def by_git(folder: Path) -> set[str]:
    listing = git(folder, "ls-files", "-z", "-co", "--exclude-standard")
    return {os.fsdecode(name) for name in listing.split(b"\0") if name}


def by_us(root: Path, selection: Selection | None = None) -> set[str]:
    folder = Folder(root, selection=selection or Selection())
    return set(walk(folder, Ignore(folder)).files)


def test_pdf_and_word_belong_to_no_project(tmp_path):
    build(tmp_path, {"a.pdf": "x", "b.docx": "x", "c.png": "x", "d.md": "x"})
    assert by_us(tmp_path) == {"d.md"}
    folder = Folder(tmp_path, reading=Reading(converts=True))
    assert set(walk(folder, Ignore(folder)).files) == {"a.pdf", "b.docx", "d.md"}


def build(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))


def empty(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == ".git":
            continue
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


names = st.sampled_from(NAMES)
# Odder lines are in test_ignore_like_git.
segments = st.one_of(
    names,
    st.sampled_from(
        ["*", "**", "?", "a*", "*a", "*.x", "a?", "?b", "**b", "a**b", "*b*"]
        + [
            "[ab]",
            "[!a]",
            "[^a]",
            "[a-z]",
            "[]a]",
            "[!]a]",
            "[a-]",
            "[z-a]",
            "[*]",
            "a[*]",
            "[!-a]",
        ]
        + [
            "\\a",
            "\\*",
            "a\\*",
            "\\#a",
            "\\!b",
            "\\[a\\]",
            "a\\ b",
            "a\\\\b",
            " a",
            "a ",
            ".",
            "..",
            "",
        ]
    ),
    st.text("ab*? ", min_size=1, max_size=3).filter(lambda text: "**" not in text),
)
patterns = st.one_of(
    st.builds(
        lambda negation, start, parts, end: negation + start + "/".join(parts) + end,
        st.sampled_from(["", "", "", "!", "!!"]),
        st.sampled_from(["", "", "/", "**/", "/**/"]),
        st.lists(segments, min_size=1, max_size=3),
        st.sampled_from(["", "", "", "/", "/**", "/*", "//", " ", "\\ ", "\r"]),
    ).filter(lambda line: line.strip("! /\r")),  # `!/` is nothing to git and all to pathspec
    st.sampled_from(["", " ", "/", "//", "!", "#", "# a", "[a", "[", "a\\", "\\", "!\\", "[]"]),
)
ignore_files = st.builds("\n".join, st.lists(patterns, max_size=5))
folders = st.lists(names, max_size=3).map("/".join)
trees = st.sets(st.lists(names, min_size=1, max_size=4).map("/".join), min_size=1, max_size=25)


def without_files_that_are_folders(paths: set[str]) -> set[str]:
    return {p for p in paths if not any(other.startswith(p + "/") for other in paths)}


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(trees, st.dictionaries(folders, ignore_files, max_size=3), ignore_files)
@example({"a/b/ab", "b/a"}, {"": "a/*\n!a/b", "a": "b/*\n!ab"}, "b")
@example({"a/b", "b/a/b"}, {"": "a/", "b": "!a/"}, "")
@example({"a/b"}, {"": "a/\n!a/b"}, "")
@example({"a/b"}, {"": "a/*\n!a/"}, "")
def test_the_files_of_a_walk_are_those_git_lists(
    repository: Path, paths: set[str], rules: dict[str, str], exclude: str
) -> None:
    empty(repository)
    build(repository, dict.fromkeys(without_files_that_are_folders(paths), ""))
    build(repository, {".git/info/exclude": exclude})
    for folder, text in rules.items():
        if (repository / folder).is_dir():
            build(repository / folder, {".gitignore": text})
    assert by_us(repository) == by_git(repository)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    root = tmp_path / "fresh"
    root.mkdir()
    git(root, "init", "-q")
    return root


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a\r\nb.x\r\n", id="lines of Windows"),
        pytest.param("\ufeffa\nb.x", id="byte order mark"),
        pytest.param("a\fb\nb.x", id="form feed is no end of a line"),
        pytest.param("a\u2028b\nb.x", id="line separator is no end of a line"),
        pytest.param("é\nü/*", id="not ASCII"),
        pytest.param("\udcff*\nb.x", id="not UTF-8"),
        pytest.param("", id="empty"),
    ],
)
def test_odd_texts_of_an_ignore_file_mean_what_git_says(fresh: Path, text: str) -> None:
    build(fresh, dict.fromkeys(["a", "b", "b.x", "é", "ü/a"], ""))
    (fresh / os.fsdecode(b"\xff1")).touch()
    build(fresh, {".gitignore": text})
    assert by_us(fresh) == by_git(fresh)


@pytest.mark.parametrize("by_setting", [True, False], ids=["core.excludesFile", "XDG"])
def test_the_excludes_file_file_is_weaker_than_those_of_the_project(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_setting: bool
) -> None:
    excludes = tmp_path / ("mine" if by_setting else "config/git/ignore")
    build(tmp_path, {excludes.relative_to(tmp_path).as_posix(): "*.x\n/a/b\n"})
    build(tmp_path, {"gitconfig": f"[core]\nexcludesFile = {excludes}\n" if by_setting else ""})
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    build(fresh, dict.fromkeys(["a/b", "a/a.x", "b/b.x", "b/a/b"], "") | {"b/.gitignore": "!b.x"})
    assert by_us(fresh) == by_git(fresh) == {"b/b.x", "b/a/b", "b/.gitignore"}


def test_a_hook_of_another_repository_lends_none_of_its_settings(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(tmp_path, {"theirs": "*.x\n", "by-command": "*.y\n", "ours": "*.z\n"})
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "config", "core.excludesFile", str(tmp_path / "theirs"))
    git(fresh, "config", "core.excludesFile", str(tmp_path / "ours"))
    build(fresh, dict.fromkeys(["a.x", "a.y", "a.z"], ""))
    variables = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(other / ".git/index"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.excludesFile",
        "GIT_CONFIG_VALUE_0": str(tmp_path / "by-command"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    forget_settings()
    assert by_us(fresh) == {"a.x", "a.y"}


def test_what_git_ignores_stays_ignored_while_git_cannot_answer(
    fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ours").write_text("*.z\n")
    git(fresh, "config", "core.excludesFile", str(tmp_path / "ours"))
    build(fresh, dict.fromkeys(["a.x", "a.z"], ""))
    forget_settings()
    assert by_us(fresh) == {"a.x"}
    forget_settings()
    with monkeypatch.context() as patch:

        def times_out(*arguments: object, **options: object) -> None:
            raise subprocess.TimeoutExpired("git", 5)

        patch.setattr(subprocess, "run", times_out)
        assert by_us(fresh) == {"a.x"}
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))  # git is not there any more
        assert by_us(fresh) == {"a.x"}
    git(fresh, "config", "--unset", "core.excludesFile")
    assert by_us(fresh) == {"a.x", "a.z"}


@pytest.mark.parametrize("case", ["ignorecase", "ignorecase = ", "ignorecase = maybe"])
def test_a_value_of_one_setting_spoils_no_other_one(tmp_path: Path, case: str) -> None:
    build(tmp_path, {"ours": "*.z\n", "root/a.z": "", "root/.gitignore": "B\n", "root/b": ""})
    build(tmp_path, {"gitconfig": f"[core]\n\texcludesFile = {tmp_path}/ours\n\t{case}\n"})
    with user_of(tmp_path):
        found = by_us(tmp_path / "root")
    assert found == {".gitignore"} | (set() if case == "ignorecase" else {"b"})


def test_settings_that_git_cannot_read_are_told(tmp_path: Path) -> None:
    build(tmp_path, {"gitconfig": "[core\n", "root/a": ""})
    with user_of(tmp_path):
        ignore = Ignore(Folder(tmp_path / "root"))
        [(name, why)] = ignore.disobeyed.items()
        assert name == ".git/config"
        assert "bad config line 1" in why
        build(tmp_path, {"gitconfig": "[core]\n"})
        corrected = Ignore(Folder(tmp_path / "root"))
        assert corrected.disobeyed == {}
        assert ignore.is_outdated_by(corrected)
        build(tmp_path, {"gitconfig": "[core\n"})  # while somebody edits them
        assert Ignore(Folder(tmp_path / "root")).disobeyed == {}


@pytest.mark.parametrize("edited", ["gitconfig", "repository/.git/config"])
def test_what_git_ignores_stays_ignored_while_somebody_edits_its_settings(
    tmp_path: Path, edited: str
) -> None:
    (tmp_path / "ours").write_text("*.z\n")
    (tmp_path / "gitconfig").write_text(f"[core]\n\texcludesFile = {tmp_path}/ours\n")
    root = tmp_path / "repository"
    build(root, dict.fromkeys(["a.x", "a.z"], ""))
    with user_of(tmp_path):
        git(root, "init", "-q")
        assert by_us(root) == {"a.x"}
        settings = tmp_path / edited
        whole = settings.read_text()
        settings.write_text(whole + "[us")
        assert by_us(root) == {"a.x"}
        settings.write_text(whole)
        assert by_us(root) == {"a.x"}


@pytest.mark.parametrize(
    "parts",
    [
        {"HEAD": "ref: refs/heads/main\n"},
        {"HEAD": "garbage\n", "objects/x": "", "refs/x": ""},
        {"objects/x": "", "refs/x": ""},
        {"HEAD": "ref: refs/heads/main\n", "objects/x": ""},
    ],
)
def test_a_folder_that_is_no_repository_to_git_switches_off_no_rules(
    fresh: Path, parts: dict[str, str]
) -> None:
    build(fresh, {".gitignore": "private*\n", "sub/private.txt": "", "sub/shown.txt": ""})
    build(fresh / "sub/.git", parts)
    assert by_us(fresh) == {".gitignore", "sub/shown.txt"}
    assert (
        subprocess.run(["git", "check-ignore", "-q", "sub/private.txt"], cwd=fresh).returncode == 0
    )


@pytest.mark.parametrize("name", ["inner/.git/HEAD", "inner/.git/x", "inner/.git"])
def test_the_rules_around_a_project_hold_though_it_has_a_git_folder_that_is_no_repository(
    fresh: Path, name: str
) -> None:
    build(fresh, {".gitignore": "private-*.txt\n", name: "garbage"})
    build(
        fresh, dict.fromkeys(["inner/private-a.txt", "inner/a.txt", "inner/deep/private-b.txt"], "")
    )
    assert by_us(fresh / "inner") == {"a.txt"}
    assert by_us(fresh / "inner/deep") == set()
    places = Ignore(Folder(fresh / "inner")).sources()
    assert {fresh / ".git/HEAD", fresh / ".gitignore"} <= {*places}
    if name != "inner/.git":
        assert fresh / "inner/.git/HEAD" in places  # it may become a repository
        shutil.rmtree(fresh / "inner/.git")
        git(fresh / "inner", "init", "-q")
        assert by_us(fresh / "inner") == {"a.txt", "private-a.txt", "deep/private-b.txt"}


def test_a_worktree_whose_repository_is_not_there_obeys_its_own_rules(tmp_path: Path) -> None:
    build(tmp_path, {".git": "gitdir: /nowhere/.git/worktrees/x\n", ".gitignore": "*.x\n"})
    build(tmp_path, {"a/b": "", "a/b.x": ""})
    assert by_us(tmp_path / "a") == {"b"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files to others")
@pytest.mark.parametrize("theirs", [".", ".git"])
def test_the_repository_of_a_stranger_decides_nothing_below_it(fresh: Path, theirs: str) -> None:
    build(fresh, {".gitignore": "*.txt\n", "shared/.gitignore": "*.x\n"})
    build(fresh, dict.fromkeys(["shared/mine/a.x", "shared/mine/a.txt", "shared/mine/b"], ""))
    git(fresh / "shared", "init", "-q")
    assert by_us(fresh) == {".gitignore", "shared/.gitignore", "shared/mine/a.txt", "shared/mine/b"}
    assert by_us(fresh / "shared/mine") == {"a.txt", "b"}
    os.chown(fresh / "shared" / theirs, NOBODY, NOBODY)
    assert by_us(fresh) == {".gitignore", "shared/.gitignore", "shared/mine/b"}
    shutil.rmtree(fresh / ".git")
    assert by_us(fresh / "shared/mine") == {"a.x", "a.txt", "b"}
    for path in [fresh / "shared", *(fresh / "shared").rglob("*")]:
        os.chown(path, NOBODY, NOBODY)  # as in a container of root
    assert by_us(fresh / "shared/mine") == {"a.txt", "b"}


def test_the_built_in_list_holds_without_git(tmp_path: Path) -> None:
    hidden = ["node_modules/a.js", "x/__pycache__/a.py", "a.min.js", "x/uv.lock", ".git/HEAD"]
    shown = ["a.js", "build/a.py", "vendor/a.go", "x/lock.py"]
    build(tmp_path, dict.fromkeys([*hidden, *shown], ""))
    assert by_us(tmp_path) == set(shown)


def test_a_pattern_of_the_project_takes_back_a_built_in_one(tmp_path: Path) -> None:
    build(tmp_path, {"a.log": "", "b.log": "", ".gitignore": "!a.log"})
    assert by_us(tmp_path) == {"a.log", ".gitignore"}


def test_no_rule_takes_back_what_is_never_entered(tmp_path: Path) -> None:
    build(tmp_path, {".git/a": "", "x/.hg/a": "", ".lancedb/a": "", ".gitignore": "!*\n!.*\n"})
    assert by_us(tmp_path) == {".gitignore"}


def test_the_own_ignore_file_is_stronger_than_gitignore_of_the_same_folder(tmp_path: Path) -> None:
    build(tmp_path, {"a/a": "", "a/b": "", ".gitignore": "b\n", ".vectorindexignore": "a/a\n!b\n"})
    assert by_us(tmp_path) == {"a/b", ".gitignore", ".vectorindexignore"}


def test_a_deeper_gitignore_is_stronger_than_the_own_file_above(tmp_path: Path) -> None:
    build(tmp_path, {"a/b": "", "b": "", ".vectorindexignore": "b\n", "a/.gitignore": "!b\n"})
    assert by_us(tmp_path) == {"a/b", "a/.gitignore", ".vectorindexignore"}


def test_settings_are_stronger_than_the_built_in_list_and_weaker_than_files(tmp_path: Path) -> None:
    build(tmp_path, {"a.x": "", "b.x": "", "b.log": "", ".gitignore": "!b.x\n"})
    assert by_us(tmp_path, Selection(("*.x", "!*.log"))) == {"b.x", "b.log", ".gitignore"}


def test_a_project_within_a_repository_obeys_the_files_above_it(fresh: Path) -> None:
    build(
        fresh,
        {
            ".gitignore": "*.x\n/a/b/ab\n/b\n",
            ".git/info/exclude": "a/b/A\n",
            "a/.gitignore": "!b.x\nb/a-b/\n",
        },
    )
    build(fresh / "a/b", dict.fromkeys(["ab", "a/ab", "A", "a/A", "a.x", "b.x", "b", "a-b/a"], ""))
    expected = {path.removeprefix("a/b/") for path in by_git(fresh) if path.startswith("a/b/")}
    assert by_us(fresh / "a/b") == expected == {"a/ab", "a/A", "b.x", "b"}


def test_files_above_the_repository_are_not_obeyed(tmp_path: Path, fresh: Path) -> None:
    build(tmp_path, {".gitignore": "*\n"})
    build(fresh, {"a": ""})
    assert by_us(fresh) == by_git(fresh) == {"a"}


def test_a_worktree_obeys_the_exclude_file_of_its_repository(tmp_path: Path, fresh: Path) -> None:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    git(fresh, *author, "commit", "-q", "--allow-empty", "-m", "first")
    git(fresh, "worktree", "add", "-q", str(tmp_path / "tree"))
    build(fresh, {".git/info/exclude": "b\n"})
    build(tmp_path / "tree", {"a": "", "b": "", "a.x/b": ""})
    assert by_git(tmp_path / "tree") == {"a"}
    assert by_us(tmp_path / "tree") - {".git"} == {"a"}


@pytest.mark.parametrize("line", ["!", "/", "a**b/***", "[", "\\", "\0", "***", "(?P<x>"])
def test_an_unusable_line_does_not_cost_the_others(tmp_path: Path, line: str) -> None:
    build(tmp_path, {"b": "", "c": "", ".gitignore": f"b\n{line}\n"})
    assert "b" not in by_us(tmp_path)


def test_an_ignore_file_that_is_a_folder_or_too_large_says_nothing(tmp_path: Path) -> None:
    build(tmp_path, {"a": "", ".gitignore/b": "", ".vectorindexignore": "a\n" + "#" * 1_000_000})
    assert by_us(tmp_path) == {"a", ".gitignore/b", ".vectorindexignore"}


def test_nested_ignore_files_never_push_each_other_out_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = "a\nb{}\n" + "#" * 700_000
    folders = ["", "x/", "x/y/", "x/y/z/"]
    rules = {f"{folder}.gitignore": large.format(n) for n, folder in enumerate(folders)}
    build(tmp_path, rules | {f"{folder}{name}": "" for folder in folders for name in "ac"})
    ignore = Ignore(Folder(tmp_path))
    asked = [f"{folder}{name}" for folder in folders for name in "ac"]
    assert [path for path in asked if ignore.is_ignored(path, False)] == asked[::2]
    assert [*ignore.disobeyed] == ["x/y/.gitignore", "x/y/z/.gitignore"]

    monkeypatch.setattr("vector_index_mcp.files.patterns._Table", None)  # compiles nothing more
    assert ignore.is_ignored("x/y/z/a", False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_an_ignore_file_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    build(tmp_path, {"a": ""})
    os.mkfifo(tmp_path / ".gitignore")
    assert by_us(tmp_path) == {"a"}


def test_an_excluded_folder_is_never_entered(tmp_path: Path) -> None:
    build(tmp_path, {"x/index/a": "", "index/a": "", "x/.gitignore": "!index/\n"})
    assert by_us(tmp_path, Selection(excluded_folders=("x/index",))) == {"index/a", "x/.gitignore"}


@pytest.mark.parametrize(
    ("path", "is_folder", "expected"),
    [
        ("", True, False),
        ("a", True, True),
        ("a", False, False),
        ("a/x/y", False, True),
        ("x/a/y", True, True),
        ("x/y", False, False),
    ],
)
def test_a_path_is_ignored_if_a_folder_above_it_is(
    tmp_path: Path, path: str, is_folder: bool, expected: bool
) -> None:
    build(tmp_path, {".gitignore": "a/\n!a/x\n"})
    assert Ignore(Folder(tmp_path)).is_ignored(path, is_folder) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".gitignore", True),
        ("a/.vectorindexignore", True),
        ("a.gitignore", False),
        (".gitignore/a", False),
        ("", False),
    ],
)
def test_only_ignore_files_concern_the_rules(path: str, expected: bool) -> None:
    assert concerns_rules(path) is expected

"""Names nobody wants to meet and entries that only look like files: found, read or left alone."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from folders import look

from vector_index_mcp.files.folder import Folder, Reading
from vector_index_mcp.files.ignore import Ignore, rule_files
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.read import NOT_A_FILE, Skipped, Text, Vanished, read
from vector_index_mcp.files.scan import Changes, Stamp, Tree, stamp_of, walk
from vector_index_mcp.files.secrets import is_secret

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems allow fewer names")

LIMIT = 1_000
NESTED_FOLDERS = 5_000
OLD: Stamp = (1, 1, 1)
ONE_LINE = {
    "quotes": 'it\'s "quoted" `x` $(x) ; -- .py',
    "emoji": "\U0001f600" * 62 + "\u202e.py",
    "255 bytes": "n" * 252 + ".py",
    "invalid UTF-8": os.fsdecode(b"\xff\xc3 \xed\xa0\x80.py"),
    "terminal escapes": "\x1b[2J\x1b]0;owned\x07\x9b31m.py",
    "option": "--help=.py",
    "drive": "C:\\x\\..\\a.py",
}
every_line = pytest.mark.parametrize("name", ONE_LINE.values(), ids=ONE_LINE)
NAMES = {**ONE_LINE, "newline": "two\nlines\r\n.py"}
every_name = pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)


def shown(root: Path) -> set[str]:
    return set(walk(Folder(root), Ignore(Folder(root))).files)


@every_name
def test_a_file_of_an_odd_name_is_read_like_any_other(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("x = 1\n", encoding="utf-8")
    outcome = read(Folder(tmp_path, reading=Reading(LIMIT)), name)
    assert isinstance(outcome, Text)
    assert (outcome.text, outcome.stamp) == ("x = 1\n", stamp_of((tmp_path / name).lstat()))


@every_name
def test_an_odd_name_is_of_the_language_that_its_end_tells(name: str) -> None:
    assert language_of(name) == language_of(f"{name}/{name}") == "python"


@every_name
def test_an_odd_folder_makes_the_name_of_a_secret_no_less_secret(name: str) -> None:
    assert is_secret(f"{name}/id_rsa")


@every_name
def test_a_project_in_an_odd_folder_is_like_any_other(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    (root / "x").mkdir(parents=True)
    (root / "x/a.py").write_text("x = 1\n", encoding="utf-8")
    (root / ".gitignore").write_text("b.py\n", encoding="utf-8")
    (root / "x/b.py").touch()
    assert shown(root) == {"x/a.py", ".gitignore"}
    assert isinstance(read(Folder(root, reading=Reading(LIMIT)), "x/a.py"), Text)


@every_line
def test_an_ignore_file_hides_the_odd_name_it_holds(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert shown(tmp_path) == {name}
    line = re.sub(r"[\\\[]", r"\\\g<0>", name)
    (tmp_path / ".gitignore").write_bytes(os.fsencode(line))
    assert shown(tmp_path) == {".gitignore"}


def test_the_path_of_a_file_may_be_longer_than_the_system_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "z.py").touch()
    top = tmp_path / ("d" * 250)
    monkeypatch.chdir(tmp_path)
    for _ in range(20):
        Path(top.name).mkdir()
        os.chdir(top.name)
    Path("a.py").touch()
    os.chdir(tmp_path)
    try:
        tree = walk(Folder(tmp_path), Ignore(Folder(tmp_path)))
        deepest = "/".join([top.name] * 20) + "/a.py"
        outcome = read(Folder(tmp_path, reading=Reading(LIMIT)), deepest)
        changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), [deepest], tree.files)
    finally:
        shutil.rmtree(top)
    assert set(tree.files) == {"z.py", deepest}
    assert (outcome.text, outcome.stamp) == ("", tree.files[deepest])
    assert changes == Changes()


@pytest.mark.slow
def test_a_nest_of_folders_has_a_bottom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "z.py").touch()
    monkeypatch.chdir(tmp_path)
    for _ in range(NESTED_FOLDERS):
        Path("d").mkdir()
        os.chdir("d")
    Path("a.py").touch()
    os.chdir(tmp_path)
    ignore = Ignore(Folder(tmp_path))
    try:
        tree = walk(Folder(tmp_path), ignore)
    finally:
        subprocess.run(["rm", "-r", "d"], check=True)  # Python's own way down is too short
    assert set(tree.files) == {"z.py"}
    assert tree.unreadable == ["d/" * 201]
    assert ignore.is_ignored("/".join("d" * 201), True)
    assert not ignore.is_ignored("/".join("d" * 200), True)


def test_a_file_with_two_names_is_found_by_both(tmp_path: Path) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / "b.py").hardlink_to(tmp_path / "a.py")
    assert shown(tmp_path) == {"a.py", "b.py"}


@pytest.fixture(params=["socket", "pipe"])
def special(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A project in which `a.py` is no file, and `b.py` is one."""
    (tmp_path / "b.py").touch()
    if request.param == "pipe":
        os.mkfifo(tmp_path / "a.py")
        yield tmp_path
    else:
        with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
            patch.chdir(tmp_path)  # the whole path may be too long for the address of a socket
            server.bind("a.py")
            yield tmp_path


def test_what_is_no_file_is_not_found(special: Path) -> None:
    assert shown(special) == {"b.py"}


def test_what_is_no_file_any_more_is_gone(special: Path) -> None:
    changes = look(Folder(special), Ignore(Folder(special)), ["a.py", "b.py"], {"a.py": OLD})
    assert changes == Changes(["b.py"], ["a.py"])


def test_what_is_no_file_any_more_is_skipped(special: Path) -> None:
    outcome = read(Folder(special, reading=Reading(LIMIT)), "a.py")
    assert isinstance(outcome, Skipped)
    assert outcome.stamp == stamp_of((special / "a.py").lstat())


def test_nothing_lies_below_what_is_neither_file_nor_folder(special: Path) -> None:
    known = {"a.py/x.py": OLD}
    assert look(Folder(special), Ignore(Folder(special)), ["a.py/x.py"], known) == Changes(
        [], ["a.py/x.py"]
    )
    assert read(Folder(special, reading=Reading(LIMIT)), "a.py/x.py") == Vanished()


def test_a_device_without_end_is_not_read() -> None:
    outcome = read(Folder(Path("/dev"), reading=Reading(LIMIT)), "zero")
    assert isinstance(outcome, Skipped)
    assert outcome.reason == NOT_A_FILE


def test_a_folder_that_is_a_file_when_it_is_listed_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    assert walk(Folder(tmp_path), Ignore(Folder(tmp_path)), "x") == Tree()


def test_a_file_that_is_a_folder_when_it_is_read_is_skipped_and_then_gone(tmp_path: Path) -> None:
    (tmp_path / "a.py/a.py").mkdir(parents=True)
    (tmp_path / "a.py/b.py").touch()
    assert isinstance(read(Folder(tmp_path, reading=Reading(LIMIT)), "a.py"), Skipped)
    known = {"a.py": OLD, "a.py/a.py": OLD}
    changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["a.py"], known)
    assert changes.dirty == ["a.py/b.py"]
    assert set(changes.gone) == set(known)


@pytest.mark.parametrize(
    "name", [".gitignore", ".vectorindexignore", ".git", ".git/info", ".git/info/exclude"]
)
@pytest.mark.parametrize("target", ["itself", "an endless device"])
def test_a_link_in_the_place_of_rules_leaves_no_rules(
    tmp_path: Path, name: str, target: str
) -> None:
    (tmp_path / "a.py").touch()
    link = tmp_path / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(link if target == "itself" else "/dev/zero")
    assert shown(tmp_path) == {"a.py"}


@pytest.mark.parametrize("target", ["", ".", "nowhere", ".git", "\0", "/dev/zero", "x" * 5_000])
def test_a_git_file_that_leads_nowhere_leaves_no_rules(tmp_path: Path, target: str) -> None:
    (tmp_path / "a.py").touch()
    (tmp_path / ".git").write_text(f"gitdir: {target}\n", encoding="utf-8")
    assert shown(tmp_path) == {"a.py"}


def test_a_pipe_in_place_of_an_ignore_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / ".gitignore")
    os.mkfifo(tmp_path / ".vectorindexignore")
    told = {path.name: is_read for path, is_read in rule_files(tmp_path).items()}
    assert told | {".gitignore": False, ".vectorindexignore": False} == told

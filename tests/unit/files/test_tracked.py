"""What git tracks is not git's to ignore: real repositories, and indexes that are none."""

import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_ignore import build, by_git, by_us, empty, git, user_of
from test_ignore_like_git import sources, trees, write

from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.tracked import Tracked, tracked_below

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems allow fewer names")

IGNORED = {".gitignore": "lib/\n*.x\n", "lib/a/kept.py": "", "lib/other.py": "", "one.x": ""}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty repository, for examples one after another."""
    home = tmp_path_factory.mktemp("home")
    root = home / "repository"
    root.mkdir()
    git(root, "init", "-q", "--template=")
    build(home, {"gitconfig": f"[core]\nexcludesFile = {home / 'excludes'}\n"})
    with user_of(home):
        yield root


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "fresh"
    root.mkdir()
    with user_of(tmp_path):
        git(root, "init", "-q")
        yield root


def track(repository: Path, paths: set[str], version: int = 2) -> None:
    """Make these all that is tracked."""
    (repository / ".git/index").unlink(missing_ok=True)
    git(repository, "-c", f"index.version={version}", "add", "-f", "--", *sorted(paths))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(trees(), st.data(), st.sampled_from([2, 4]))
def test_a_walk_finds_what_is_tracked_and_what_is_not_ignored(
    repository: Path, files: dict[str, str], data: st.DataObject, version: int
) -> None:
    write(repository, files)
    some = st.sets(st.sampled_from(sorted(sources(files))), min_size=1)
    track(repository, {f":(literal){path}" for path in data.draw(some)}, version)
    expected = by_git(repository)
    assert by_us(repository) == expected
    rules = Ignore(repository)
    assert {p for p in sources(files) if not rules.is_ignored(p, is_folder=False)} == expected


def test_an_ignored_folder_shows_what_is_tracked_and_nothing_else(fresh: Path) -> None:
    build(fresh, IGNORED)
    assert by_us(fresh) == {".gitignore"}
    track(fresh, {"lib/a/kept.py", "one.x"})
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "one.x"} == by_git(fresh)
    build(fresh, {"lib/a/new.py": "", "lib/a/.gitignore": "!new.py\n"})
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "one.x"} == by_git(fresh)


@pytest.mark.parametrize("folder", ["lib", "lib/a"])
def test_a_project_below_the_top_of_its_repository_knows_what_is_tracked(
    fresh: Path, folder: str
) -> None:
    build(fresh, {**IGNORED, f"{folder}/b.x": "", f"{folder}/c.x": ""})
    track(fresh, {f"{folder}/b.x"})
    found = by_us(fresh / folder)
    assert "b.x" in found
    assert "c.x" not in found


def test_a_worktree_has_its_own(fresh: Path, tmp_path: Path) -> None:
    build(fresh, IGNORED)
    track(fresh, {".gitignore", "lib/a/kept.py"})
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git(fresh, *identity, "commit", "-qm", "one")
    other = tmp_path / "other"
    git(fresh, "worktree", "add", "-q", str(other))
    build(other, {"lib/b.py": "", "two.x": ""})
    git(other, "add", "-f", "two.x")
    assert by_us(other) == {".gitignore", "lib/a/kept.py", "two.x"} == by_git(other)
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py"} == by_git(fresh)


def test_what_is_not_git_s_to_say_holds_for_tracked_files_too(fresh: Path) -> None:
    files = {
        "node_modules/a.js": "",
        "a.log": "",
        "mine/b.py": "",
        "own/c.py": "",
        "back/d.log": "",
        ".gitignore": "node_modules/\n*.log\n!back/*.log\n",
        ".vectorindexignore": "own/\n",
    }
    build(fresh, files)
    track(fresh, {"."})
    assert by_us(fresh, patterns=["mine/"]) == {".gitignore", ".vectorindexignore", "back/d.log"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(["update-index", "--index-version", "4"], id="version 4"),
        pytest.param(["add", "-fN", "two.x"], id="version 3, a file that is meant to be added"),
        pytest.param(["update-index", "--skip-worktree", "one.x"], id="skipped in the tree"),
        pytest.param(["update-index", "--untracked-cache"], id="extensions"),
    ],
)
def test_every_kind_of_index_is_read(fresh: Path, change: list[str]) -> None:
    build(fresh, {**IGNORED, "two.x": "", "long/" * 40 + "name.x": ""})
    track(fresh, {"lib/a/kept.py", "one.x", "long"})
    git(fresh, *change)
    git(fresh, "status")
    assert by_us(fresh) == by_git(fresh)
    assert "one.x" in by_us(fresh)


def test_a_repository_with_longer_hashes_is_read(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    build(tmp_path, IGNORED)
    track(tmp_path, {"one.x", "lib/a/kept.py"})
    assert by_us(tmp_path) == {".gitignore", "one.x", "lib/a/kept.py"} == by_git(tmp_path)


def test_of_an_index_in_two_files_nothing_is_believed(fresh: Path) -> None:
    build(fresh, IGNORED)
    track(fresh, {"one.x"})
    git(fresh, "update-index", "--split-index")
    git(fresh, "add", "-f", "lib/a/kept.py")
    assert by_us(fresh) == {".gitignore"}


def test_another_repository_in_a_folder_is_not_a_file(fresh: Path) -> None:
    inner = fresh / "lib/inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    build(fresh, {".gitignore": "lib/\n", "lib/inner/a.py": ""})
    git(inner, "add", "a.py")
    git(inner, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one")
    git(fresh, "add", "-f", "lib/inner")
    assert by_us(fresh) == {".gitignore"}


def test_an_index_that_changes_is_read_again(fresh: Path) -> None:
    build(fresh, IGNORED)
    track(fresh, {"one.x"})
    assert "one.x" in by_us(fresh)
    git(fresh, "rm", "-q", "--cached", "one.x")
    git(fresh, "add", "-f", "lib")
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "lib/other.py"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, bytes]:
    """A small index of each version."""
    root = tmp_path_factory.mktemp("indexes")
    git(root, "init", "-q")
    build(root, {f"folder{number}/file{number}": "" for number in range(8)})
    versions = {}
    for version in (2, 4):
        track(root, {"."}, version)
        versions[version] = (root / ".git/index").read_bytes()
    return versions


@settings(max_examples=300, deadline=None)
@given(version=st.sampled_from([2, 4]), at=st.floats(0, 1), byte=st.integers(0, 255))
@example(version=4, at=0.9, byte=255)
def test_a_damaged_index_is_no_index_or_a_shorter_answer(
    tmp_path_factory: pytest.TempPathFactory,
    index: Mapping[int, bytes],
    version: int,
    at: float,
    byte: int,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    data = index[version]
    place = int(at * (len(data) - 1))
    (folder / "index").write_bytes(data[:place])
    assert len(tracked_below(folder, "")) == 0
    (folder / "index").write_bytes(data[:place] + bytes([byte]) + data[place + 1 :])
    assert len(tracked_below(folder, "")) <= 8


@pytest.mark.parametrize(
    "data",
    [b"", b"DIRC", b"DIRC\0\0\0\2\xff\xff\xff\xff", b"DIRC\0\0\0\1" + bytes(60), os.urandom(500)],
    ids=["nothing", "a start", "too many", "an old version", "noise"],
)
def test_what_is_no_index_says_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "index").write_bytes(data)
    assert len(tracked_below(tmp_path, "")) == 0


@given(st.sets(st.text("ab/.", min_size=1, max_size=4), max_size=12), st.text("ab/.", max_size=4))
def test_a_path_is_held_if_it_is_there_and_a_folder_if_anything_is_below(
    paths: set[str], path: str
) -> None:
    tracked = Tracked(sorted(map(os.fsencode, paths)))
    assert tracked.holds(path) == (path in paths)
    below = any(other.startswith(f"{path}/") for other in paths)
    assert tracked.holds(path, is_folder=True) == below


def test_a_project_without_git_tracks_nothing(tmp_path: Path) -> None:
    build(tmp_path, IGNORED)
    assert by_us(tmp_path) == {".gitignore"}
    empty(tmp_path)

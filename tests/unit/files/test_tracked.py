"""What git tracks is not git's to ignore: real repositories, and indexes that are none."""

import errno
import hashlib
import os
import sys
import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from drawn import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_ignore import build, by_git, by_us, empty, git, user_of
from test_ignore_like_git import sources, trees, write

from vector_index_mcp.files import tracked as tracked_module
from vector_index_mcp.files.folder import Folder, Selection
from vector_index_mcp.files.git_index import _positions
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


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(trees(), st.data(), st.sampled_from([2, 4]))
def test_a_walk_finds_what_is_tracked_and_what_is_not_ignored(
    repository: Path, files: dict[str, str], data: st.DataObject, version: int
) -> None:
    write(repository, files)
    some = st.sets(st.sampled_from(sorted(sources(files))), min_size=1)
    track(repository, {f":(literal){path}" for path in data.draw(some)}, version)
    expected = by_git(repository)
    assert by_us(repository) == expected
    rules = Ignore(Folder(repository))
    assert {p for p in sources(files) if not rules.is_ignored(p, is_folder=False)} == expected


def test_an_ignored_folder_shows_what_is_tracked_and_nothing_else(fresh: Path) -> None:
    build(fresh, IGNORED)
    assert by_us(fresh) == {".gitignore"}
    track(fresh, {"lib/a/kept.py", "one.x"})
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "one.x"} == by_git(fresh)
    build(fresh, {"lib/a/new.py": "", "lib/a/.gitignore": "!new.py\n"})
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "one.x"} == by_git(fresh)


def test_where_case_does_not_count_a_tracked_file_may_have_another_name_on_disk(
    fresh: Path,
) -> None:
    build(fresh, {".gitignore": "lib/\n", "Lib/A.py": "", "Lib/b.py": ""})
    track(fresh, {"Lib/A.py"})
    (fresh / "Lib").rename(fresh / "lib")
    before = Ignore(Folder(fresh))
    assert by_us(fresh) == {".gitignore"}, "another file"

    git(fresh, "config", "core.ignorecase", "true")
    now = Ignore(Folder(fresh))
    assert by_us(fresh) == {".gitignore", "lib/A.py"}
    assert before.is_outdated_by(now)
    git(fresh, "config", "core.bare", "false")
    assert not now.is_outdated_by(Ignore(Folder(fresh)))


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
    assert by_us(fresh, Selection(("mine/",))) == {".gitignore", ".vectorindexignore", "back/d.log"}


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


MANY = [f"lib/{number:03}.py" for number in range(300)]


@pytest.mark.slow
@pytest.mark.parametrize(("hash_name", "hash_digits"), [("sha1", 40), ("sha256", 64)])
@pytest.mark.parametrize("version", ["2", "4"])
def test_an_index_in_two_files_is_read_whatever_changes(
    tmp_path: Path, version: str, hash_name: str, hash_digits: int
) -> None:
    git(tmp_path, "init", "-q", f"--object-format={hash_name}")
    build(tmp_path, {".gitignore": "lib/\n", **dict.fromkeys(MANY, "")})
    git(tmp_path, "config", "splitIndex.maxPercentChange", "100")  # never written whole again
    git(tmp_path, "-c", f"index.version={version}", "add", "-f", ".", *MANY[::2])
    git(tmp_path, "update-index", "--split-index")
    for change in (
        ["add", "-f", *MANY[101:140:2]],
        ["rm", "-qf", "--cached", *MANY[2:12:4]],  # bits one by one
        ["rm", "-qf", "--cached", *MANY[20:280:2]],  # and whole words of them
        ["update-index", "--chmod=+x", MANY[0], MANY[290]],  # replaced by entries without a name
        ["add", "-f", MANY[0], MANY[4], MANY[299]],
        ["rm", "-qf", "--cached", MANY[290]],
    ):
        git(tmp_path, *change)
        assert list((tmp_path / ".git").glob("sharedindex.*"))
        assert b"link" in (tmp_path / ".git/index").read_bytes()
        assert by_us(tmp_path) == by_git(tmp_path)
    submodule = f"160000,{'1' * hash_digits},{MANY[8]}"
    git(tmp_path, "update-index", "--cacheinfo", submodule)
    assert by_us(tmp_path) == by_git(tmp_path) - {MANY[8]}


def test_an_index_whose_other_part_is_missing_or_damaged_says_nothing(fresh: Path) -> None:
    build(fresh, IGNORED)
    track(fresh, {"one.x"})
    git(fresh, "update-index", "--split-index")
    [shared] = (fresh / ".git").glob("sharedindex.*")
    content = shared.read_bytes()
    shared.write_bytes(content[:-30])
    assert by_us(fresh) == {".gitignore"}
    shared.unlink()
    assert by_us(fresh) == {".gitignore"}
    shared.write_bytes(content)
    assert by_us(fresh) == {".gitignore", "one.x"}


@given(
    words=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 255), max_size=6),
    stated=st.integers(0, 7),
    count=st.integers(0, 200),
)
@example(words=[2**33 - 1], stated=1, count=200)
@example(words=[2**64 - 2], stated=1, count=200)
def test_no_bitmap_holds_more_than_there_is(words: list[int], stated: int, count: int) -> None:
    parts = [bytes(4), stated.to_bytes(4, "big"), *(w.to_bytes(8, "big") for w in words), bytes(4)]
    try:
        found, end = _positions(b"".join(parts), 0, count)
    except ValueError:
        return
    assert found == sorted(set(found))
    assert all(place < count for place in found)
    assert end <= sum(map(len, parts))


def test_a_submodule_that_was_added_in_spite_of_the_rules_is_searched(fresh: Path) -> None:
    inner = fresh / "lib/inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    beside = ("lib/inner-x/b.py", "lib/inner.py", "lib/inner/c.pyc")
    build(fresh, {".gitignore": "lib/\n", "lib/inner/a.py": "", **dict.fromkeys(beside, "")})
    build(inner, {".gitignore": "*.pyc\n"})
    git(inner, "add", ".gitignore", "a.py")
    git(inner, "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qm", "one")
    git(fresh, "add", "-f", "lib/inner", "lib/inner.py")
    assert by_us(fresh) == {
        ".gitignore", "lib/inner/.gitignore", "lib/inner/a.py", "lib/inner.py",
    }  # fmt: skip


def test_an_index_that_changes_is_read_again(fresh: Path) -> None:
    build(fresh, IGNORED)
    track(fresh, {"one.x"})
    before = Ignore(Folder(fresh))
    assert "one.x" in by_us(fresh)
    assert not before.is_outdated_by(Ignore(Folder(fresh))), "nothing was asked"
    assert not before.is_ignored("one.x", is_folder=False)
    git(fresh, "add", "--refresh", ".")
    assert not before.is_outdated_by(Ignore(Folder(fresh))), "the same files"
    git(fresh, "rm", "-q", "--cached", "one.x")
    git(fresh, "add", "-f", "lib")
    assert before.is_outdated_by(Ignore(Folder(fresh)))
    assert by_us(fresh) == {".gitignore", "lib/a/kept.py", "lib/other.py"}


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> Mapping[int, bytes]:
    """A small index of each version."""
    root = tmp_path_factory.mktemp("indexes")
    git(root, "init", "-q")
    build(root, {f"folder{number}/file{number}": "" for number in range(8)})
    versions = {}
    for version in (2, 4):
        track(root, {"."}, version)
        versions[version] = (root / ".git/index").read_bytes()
        assert versions[version][7] == version
    return versions


def paths_of(folder: Path) -> set[bytes]:
    tracked = tracked_below(folder / "index", "")
    return {tracked[place] for place in range(len(tracked))}


@settings(max_examples=examples(300), deadline=None)
@given(version=st.sampled_from([2, 4]), at=st.floats(0, 1), flip=st.integers(1, 255))
@example(version=4, at=0.9, flip=255)
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_damaged_index_says_nothing_and_one_written_to_do_harm_no_more_than_it_holds(
    tmp_path_factory: pytest.TempPathFactory,
    indexes: Mapping[int, bytes],
    is_sealed: bool,
    version: int,
    at: float,
    flip: int,
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    data = indexes[version]
    place = int(at * (len(data) - 21))
    (folder / "index").write_bytes(data[:place])
    assert paths_of(folder) == set()
    changed = data[:place] + bytes([data[place] ^ flip]) + data[place + 1 :]
    (folder / "index").write_bytes(sealed(changed[:-20]) if is_sealed else changed)
    found = paths_of(folder)
    assert len(found) <= 8 if is_sealed else found == set()


def sealed(content: bytes) -> bytes:
    """An index with this content, whose last bytes are right."""
    return content + hashlib.sha1(content, usedforsecurity=False).digest()


def entry(name: bytes, length: int, dropped: bytes = b"\0") -> bytes:
    """One of version 4: a file whose name shares its beginning with the one before."""
    status = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(12) + bytes(20)
    return status + min(length, 0xFFF).to_bytes(2, "big") + dropped + name + b"\0"


def header(count: int) -> bytes:
    return b"DIRC" + (4).to_bytes(4, "big") + count.to_bytes(4, "big")


LONGER_AND_LONGER = b"".join(entry(b"a" * 2_000, 2_000 * (n + 1)) for n in range(2_000))
ENDLESS_NUMBER = entry(b"a", 1, b"\xff" * 5_000_000)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"DIRC", id="a start"),
        pytest.param(b"DIRC\0\0\0\2\xff\xff\xff\xff", id="more than there are"),
        pytest.param(b"DIRC\0\0\0\1" + bytes(60), id="an old version"),
        pytest.param(b"noise" * 100, id="noise"),
        pytest.param(sealed(header(2_000) + LONGER_AND_LONGER), id="names of gigabytes"),
        pytest.param(sealed(header(1) + ENDLESS_NUMBER), id="a number without end"),
        pytest.param(sealed(header(1) + entry(b"a", 1, b"\x01")), id="more than the name has"),
    ],
)
def test_what_is_no_index_says_nothing_and_costs_little(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "index").write_bytes(data)
    tracemalloc.start()
    assert paths_of(tmp_path) == set()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 10_000_000 + 3 * len(data)


def test_an_index_that_is_a_pipe_or_a_device_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index")
    assert paths_of(tmp_path) == set()
    (tmp_path / "index").unlink()
    (tmp_path / "index").symlink_to("/dev/zero")
    assert paths_of(tmp_path) == set()


def test_an_index_that_cannot_be_read_just_now_is_as_it_was(
    fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(fresh, IGNORED)
    track(fresh, {"one.x"})
    assert "one.x" in by_us(fresh)

    def fail(*_: object) -> int:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as patch:
        patch.setattr(tracked_module.os, "open", fail)
        assert tracked_below(fresh / ".git/index", "").holds("one.x")


def test_a_repository_in_another_has_rules_and_tracked_files_of_its_own(fresh: Path) -> None:
    inner = fresh / "sub/inner"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    files = {".gitignore": "lib/\n*.x\n", "lib/a.py": "", "lib/b.py": "", "t.y": "", "z.x": ""}
    build(inner, {**files, ".git/info/exclude": "/excluded\n", "excluded": "", "s/excluded": ""})
    build(fresh, {".gitignore": "*.y\nlib/\ns/\n", "u.y": "", "no/.git": "gitdir: nowhere"})
    git(inner, "add", "-f", "lib/a.py", "t.y")
    git(fresh, "add", ".gitignore")
    expected = {f"sub/inner/{path}" for path in by_git(inner)}
    assert by_us(fresh) == expected | {".gitignore"}
    assert {"sub/inner/lib/a.py", "sub/inner/t.y", "sub/inner/s/excluded"} <= expected


def test_what_only_looks_like_a_repository_changes_no_rules(fresh: Path) -> None:
    build(
        fresh, {".gitignore": "*.y\n", "a/b.y": "", "a/.git/config": "", "b/.git": "", "b/b.y": ""}
    )
    assert by_us(fresh) == {".gitignore"}


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

"""Which files there are and which of them changed: real files in a temporary folder."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from drawn import examples
from folders import look
from hypothesis import given, settings
from hypothesis import strategies as st
from writing import put, write

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files import beneath, scan
from vector_index_mcp.files.first import First
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import (
    Changes,
    Stamp,
    Tree,
    compare,
    may_recur,
    modified_at,
    stamp_of,
    walk,
)

OLD: Stamp = (1, 1, 1)
NEW: Stamp = (1, 1, 2)
WALK_AS_NOBODY = """
import os, pathlib
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import walk
ignore = Ignore(Folder(pathlib.Path.cwd()))
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
tree = walk(Folder(pathlib.Path()), ignore)
print(sorted(tree.files), tree.unreadable)
"""


def files(root: Path) -> dict[str, Stamp]:
    return walk(Folder(root), Ignore(Folder(root))).files


def seen(root: Path, known: dict[str, Stamp], *paths: str) -> tuple[set[str], set[str]]:
    """What `look` says of `paths`, checked against what a whole walk says."""
    changes = look(Folder(root), Ignore(Folder(root)), paths, known)
    assert len(changes.dirty) == len(set(changes.dirty))
    assert len(changes.gone) == len(set(changes.gone))
    whole = compare(walk(Folder(root), Ignore(Folder(root))), known)
    assert (set(changes.dirty), set(changes.gone)) == (set(whole.dirty), set(whole.gone))
    return set(changes.dirty), set(changes.gone)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A few files; the tests change one thing each."""
    for path in ("a.py", "x/a.py", "x/y/a.py", "x-1/a.py", "x0/a.py", "z/a.txt"):
        put(tmp_path, path)
    return tmp_path


def test_a_walk_finds_every_file_with_its_stamp(project: Path) -> None:
    found = files(project)
    assert set(found) == {"a.py", "x/a.py", "x/y/a.py", "x-1/a.py", "x0/a.py", "z/a.txt"}
    for path, stamp in found.items():
        status = (project / path).stat()
        assert stamp == (status.st_size, status.st_mtime_ns, status.st_ctime_ns)


@pytest.mark.parametrize("year", [1, 1600, 2263, 9999, 33_658])
def test_a_time_that_no_index_holds_is_taken_for_the_next_that_it_does(year: int) -> None:
    seconds = (year - 1970) * 31_556_952
    status = mock.Mock(
        st_size=1, st_mtime_ns=seconds * 10**9, st_ctime_ns=0, spec_set=os.stat_result
    )
    stamp = stamp_of(status)
    assert pa.array([stamp[1]], pa.int64())[0].as_py() == stamp[1]
    assert 1677 <= modified_at(status).year <= 2262


def test_a_walk_of_a_folder_finds_what_is_below_it(project: Path) -> None:
    assert set(walk(Folder(project), Ignore(Folder(project)), "x").files) == {"x/a.py", "x/y/a.py"}


@pytest.mark.parametrize(
    ("tree", "known", "expected"),
    [
        pytest.param(Tree(), {}, Changes(), id="nothing"),
        pytest.param(Tree({"a": NEW}), {}, Changes(["a"]), id="created"),
        pytest.param(Tree({"a": NEW}), {"a": OLD}, Changes(["a"]), id="changed"),
        pytest.param(Tree({"a": OLD}), {"a": OLD}, Changes(), id="same"),
        pytest.param(Tree(), {"a": OLD}, Changes([], ["a"]), id="deleted"),
        pytest.param(Tree({}, ["x/"]), {"x/a": OLD}, Changes(), id="in an unreadable folder"),
        pytest.param(
            Tree({}, ["README"]),
            {"README": OLD, "README.md": OLD},
            Changes(gone=["README.md"]),
            id="beside an unreadable file",
        ),
        pytest.param(
            Tree({}, ["x/"]), {"x": OLD, "x1/a": OLD}, Changes([], ["x", "x1/a"]), id="beside one"
        ),
    ],
)
def test_a_walk_is_compared_with_what_is_known(
    tree: Tree, known: dict[str, Stamp], expected: Changes
) -> None:
    assert compare(tree, known) == expected


@pytest.mark.parametrize(
    ("mtime", "ctime", "expected"),
    [
        pytest.param(9.0, 9.0, True, id="whole seconds, young"),
        pytest.param(8.0, 8.0, False, id="whole seconds, old"),
        pytest.param(5.0, 9.0, True, id="an old time put back"),
        pytest.param(60.0, 5.0, False, id="a time to come"),
        pytest.param(9.0, 9.5, False, id="a finer clock"),
        pytest.param(9.5, 9.5, False, id="a finer clock, twice"),
    ],
)
def test_a_stamp_may_recur_while_its_second_is_not_over(
    mtime: float, ctime: float, expected: bool
) -> None:
    stamp = (1, int(mtime * 1e9), int(ctime * 1e9))
    assert may_recur(stamp, 10_000_000_000) is expected


def test_nothing_changed_is_no_work(project: Path) -> None:
    assert seen(project, files(project), "a.py", "x", "") == (set(), set())


def test_a_new_file_is_dirty(project: Path) -> None:
    known = files(project)
    put(project, "x/new.py")
    assert seen(project, known, "x/new.py") == ({"x/new.py"}, set())


def test_a_changed_file_is_dirty(project: Path) -> None:
    known = files(project)
    put(project, "x/a.py", "longer")
    assert seen(project, known, "x/a.py") == ({"x/a.py"}, set())


def test_an_edit_that_puts_size_and_time_back_is_dirty(project: Path) -> None:
    known = files(project)
    size, mtime, ctime = known["a.py"]
    file = project / "a.py"
    now = ctime
    while now == ctime:  # the clock of the file system advances in steps
        file.write_text("y", encoding="utf-8")
        os.utime(file, ns=(mtime, mtime))
        now = file.stat().st_ctime_ns
    assert stamp_of(file.stat())[:2] == (size, mtime)
    assert seen(project, known, "a.py") == ({"a.py"}, set())


def test_a_deleted_file_is_gone(project: Path) -> None:
    known = files(project)
    (project / "a.py").unlink()
    assert seen(project, known, "a.py") == (set(), {"a.py"})


def test_a_deleted_folder_takes_its_files_along_and_no_neighbours(project: Path) -> None:
    known = files(project)
    shutil.rmtree(project / "x")
    assert seen(project, known, "x") == (set(), {"x/a.py", "x/y/a.py"})


def test_a_folder_in_the_place_of_a_file_replaces_it(project: Path) -> None:
    known = files(project)
    (project / "a.py").unlink()
    put(project, "a.py/inner.py")
    assert seen(project, known, "a.py") == ({"a.py/inner.py"}, {"a.py"})


def test_a_file_in_the_place_of_a_folder_replaces_its_files(project: Path) -> None:
    known = files(project)
    shutil.rmtree(project / "x")
    put(project, "x")
    assert seen(project, known, "x") == ({"x"}, {"x/a.py", "x/y/a.py"})


def test_a_path_below_a_file_is_gone(project: Path) -> None:
    known = files(project) | {"a.py/inner.py": OLD}
    assert seen(project, known, "a.py/inner.py") == (set(), {"a.py/inner.py"})


def test_a_renamed_folder_is_found_by_both_names(project: Path) -> None:
    known = files(project)
    (project / "x").rename(project / "w")
    assert seen(project, known, "x", "w") == (
        {"w/a.py", "w/y/a.py"},
        {"x/a.py", "x/y/a.py"},
    )


@pytest.mark.parametrize("name", [".gitignore", ".vectorindexignore"])
def test_an_edited_ignore_file_widens_the_look_to_its_folder(project: Path, name: str) -> None:
    known = files(project)
    put(project, f"x/{name}", "y/\n")
    rules = f"x/{name}"
    assert seen(project, known, rules) == ({rules}, {"x/y/a.py"})
    known = files(project)
    (project / rules).unlink()
    assert seen(project, known, rules) == ({"x/y/a.py"}, {rules})


def test_an_ignore_file_of_the_project_widens_the_look_to_everything(project: Path) -> None:
    known = files(project)
    put(project, ".gitignore", "a.py\n!x0/a.py\n")
    assert seen(project, known, ".gitignore") == (
        {".gitignore"},
        {"a.py", "x/a.py", "x/y/a.py", "x-1/a.py"},
    )


def test_what_became_ignored_is_gone(project: Path) -> None:
    known = files(project)
    put(project, ".gitignore", "x/\n*.txt\n")
    changes = look(Folder(project), Ignore(Folder(project)), ["x", "z/a.txt", "x/y", "a.py"], known)
    assert (changes.dirty, set(changes.gone)) == ([], {"x/a.py", "x/y/a.py", "z/a.txt"})


def test_a_path_named_twice_is_told_once(project: Path) -> None:
    known = files(project)
    put(project, "x/y/new.py")
    shutil.rmtree(project / "x0")
    paths = ["x", "x/y", "x/y/new.py", "x/y/new.py", "x0", "x0/a.py"]
    assert seen(project, known, *paths) == ({"x/y/new.py"}, {"x0/a.py"})


def test_links_are_not_listed_and_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    put(outside, "secret.py")
    known = files(project)
    links = {
        "to_file": project / "a.py",
        "to_folder": project / "x",
        "x/loop": project,
        "out_file": outside / "secret.py",
        "out_folder": outside,
        "nowhere": project / "missing",
        "self": project / "self",
    }
    for name, target in links.items():
        (project / name).symlink_to(target)
    assert files(project) == known
    assert seen(project, known, *links, "to_folder/a.py", "x/loop/a.py") == (set(), set())


def test_a_link_in_the_place_of_a_file_or_a_folder_makes_them_gone(project: Path) -> None:
    known = files(project)
    (project / "a.py").unlink()
    (project / "a.py").symlink_to("x/a.py")
    shutil.rmtree(project / "x0")
    (project / "x0").symlink_to("x")
    assert seen(project, known, "a.py", "x0") == (set(), {"a.py", "x0/a.py"})


def test_files_behind_a_link_in_the_place_of_their_folder_are_gone(project: Path) -> None:
    known = files(project)
    (project / "x").rename(project / "w")
    (project / "x").symlink_to("w")
    paths = ["x", "x/a.py", "x/y", "x/y/a.py", "w"]
    assert seen(project, known, *paths) == ({"w/a.py", "w/y/a.py"}, {"x/a.py", "x/y/a.py"})


def test_a_project_that_is_reached_through_a_link_is_looked_at(project: Path) -> None:
    known = files(project)
    link = project.parent / f"{project.name}-link"
    link.symlink_to(project)
    put(project, "x/a.py", "longer")
    assert seen(link, known, "x/a.py") == ({"x/a.py"}, set())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_is_neither_file_nor_folder_is_not_listed(project: Path) -> None:
    known = files(project)
    os.mkfifo(project / "pipe.py")
    assert seen(project, known, "pipe.py") == (set(), set())


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow fewer names")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param('it\'s "quoted" `x` $HOME; --', id="quotes"),
        pytest.param("two\nlines\r", id="newline"),
        pytest.param("naïve 😀 e\u0301 \u202e", id="emoji"),
        pytest.param("n" * 255, id="255 bytes"),
        pytest.param(os.fsdecode(b"\xff\xfe latin \xe9"), id="invalid UTF-8"),
        pytest.param(" space ", id="spaces around"),
        pytest.param("back\\slash*?[", id="wildcards"),
        pytest.param("%s{0}\x01\x7f", id="control"),
    ],
)
def test_odd_names_are_found_and_forgotten_like_others(tmp_path: Path, name: str) -> None:
    for path in (name, f"{name}.d/{name}" if len(name) < 250 else f"{name[:9]}/{name}"):
        known = files(tmp_path)
        put(tmp_path, path)
        assert seen(tmp_path, known, path) == ({path}, set())
        known = files(tmp_path)
        (tmp_path / path).unlink()
        assert seen(tmp_path, known, path) == (set(), {path})


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user numbers")
@pytest.mark.parametrize("mode", [0o000, 0o744], ids=["not to be listed", "not to be entered"])
def test_an_unreadable_folder_is_told_and_does_not_end_the_walk(project: Path, mode: int) -> None:
    (project / "x/y").chmod(mode)
    try:
        if os.geteuid() != 0:
            tree = walk(Folder(project), Ignore(Folder(project)))
            told = f"{sorted(tree.files)} {tree.unreadable}"
        else:  # to root everything is readable
            project.chmod(0o755)
            told = subprocess.run(
                [sys.executable, "-c", WALK_AS_NOBODY],
                cwd=project,
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
    finally:
        (project / "x/y").chmod(0o755)
    expected = ["a.py", "x-1/a.py", "x/a.py", "x0/a.py", "z/a.txt"]
    assert told == f"{expected} ['x/y/']"


def test_a_project_that_is_not_there_is_an_error_that_keeps_the_index(project: Path) -> None:
    known = files(project)
    shutil.rmtree(project)
    with pytest.raises(ProjectError, match="the index is kept"):
        walk(Folder(project), Ignore(Folder(project)))
    with pytest.raises(ProjectError, match="the index is kept"):
        look(Folder(project), Ignore(Folder(project)), [""], known)


def test_files_that_cannot_be_looked_at_for_now_are_not_gone(
    project: Path, no_descriptors: Callable[[], AbstractContextManager[None]]
) -> None:
    known, ignore = files(project), Ignore(Folder(project))
    with no_descriptors():
        assert look(Folder(project), ignore, ["a.py", "x", "x/y/a.py"], known) == Changes()
    assert look(Folder(project), ignore, ["a.py", "x", "x/y/a.py"], known) == Changes()


def test_a_folder_that_is_gone_before_it_is_listed_holds_nothing(project: Path) -> None:
    assert walk(Folder(project), Ignore(Folder(project)), "missing") == Tree()


# Short names that meet often: a file becomes a folder, a folder is a prefix of its neighbour.
NAMES = ["a", "b", "a-", "a0"]
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
edits = st.one_of(
    st.tuples(st.just("write"), paths, st.text("xy", max_size=2)),
    st.tuples(st.just("remove"), paths, st.just("")),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(
        st.just("rules"),
        st.one_of(st.just(""), paths),
        st.sampled_from(["", "a\n", "b/\n!a\n", "/a/b\n", "*\n!b\n"]),
    ),
)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def make_folder(root: Path, path: str) -> list[str]:
    """Make the folder at `path`, whatever is there, and tell what was touched."""
    touched = []
    parts = path.split("/") if path else []
    for depth in range(1, len(parts) + 1):
        here = "/".join(parts[:depth])
        if not (root / here).is_dir():
            remove(root / here)
            (root / here).mkdir()
            touched.append(here)
    return touched


def apply_edit(root: Path, kind: str, path: str, other: str) -> list[str]:
    """Change the disk, and tell the paths a watcher would tell."""
    if kind == "rules":
        touched = make_folder(root, path)
        rules = f"{path}/.gitignore".lstrip("/")
        (root / rules).write_text(other, encoding="utf-8")
        return [*touched, rules]
    if kind == "remove":
        if os.path.lexists(root / path):
            remove(root / path)
        return [path]
    if kind == "rename":
        if not os.path.lexists(root / path) or f"{other}/".startswith(f"{path}/"):
            return []
        if f"{path}/".startswith(f"{other}/"):
            return []
        touched = make_folder(root, other.rpartition("/")[0])
        if not os.path.lexists(root / path):  # it was in the way
            return touched
        remove(root / other)
        (root / path).rename(root / other)
        return [*touched, path, other]
    touched = make_folder(root, path.rpartition("/")[0])
    if (root / path).is_dir():
        remove(root / path)
    (root / path).write_text(other, encoding="utf-8")
    return [*touched, path]


@pytest.mark.slow
@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=5))
def test_looking_at_the_touched_paths_knows_what_a_fresh_walk_knows(
    batches: list[list[tuple[str, str, str]]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        known: dict[str, Stamp] = {}
        for batch in batches:
            touched = [path for edit in batch for path in apply_edit(root, *edit)]
            changes = look(Folder(root), Ignore(Folder(root)), touched, known)
            assert not set(changes.dirty) & set(changes.gone)
            for path in changes.gone:
                del known[path]
            for path in changes.dirty:
                known[path] = stamp_of((root / path).lstat())
            assert known == walk(Folder(root), Ignore(Folder(root))).files


def test_a_path_too_long_for_the_system_is_no_file(tmp_path: Path) -> None:
    long = f"{'n' * 300}/a.py"

    changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), [long], {})

    assert (changes.dirty, changes.gone) == ([], [])


LOOK_AS_NOBODY = """
import os, pathlib
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import look
if os.geteuid() == 0:  # to whom nothing is forbidden
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
root = pathlib.Path("locked/x")
try:
    print(look(Folder(root), Ignore(Folder(root)), ["a.py"], {"a.py": (1, 1, 1)}))
except ProjectError as error:
    print(error)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user numbers")
def test_a_project_out_of_sight_is_an_error_that_keeps_the_index(tmp_path: Path) -> None:
    put(tmp_path, "locked/x/a.py")
    tmp_path.chmod(0o755)
    (tmp_path / "locked").chmod(0)
    command = [sys.executable, "-c", LOOK_AS_NOBODY]
    try:
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    finally:
        (tmp_path / "locked").chmod(0o755)
    assert "the index is kept" in told.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_of_a_file_out_of_sight_nothing_is_concluded(tmp_path: Path) -> None:
    folder = tmp_path / "locked" / "x"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text("x = 1\n")
    known = walk(Folder(tmp_path), Ignore(Folder(tmp_path))).files
    (tmp_path / "locked").chmod(0)
    try:
        changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["locked/x/a.py"], known)
    finally:
        (tmp_path / "locked").chmod(0o700)

    assert (changes.dirty, changes.gone) == ([], [])


# -- more files than there is room for -------------------------------------------------------------


@pytest.fixture
def room_for_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "MOST_FILES", 3)


@pytest.mark.usefixtures("room_for_three")
def test_so_many_files_are_found_and_the_others_are_counted(tmp_path: Path) -> None:
    for number in range(20):
        put(tmp_path, f"{number:02}.py")
    put(tmp_path, "node_modules/x.js")
    tree = walk(Folder(tmp_path), Ignore(Folder(tmp_path)))
    assert list(tree.files) == ["00.py", "01.py", "02.py"]
    assert tree.left_out == 17


@pytest.mark.usefixtures("room_for_three")
def test_so_many_folders_are_entered_and_the_others_are_counted(tmp_path: Path) -> None:
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
    put(tmp_path, "00/a.py")
    put(tmp_path, "19/a.py")
    tree = walk(Folder(tmp_path), Ignore(Folder(tmp_path)))
    assert (list(tree.files), tree.left_out) == (["00/a.py"], 17)


@pytest.mark.slow
def test_of_a_huge_folder_no_more_is_kept_than_there_is_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "MOST_FILES", 10)
    for number in range(3_000):
        (tmp_path / f"{number:04}.py").touch()
    kept = []
    sorted_of = First.sorted
    monkeypatch.setattr(
        First, "sorted", lambda self: kept.append(len(self._entries)) or sorted_of(self)
    )
    tree = walk(Folder(tmp_path), Ignore(Folder(tmp_path)))
    assert list(tree.files) == [f"{number:04}.py" for number in range(10)]
    assert tree.left_out == 2_990
    assert max(kept) < 1_100


@pytest.mark.usefixtures("room_for_three")
def test_a_new_file_takes_the_room_of_one_that_is_gone(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py"):
        put(tmp_path, name)
    known = files(tmp_path)
    put(tmp_path, "d.py")
    put(tmp_path, "e.py")
    assert look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["d.py", "e.py"], known) == Changes(
        left_out=2
    )
    (tmp_path / "a.py").unlink()
    changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["a.py", "d.py", "e.py"], known)
    assert changes == Changes(["d.py"], ["a.py"], left_out=1)
    put(tmp_path, "b.py", "longer")
    assert look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["b.py"], known) == Changes(["b.py"])


def test_a_sweep_finds_what_changed_and_what_is_gone(project: Path) -> None:
    known = files(project)
    assert scan.sweep(Folder(project), known) == []
    put(project, "x/a.py", "longer")
    (project / "a.py").unlink()
    (project / "z").rename(project / "w")
    (project / "z").touch()
    assert set(scan.sweep(Folder(project), known)) == {"x/a.py", "a.py", "z/a.txt"}


def test_a_sweep_leaves_alone_what_is_taken_up_anyway_and_what_is_out_of_reach(
    project: Path,
) -> None:
    known = {"a.py": scan.UNKNOWN, "x/a.py": (-1, -1, -1), "x" * 300: OLD, "\0": OLD}
    assert scan.sweep(Folder(project), known) == []


def test_files_in_another_folder_are_read_though_their_stamps_are_the_same(project: Path) -> None:
    known = files(project)
    changes = look(Folder(project), Ignore(Folder(project)), ["x", "a.py"], known, None, ["x"])
    assert changes == Changes(["x/a.py", "x/y/a.py"])
    assert known == files(project)


def test_a_file_is_looked_at_when_something_happens_at_another_of_its_names(project: Path) -> None:
    linked: set[str] = set()
    known = files(project)
    (project / "one.py").hardlink_to(project / "a.py")
    assert set(look(Folder(project), Ignore(Folder(project)), ["one.py"], known, linked).dirty) == {
        "one.py",
        "a.py",
    }
    assert linked == {"one.py", "a.py"} == walk(Folder(project), Ignore(Folder(project))).linked
    known = files(project)
    put(project, "one.py", "longer")
    (project / "one.py").unlink()
    changes = look(Folder(project), Ignore(Folder(project)), ["one.py"], known, linked)
    assert changes == Changes(["a.py"], ["one.py"])
    assert linked == {"a.py"}


def test_a_folder_is_walked_once_though_folders_in_it_are_named_too(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    walked = []
    monkeypatch.setattr(scan, "walk", lambda *where: walked.append(where[-1]) or walk(*where))
    put(project, "x/y/new.py")
    changes = look(
        Folder(project),
        Ignore(Folder(project)),
        ["x/y", "x", "x/y/new.py"],
        files(project) | {"x/y/new.py": OLD},
    )
    assert (changes.dirty, walked) == (["x/y/new.py"], ["x"])


# -- drives that ignore case --------------------------------------------------------------------


@pytest.fixture
def ignores_case(monkeypatch):
    """As on macOS and Windows: a name opens what is spelled like it but for the case of letters."""
    status = beneath.status

    def status_in_any_case(root, key):
        spelled = ""
        for name in key.split("/") if key else ():
            names = [each.name for each in (root / spelled).iterdir()]
            found = next((each for each in names if each.casefold() == name.casefold()), name)
            spelled = f"{spelled}/{found}".lstrip("/")
        return status(root, spelled)

    monkeypatch.setattr(beneath, "status", status_in_any_case)


@pytest.mark.parametrize(
    ("old", "new"), [("Handler.py", "handler.py"), ("Src/a.py", "src/a.py"), ("É/b.py", "é/b.py")]
)
@pytest.mark.parametrize("touched", ["both", "old", "folders"])
def test_a_file_renamed_by_case_alone_has_its_new_name_only(
    tmp_path, ignores_case, old, new, touched
):
    write(tmp_path, {new: "x = 1\n", "other.py": "y = 2\n"})
    known = {old: (1, 1, 1), "other.py": stamp_of((tmp_path / "other.py").lstat())}
    keys = {
        "both": [old, new, "other.py"],
        "old": [old],
        "folders": [old.partition("/")[0], new.partition("/")[0]],
    }[touched]

    changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), keys, known)

    assert (changes.gone, changes.dirty) == ([old], [new])


def test_on_a_drive_that_ignores_case_what_is_spelled_right_stays(tmp_path, ignores_case):
    write(tmp_path, {"Src/A.py": "x = 1\n"})
    known = {"Src/A.py": stamp_of((tmp_path / "Src/A.py").lstat())}

    changes = look(Folder(tmp_path), Ignore(Folder(tmp_path)), ["Src/A.py", "Src"], known)

    assert (changes.gone, changes.dirty) == ([], [])

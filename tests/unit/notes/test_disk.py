"""Files of a store: each change is one step or is undone, and no link is followed anywhere."""

import os
import sys
import threading
from functools import partial

import pytest
from stores import OWN, files_of
from writing import put

from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.applying import apply, or_undone, states_of
from vector_index_mcp.notes.store.disk import Change, Disk

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="uses links, modes and pipes")
A, B = "projects/p/a.md", "projects/p/b.md"


@pytest.fixture
def disk(tmp_path):
    """A store with two files, beside a folder that is none of its own."""
    root = tmp_path / "store"
    (root / ".git").mkdir(parents=True)
    for path in (A, B, "projects/p/deep/c.md"):
        put(root, path, f"old {path}")
    put(tmp_path, "elsewhere/a.md", "mine")
    put(tmp_path, "elsewhere/deep/c.md", "mine")
    return Disk(root)


@pytest.fixture
def elsewhere(disk):
    """That folder; whatever happens, it stays as it is."""
    folder = disk.root.parent / "elsewhere"
    before = files_of(folder)
    yield folder
    assert files_of(folder) == before


def changed(disk, puts=(), drops=(), folder=""):
    data = {path: text.encode() for path, text in dict(puts).items()}
    return apply(disk, Change(data, tuple(drops), folder=folder), states_of(disk, [*data, *drops]))


def refusal(do, *arguments):
    with pytest.raises(Refusal) as refused:
        do(*arguments)
    assert str(refused.value)
    return refused.value.code


def left(disk):
    """What of our own is left behind."""
    own = disk.root / OWN
    return sorted(path.name for path in own.iterdir()) if own.is_dir() else []


# -- reading -----------------------------------------------------------------------------------


def test_what_is_there_is_read_and_what_is_not_is_none(disk):
    assert disk.read(A) == f"old {A}".encode()
    assert disk.read_text(A) == f"old {A}"
    for path in ("nothing", "projects/nothing/a.md", f"{A}/below", "../elsewhere/a.md"):
        assert disk.read(path) is None
        assert disk.status(path) is None
        assert not disk.is_folder(path)
    assert disk.entries("nothing") == []
    assert disk.entries(A) == []
    assert [name for name, _ in disk.entries("projects/p")] == ["a.md", "b.md", "deep"]
    assert list(disk.files("projects")) == [A, B, "projects/p/deep/c.md"]


def test_what_is_no_text_is_refused_and_left(disk):
    (disk.root / A).write_bytes(b"abc\xe9")
    assert refusal(disk.read_text, A) is Code.INVALID_CONTENT
    assert disk.read(A) == b"abc\xe9"


def test_a_file_that_is_too_large_is_refused(disk):
    with (disk.root / A).open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES)
    assert len(disk.read(A)) == LARGEST_FILE_BYTES
    with (disk.root / A).open("wb") as file:
        file.truncate(LARGEST_FILE_BYTES + 1)
    assert refusal(disk.read, A) is Code.INVALID_CONTENT


def test_what_could_not_be_read_again_is_not_written(disk):
    assert refusal(changed, disk, {A: "x" * (LARGEST_FILE_BYTES + 1)}) is Code.INVALID_CONTENT
    assert disk.read_text(A) == f"old {A}"


@posix_only
def test_what_is_no_file_is_refused_and_keeps_nobody_waiting(disk):
    os.mkfifo(disk.root / "pipe")
    for path in ("pipe", "projects"):
        assert refusal(disk.read, path) is Code.INVALID_PATH
    assert "pipe" not in list(disk.files(""))


def test_a_name_that_is_too_long_is_refused(disk):
    for do in (disk.read, disk.status):
        assert refusal(do, f"projects/{'x' * 256}") is Code.INVALID_FILENAME
    assert refusal(changed, disk, {f"projects/{'x' * 256}": ""}) is Code.INVALID_FILENAME


@posix_only
def test_a_file_is_kept_for_undoing_where_there_are_no_hard_links(disk, monkeypatch):
    def refused(*_, **__):
        raise PermissionError("no hard links")  # as on Android, and on exFAT

    monkeypatch.setattr(os, "link", refused)
    (disk.root / A).chmod(0o600)
    applied = changed(disk, {A: "new"})
    assert disk.read_text(A) == "new"
    applied.undo()
    assert disk.read_text(A) == f"old {A}"
    assert (disk.root / A).stat().st_mode & 0o777 == 0o600
    assert left(disk) == []


# -- links -------------------------------------------------------------------------------------


@posix_only
def test_a_link_is_not_read(disk, elsewhere):
    (disk.root / "file").symlink_to(elsewhere / "a.md")
    (disk.root / "folder").symlink_to(elsewhere)
    assert refusal(disk.read, "file") is Code.INVALID_PATH
    assert disk.read("folder/a.md") is None
    assert disk.read("folder/deep/c.md") is None
    assert disk.status("folder/a.md") is None
    assert not disk.is_folder("folder")
    assert not disk.is_folder("folder/deep")
    assert disk.entries("folder") == []
    assert disk.entries("folder/deep") == []
    assert {name for name, _ in disk.entries("")} == {".git", "projects"}
    assert all(path.startswith("projects/") for path in disk.files(""))


@posix_only
@pytest.mark.parametrize(
    "path", ["file", "folder", "folder/a.md", "folder/new.md", "folder/n/m.md"]
)
def test_a_link_is_not_written_through(disk, elsewhere, path):
    (disk.root / "file").symlink_to(elsewhere / "a.md")
    (disk.root / "folder").symlink_to(elsewhere)
    before = files_of(disk.root)
    assert refusal(changed, disk, {A: "new", path: "x"}) is Code.INVALID_PATH
    assert refusal(changed, disk, {f"{path}/x": "x"}, (), path) is Code.INVALID_PATH
    assert files_of(disk.root) == before
    assert left(disk) == []


@posix_only
@pytest.mark.parametrize("path", ["folder/a.md", "folder/deep"])
def test_nothing_is_dropped_behind_a_link(disk, elsewhere, path):
    (disk.root / "folder").symlink_to(elsewhere)
    assert refusal(changed, disk, {}, [A, path]) is Code.INVALID_PATH
    assert disk.read_text(A) == f"old {A}"


@posix_only
def test_a_folder_is_dropped_and_what_its_links_lead_to_is_not(disk, elsewhere):
    (disk.root / "projects/p/link").symlink_to(elsewhere)
    (disk.root / "projects/p/deep/link.md").symlink_to(elsewhere / "a.md")
    changed(disk, {}, ["projects/p"]).finish()
    assert files_of(disk.root) == {"projects": "folder"}
    assert left(disk) == []


@posix_only
@pytest.mark.parametrize("place", [".git", OWN])
def test_our_own_folder_is_not_where_a_link_leads(disk, elsewhere, place):
    if place == ".git":
        (disk.root / place).rmdir()
    (disk.root / place).symlink_to(elsewhere)
    before = files_of(disk.root)
    assert refusal(changed, disk, {A: "new"}) is Code.INVALID_PATH
    assert refusal(changed, disk, {}, [A]) is Code.INVALID_PATH
    assert refusal(disk.tidy) is Code.INVALID_PATH
    assert files_of(disk.root) == before


@posix_only
def test_a_file_with_two_names_changes_under_one(disk, elsewhere):
    (disk.root / "same.md").hardlink_to(elsewhere / "a.md")
    changed(disk, {"same.md": "new"}).finish()
    assert disk.read_text("same.md") == "new"


@pytest.mark.parametrize("path", ["../elsewhere/a.md", "projects/../../elsewhere/a.md", "../new"])
def test_no_path_leads_up(disk, elsewhere, path):
    for change in ({"puts": {path: "x"}}, {"drops": [path]}, {"puts": {f"{path}/x": "x"}}):
        with pytest.raises(Refusal):
            changed(disk, **change)
    assert list(disk.files("..")) == []


# -- changing ----------------------------------------------------------------------------------


def test_a_change_is_made_whole(disk):
    changed(disk, {A: "new", "projects/q/x/new.md": "more"}, [B, "projects/p/deep"]).finish()
    found = {path: data for path, data in files_of(disk.root).items() if data != "folder"}
    assert found == {A: b"new", "projects/q/x/new.md": b"more"}
    assert left(disk) == []


def test_a_folder_appears_with_all_its_files(disk):
    files = {f"projects/p/TODO/1/{name}": name for name in ("index.json", "a", "b")}
    changed(disk, files, folder="projects/p/TODO/1").finish()
    assert [name for name, _ in disk.entries("projects/p/TODO/1")] == ["a", "b", "index.json"]


CHANGES = {
    "put": ({A: "new", B: "new"}, [], ""),
    "new": ({"projects/x/y/z.md": "new", A: "new"}, [], ""),
    "drop": ({}, [A, "projects/p/deep"], ""),
    "put and drop": ({"index.json": "new", "projects/q/a.md": "new"}, ["projects/p"], ""),
    "folder": ({"n/m/a": "1", "n/m/b": "2", "index.json": "{}", A: "new"}, [], "n/m"),
}
IMPOSSIBLE = {
    "a folder of that name": ({"projects/p/deep": "x"}, []),
    "a file on the way": ({f"{A}/x": "x"}, []),
    "nothing to drop": ({}, ["nothing"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_done_is_undone_without_a_trace(disk, name):
    before = files_of(disk.root)
    applied = changed(disk, *CHANGES[name])
    assert files_of(disk.root) != before
    applied.undo()
    assert files_of(disk.root) == before
    assert left(disk) == []


def test_a_step_that_cannot_be_undone_stops_no_other(disk):
    before = files_of(disk.root)
    applied = changed(disk, {A: "new", "projects/q/new.md": "new", B: "new"})
    (disk.root / "projects/q/new.md").unlink()
    (disk.root / "projects/q").rmdir()
    applied.undo()
    assert files_of(disk.root) == before
    assert left(disk) == []


SAVED = {
    "over a new content": ({A: "new", B: "new"}, [], "", A, True),
    "over a new file": ({"projects/q/a.md": "new", B: "new"}, [], "", "projects/q/a.md", False),
    "in a new folder": ({"n/m/a": "1", "n/m/b": "2"}, [], "n/m", "n/m/mine.md", False),
    "over a file of a new folder": ({"n/m/a": "1", "n/m/b": "2"}, [], "n/m", "n/m/a", False),
    "in place of a removed file": ({B: "new"}, [A], "", A, True),
    "in a removed folder": ({}, ["projects/p"], "", A, True),
    "beside a removed file": ({}, ["projects/p"], "", "projects/p/mine.md", False),
}


@pytest.mark.parametrize("name", SAVED)
def test_undoing_leaves_what_somebody_has_saved_meanwhile(disk, name):
    puts, drops, folder, path, is_kept = SAVED[name]
    before = files_of(disk.root)
    applied = changed(disk, puts, drops, folder)
    put(disk.root, path, "saved by hand")
    others = applied.undo()
    now = {each: data for each, data in files_of(disk.root).items() if data != "folder"}
    assert now.pop(path) == b"saved by hand"
    assert now == {p: data for p, data in before.items() if data != "folder" and p != path}
    kept = [name for name in left(disk) if name.endswith(".kept")]
    assert left(disk) == kept
    assert bool(kept) == is_kept
    assert bool(others) == (name != "beside a removed file")
    disk.tidy()
    if is_kept:
        [kept] = [p for p in (disk.root / OWN / kept[0]).rglob("*") if p.is_file()] or [
            disk.root / OWN / kept[0]
        ]
        assert kept.read_bytes() == before[path]


def test_what_could_not_be_put_back_is_in_the_error(disk):
    applied = changed(disk, {A: "new"})
    put(disk.root, A, "saved by hand")
    said = rf"^no space; but {A} was saved"
    with pytest.raises(Refusal, match=said) as refused, or_undone([applied]):
        raise Refusal(Code.GIT_COMMAND_FAILED, "no space", path=B)
    assert refused.value.code == Code.GIT_COMMAND_FAILED
    assert refused.value.context == {"path": B}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("why", IMPOSSIBLE)
def test_a_change_that_fails_halfway_is_undone(disk, name, why):
    puts, drops, folder = CHANGES[name]
    more, fewer = IMPOSSIBLE[why]
    before = files_of(disk.root)
    with pytest.raises(Refusal):
        changed(disk, {**puts, **more}, [*drops, *fewer], folder)
    assert files_of(disk.root) == before
    assert left(disk) == []


@posix_only
def test_who_may_read_a_file_stays(disk):
    (disk.root / A).chmod(0o600)
    (disk.root / B).chmod(0o755)
    changed(disk, {A: "new", B: "new", "projects/p/new.md": "new"}).finish()
    modes = [(disk.root / path).stat().st_mode & 0o777 for path in (A, B)]
    assert modes == [0o600, 0o755]
    changed(disk, {A: "newer"}).undo()
    assert (disk.root / A).stat().st_mode & 0o777 == 0o600


def test_what_a_killed_process_left_goes_and_nothing_else(disk):
    for name in ("1.old", "2.part", "lock", "changing", "old", "part.md"):
        put(disk.root, f"{OWN}/{name}")
    for name in ("3.old", "4.part"):
        put(disk.root, f"{OWN}/{name}/deep/a.md")
    before = files_of(disk.root)
    disk.tidy()
    assert left(disk) == ["changing", "lock", "old", "part.md"]
    assert files_of(disk.root) == before


@pytest.mark.slow
def test_nobody_reads_half_a_file(disk):
    texts = [letter * size for letter, size in (("a", 300_000), ("b", 5), ("c", 700_000))]
    changed(disk, {A: texts[0]}).finish()
    done, seen = threading.Event(), []

    def read():
        while not done.is_set():
            seen.append(disk.read_text(A))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(60):
        applied = changed(disk, {A: texts[number % 3]})
        (applied.undo if number % 5 == 0 else applied.finish)()
    done.set()
    reader.join()
    assert seen
    assert set(seen) <= set(texts)


@posix_only
def test_no_descriptor_stays_open(disk, elsewhere):
    (disk.root / "folder").symlink_to(elsewhere)
    count = partial(os.listdir, "/dev/fd")
    before = len(count())
    changed(disk, *CHANGES["folder"]).finish()
    changed(disk, *CHANGES["put and drop"][:1]).undo()
    for do in (disk.read, disk.status, disk.entries, disk.tidy):
        do(*["folder/a.md"] * (do != disk.tidy))
    for path in ("folder/x", A + "/x"):
        with pytest.raises(Refusal):
            changed(disk, {path: "x"})
    assert len(count()) == before

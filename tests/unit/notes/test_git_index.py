"""`git status` says what it should, and what somebody has staged stays staged."""

import errno
import os
import shutil
import subprocess
import time
from contextlib import nullcontext

import pytest
from stores import files_of, git, opened, writer_of, wrote
from waiting import PATIENCE_SECONDS
from writing import put

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import applying, git_index, index_lock
from vector_index_mcp.notes.store.history import write
from vector_index_mcp.notes.store.index_lock import IndexIsLocked
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.writer import Writer
from vector_index_mcp.notes.store_calls import look

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("ann")]

A, B, C = (f"projects/p/{name}.md" for name in "abc")


@pytest.fixture
def writer(tmp_path):
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "a", B: "b"})
        yield writer


@pytest.fixture
def index(writer):
    """It is up to date."""
    return writer.index


class NoIndex:
    """For a writer that lets the index lag behind."""

    def locked(self):
        return nullcontext()

    def moving(self, *_):
        return nullcontext(self)

    def begin(self):
        pass

    def arrive(self, _):
        pass

    def catch_up(self):
        pass


def wrote_behind(writer, puts):
    """Have a change made that the index does not have."""
    index, writer.index = writer.index, NoIndex()
    try:
        wrote(writer, puts)
    finally:
        writer.index = index


def status(store):
    return git(store, "status", "--porcelain", "--untracked-files=all").splitlines()


def staged(store, path):
    """What the index has for a file."""
    return git(store, "show", f":{path}")


# -- ours --------------------------------------------------------------------------------------


def test_a_new_store_is_clean(index, store):
    assert status(store) == []
    assert git(store, "stash", "list") == ""


@pytest.mark.slow
def test_it_is_clean_after_changes_of_every_kind(writer, index, store):
    wrote(writer, {A: "changed", C: "new"}, [B])
    wrote(writer, {"index.json": "{}", "a": "x"})
    wrote(writer, {}, ["a"])
    wrote(writer, {"a/b": "a folder where a file was"})
    index.refresh()
    assert status(store) == []
    assert git(store, "ls-files").splitlines() == [
        ".gitignore", "README.md", "a/b", "index.json", A, C,
    ]  # fmt: skip


@pytest.mark.slow
def test_an_index_that_is_old_or_gone_is_made_anew(writer, index, store):
    (store / ".git/index").unlink()
    wrote(writer, {A: "changed"})
    writer.index.refresh()
    assert status(store) == []


def replaced(store):
    """Put another repository, with the same files, in the place of a store's."""
    files = {path: data for path, data in files_of(store).items() if isinstance(data, bytes)}
    shutil.rmtree(store)
    for path, data in files.items():
        put(store, path, data.decode())
    git(store, "init", "--quiet", "--initial-branch=main")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Bob's")


@pytest.mark.slow
def test_it_is_clean_after_the_repository_was_replaced(writer, index, store):
    replaced(store)
    wrote(writer, {A: "ours"})
    index.refresh()
    assert status(store) == []
    git(store, "commit", "--quiet", "--allow-empty", "-m", "Bob's")
    assert git(store, "show", f"HEAD:{A}") == "ours"


@pytest.mark.slow
def test_it_is_told_of_what_opening_the_store_has_committed(tmp_path, writer, store):
    wanted = []
    put(store, A, "by hand")
    disk = writer.disk
    another = Writer(disk, Repository(disk, tmp_path / "state"), lambda: wanted.append("look"))
    another.start()
    opened(another)
    opened(another)
    another.stop()
    assert wanted == ["look"]


@pytest.mark.slow
def test_what_changed_again_since_the_store_was_opened_is_not_staged(store, tmp_path):
    """The index has what it had when we came, although the disk has something newer by now."""
    put(store, A, "old")
    git(store, "init", "--quiet", "--initial-branch=main")
    git(store, "add", "--all")
    git(store, "commit", "--quiet", "-m", "Bob's")
    put(store, A, "by hand")
    with writer_of(tmp_path) as writer:
        opened(writer)
        put(store, A, "newer")
        writer.index.refresh()
    assert status(store) == [f" M {A}"]


@pytest.mark.slow
def test_who_may_run_a_file_stays(writer, store):
    put(store, "tool.sh", "x")
    (store / "tool.sh").chmod(0o755)
    git(store, "add", "tool.sh")
    git(store, "commit", "--quiet", "-m", "Bob's", "tool.sh")
    wrote(writer, {"tool.sh": "y"})
    writer.index.refresh()
    assert git(store, "ls-files", "--stage", "tool.sh").startswith("100755 ")
    assert status(store) == []


# -- theirs ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_somebody_has_staged_stays_staged(writer, index, store):
    put(store, A, "staged")
    put(store, "projects/p/new.md", "staged")
    git(store, "add", A, "projects/p/new.md")
    git(store, "rm", "--quiet", "--cached", B)
    put(store, A, "not staged")
    wrote(writer, {C: "ours"})
    index.refresh()
    assert staged(store, A) == "staged"
    assert staged(store, "projects/p/new.md") == "staged"
    assert status(store) == [f"MM {A}", f"D  {B}", "A  projects/p/new.md", f"?? {B}"]
    assert git(store, "commit", "--quiet", "-m", "Bob's") == ""
    assert git(store, "show", f"HEAD:{A}") == "staged"
    assert git(store, "show", f"HEAD:{C}") == "ours"


@pytest.mark.slow
def test_what_we_change_ourselves_is_no_longer_staged(writer, index, store):
    put(store, A, "staged")
    git(store, "add", A)
    wrote(writer, {A: "ours"})
    index.refresh()
    assert status(store) == []
    assert git(store, "show", f"HEAD~1:{A}") == "staged"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["other", "deleted", "added"])
def test_what_was_staged_before_we_began_stays_staged(writer, index, store, tmp_path, what):
    put(store, A, "staged")
    if what == "deleted":
        git(store, "rm", "--quiet", "--cached", A)
    else:
        git(store, "add", A)
    if what == "added":
        put(store, C, "staged")
        git(store, "add", C)
        (store / C).unlink()
    put(store, A, "a")
    before = [line for line in status(store) if line[0] != "?"]
    assert before
    with writer_of(tmp_path) as another:
        opened(another)
        wrote(another, {"projects/p/ours.md": "ours"})
        another.index.refresh()
    assert [line for line in status(store) if line[0] != "?"] == before


def test_an_ignored_file_that_was_staged_all_the_same_stays_staged(writer, store):
    put(store, "a.tmp", "staged")
    git(store, "add", "--force", "a.tmp")
    writer.index.refresh()
    assert status(store) == ["A  a.tmp"]


@pytest.mark.slow
def test_while_somebody_holds_the_index_it_waits(writer, index, store):
    (store / ".git/index.lock").touch()
    wrote_behind(writer, {A: "changed"})
    with pytest.raises(Refusal):
        index.refresh()
    (store / ".git/index.lock").unlink()
    index.refresh()
    assert status(store) == []


@pytest.mark.slow
def test_a_lock_that_could_not_be_made_is_not_taken_for_ours_later(
    writer, index, store, monkeypatch
):
    make = beneath.Folder.open

    def fill_up(folder, name, *flags):
        if name == "index.lock":
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(folder, name, *flags)

    wrote_behind(writer, {A: "changed"})
    with monkeypatch.context() as meanwhile, pytest.raises(OSError, match="No space"):
        meanwhile.setattr(beneath.Folder, "open", fill_up)
        meanwhile.setattr(beneath.Folder, "link", without_links)
        index.refresh()
    (store / ".git/index.lock").touch()  # a person's git has begun
    with pytest.raises(IndexIsLocked):
        index.refresh()
    assert (store / ".git/index.lock").exists()
    (store / ".git/index.lock").unlink()
    index.refresh()
    assert status(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("has_links", [True, False])
def test_a_lock_that_a_kill_has_left_goes_and_that_of_somebody_else_stays(
    writer, index, store, monkeypatch, has_links
):
    lock = store / ".git/index.lock"
    wrote_behind(writer, {A: "changed"})
    with monkeypatch.context() as meanwhile:
        if not has_links:
            meanwhile.setattr(beneath.Folder, "link", without_links)
        meanwhile.setattr(beneath.Folder, "remove", lambda *_: None)  # as if it were killed
        with index.locked():
            pass
    assert lock.exists()
    if not has_links:  # nobody can tell whose it is
        with pytest.raises(IndexIsLocked):
            index.refresh()
        lock.unlink()
    index.refresh()
    assert not lock.exists()
    assert status(store) == []
    wrote_behind(writer, {A: "again"})
    lock.touch()
    with pytest.raises(IndexIsLocked):
        index.refresh()
    assert lock.exists()


@pytest.mark.slow
def test_no_lock_is_left_if_the_index_cannot_be_replaced(writer, index, store, monkeypatch):
    move = beneath.Folder.move

    def full(folder, name, to, new):
        if new == "index":
            raise OSError(errno.ENOSPC, "No space left on device")
        move(folder, name, to, new)

    before = (store / ".git/index").read_bytes()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(beneath.Folder, "move", full)
        wrote(writer, {A: "changed"})
    assert not (store / ".git/index.lock").exists()
    assert (store / ".git/index").read_bytes() == before
    index.refresh()
    assert status(store) == []


def without_links(*_):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["once", "always"])
def test_an_index_in_two_files_is_followed(writer, index, store, setting):
    git(store, "update-index", "--split-index")
    if setting == "always":
        git(store, "config", "core.splitIndex", "true")
    wrote(writer, {A: "changed", C: "new"})
    index.refresh()
    assert status(store) == []
    put(store, B, "mine")
    git(store, "add", B)
    wrote(writer, {A: "again"})
    index.refresh()
    assert status(store) == [f"M  {B}"]


@pytest.mark.slow
def test_a_broken_index_is_left_to_its_owner(writer, index, store):
    (store / ".git/index").write_bytes(b"broken")
    wrote_behind(writer, {A: "changed"})
    with pytest.raises(Refusal):
        index.refresh()
    assert (store / ".git/index").read_bytes() == b"broken"
    assert (store / A).read_text(encoding="utf-8") == "changed"


def test_nothing_is_made_where_no_store_is(tmp_path):
    (tmp_path / "store").mkdir()
    with writer_of(tmp_path) as writer:
        writer.index.refresh()
    assert files_of(tmp_path / "store") == {}
    assert not (tmp_path / "store/.git").exists()


# -- when a change is answered -------------------------------------------------------------------


@pytest.mark.slow
def test_the_index_has_a_change_when_it_is_answered(writer, store):
    for puts, drops in (({A: "changed", C: "new"}, []), ({"a": "x"}, []), ({}, ["a"])):
        wrote(writer, puts, drops)
        assert status(store) == []
    wrote(writer, {"a/b": "in a folder where a file was"})
    assert status(store) == []
    put(store, B, "staged")
    git(store, "add", B)
    wrote(writer, {A: "again"}, [C])
    assert status(store) == [f"M  {B}"]


@pytest.mark.slow
def test_the_index_has_what_was_edited_by_hand_when_that_is_committed(writer, store):
    put(store, A, "by hand")
    writer.alone(writer.take_over_by_hand).result(PATIENCE_SECONDS)
    assert status(store) == []


@pytest.mark.slow
def test_the_index_has_what_a_move_of_the_branch_has_brought(writer, store):
    branch, before = "refs/heads/main", git(store, "rev-parse", "HEAD")
    wrote(writer, {A: "changed", C: "new"}, [B])
    after = git(store, "rev-parse", "HEAD")
    writer.alone(lambda: writer.move(branch, after, before)).result(PATIENCE_SECONDS)
    assert git(store, "diff", "--cached", "--name-only") == ""
    writer.alone(lambda: writer.move(branch, before, after)).result(PATIENCE_SECONDS)
    assert status(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["files", "branch"])
def test_no_git_of_a_person_comes_between_the_files_and_the_index(
    writer, store, monkeypatch, moment
):
    """Else `git restore` would undo the files, and `git commit` record the index of before."""
    name = {"files": "applying.apply", "branch": "writer.write"}[moment]
    do = {"files": applying.apply, "branch": write}[moment]
    said = []

    def done(*arguments):
        made = do(*arguments)
        for command in ("commit --allow-empty -m B", "restore .", "add --all"):
            ran = subprocess.run(["git", *command.split()], cwd=store, capture_output=True)
            said.append(b"index.lock" in ran.stderr)
        return made

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(f"vector_index_mcp.notes.store.{name}", done)
        wrote(writer, {A: "ours"})
    assert said == [True] * 3
    git(store, "commit", "--quiet", "--allow-empty", "-m", "Bob's")
    git(store, "restore", ".")
    assert git(store, "show", f"HEAD:{A}") == (store / A).read_text(encoding="utf-8") == "ours"


def fail(*_):
    raise Refusal(Code.GIT_COMMAND_FAILED, "git was killed")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["writer.write", "history.move"])
def test_a_commit_that_fails_leaves_the_index_and_no_lock(writer, store, monkeypatch, step):
    put(store, B, "staged")
    git(store, "add", B)
    with monkeypatch.context() as meanwhile, pytest.raises(Refusal, match="was killed"):
        meanwhile.setattr(f"vector_index_mcp.notes.store.{step}", fail)
        wrote(writer, {A: "ours"})
    assert status(store) == [f"M  {B}"]
    assert not (store / ".git/index.lock").exists()
    wrote(writer, {A: "ours"})
    assert status(store) == [f"M  {B}"]


@pytest.mark.slow
def test_a_note_of_ours_that_cannot_be_read_stops_no_change(writer, store):
    (store / git_index._NOTED).unlink()
    (store / git_index._NOTED).mkdir()
    wrote(writer, {A: "ours"})
    assert git(store, "show", f"HEAD:{A}") == "ours"


@pytest.mark.slow
def test_what_is_committed_stays_so_if_a_rebase_begins_right_behind(writer, index, store):
    (store / ".git/index.lock").touch()
    wrote_behind(writer, {A: "changed"})
    assert index.is_kept_back
    put(store, ".git/HEAD", git(store, "rev-parse", "HEAD"))
    assert not index.is_kept_back


@pytest.mark.slow
def test_if_a_kill_keeps_the_branch_back_a_persons_commit_adds_the_change(
    writer, store, monkeypatch
):
    """The other order would have it undone."""
    put(store, B, "mine")
    git(store, "add", B)
    with monkeypatch.context() as killed, pytest.raises(Refusal, match="was killed"):
        killed.setattr("vector_index_mcp.notes.store.history.move", fail)
        killed.setattr(git_index.Move, "end", lambda _: None)
        wrote(writer, {A: "ours"})
    git(store, "commit", "--quiet", "-m", "Bob's")
    assert git(store, "show", f"HEAD:{A}") == "ours"
    assert git(store, "show", f"HEAD:{B}") == "mine"
    git(store, "fsck", "--strict")


@pytest.mark.slow
def test_a_change_waits_for_a_git_that_holds_the_index_for_a_moment(writer, store, monkeypatch):
    lock = store / ".git/index.lock"
    lock.touch()
    lock_it, tries = index_lock._is_locked_by_us, []

    def try_and_end_the_git(*folders):
        tries.append(lock_it(*folders))
        if not tries[-1]:
            lock.unlink()
        return tries[-1]

    monkeypatch.setattr(index_lock, "_is_locked_by_us", try_and_end_the_git)
    wrote(writer, {A: "ours"})
    assert tries == [False, True]
    assert status(store) == []


@pytest.mark.slow
def test_a_change_does_not_wait_for_an_editor_that_holds_the_index(writer, store, monkeypatch):
    monkeypatch.setattr(index_lock, "_SECONDS", 0.0)
    (store / ".git/index.lock").touch()
    wrote(writer, {A: "ours"})
    assert (store / ".git/index.lock").exists()
    assert writer.index.behind() == [A]
    (store / ".git/index.lock").unlink()
    writer.index.refresh()
    assert writer.index.behind() == []
    assert status(store) == []


@pytest.mark.slow
def test_no_change_waits_for_a_lock_that_is_old_and_the_status_names_it(writer, store, monkeypatch):
    lock = store / ".git/index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60,) * 2)

    monkeypatch.setattr(index_lock, "_SECONDS", 1e6)
    wrote(writer, {A: "ours"})
    looked = writer.alone(lambda: look(writer)).result(PATIENCE_SECONDS)
    [words] = looked.left_alone
    assert f"git's index has an older state of {A}, since somebody holds .git/index.lock" in words
    lock.unlink()
    writer.index.refresh()
    assert writer.alone(lambda: look(writer)).result(PATIENCE_SECONDS).left_alone == ()


# -- damage ----------------------------------------------------------------------------------------


def garbled(data):
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda _: b"broken", "is no index of git"),
        (lambda _: b"", "is no index of git"),
        (garbled, "checksum of .git/index is wrong"),
        (lambda data: data[:-30], "checksum of .git/index is wrong"),
    ],
)
def test_a_damaged_index_is_named_and_repaired_and_kept_aside(writer, index, store, damage, words):
    path = store / ".git/index"
    assert index.damage() == ""
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    assert words in index.damage()
    wrote(writer, {A: "changed"})
    assert path.read_bytes() == damaged
    index.repair()
    assert index.damage() == ""
    assert status(store) == []
    assert (store / ".git/index.damaged").read_bytes() == damaged


def test_an_index_without_a_checksum_is_none_that_is_damaged(writer, index, store):
    git(store, "config", "index.skipHash", "true")
    put(store, A, "mine")
    git(store, "add", A)
    assert index.damage() == ""


@pytest.mark.slow
def test_an_index_that_lags_behind_is_repaired_and_what_is_staged_stays(writer, index, store):
    put(store, B, "staged")
    git(store, "add", B)
    wrote_behind(writer, {A: "changed"})
    assert index.behind() == [A]
    index.repair()
    assert index.behind() == []
    assert status(store) == [f"M  {B}"]
    assert not (store / ".git/index.damaged").exists()


@pytest.mark.slow
def test_nothing_is_repaired_while_somebody_holds_the_index(writer, index, store):
    (store / ".git/index").write_bytes(b"broken")
    (store / ".git/index.lock").touch()
    with pytest.raises(IndexIsLocked):
        index.repair()
    assert (store / ".git/index").read_bytes() == b"broken"


@pytest.mark.slow
def test_what_a_branch_that_was_set_back_leaves_in_the_index_stays_staged(writer, store):
    new = "projects/p/new.md"
    wrote(writer, {A: "one"})
    wrote(writer, {new: "two"})
    writer.index.refresh()
    git(store, "reset", "--quiet", "--soft", "HEAD~1")
    assert status(store) == [f"A  {new}"]
    wrote(writer, {A: "three"})
    writer.index.refresh()
    assert status(store) == [f"A  {new}"]
    assert git(store, "show", f"HEAD:{A}") == "three"

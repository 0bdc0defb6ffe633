"""`git status` says what it should, and what somebody has staged stays staged."""

import errno
import shutil
import threading

import pytest
from stores import files_of, git, opened, settings_of_ann, writer_of, wrote
from waiting import PATIENCE_SECONDS, eventually
from writing import put

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.staging import Staging
from vector_index_mcp.notes.store.writer import Writer

pytestmark = pytest.mark.anyio

A, B, C = (f"projects/p/{name}.md" for name in "abc")


@pytest.fixture(autouse=True)
def ann(tmp_path, monkeypatch):
    for name, value in settings_of_ann(tmp_path).items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def writer(tmp_path):
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "a", B: "b"})
        yield writer


@pytest.fixture
def staging(writer):
    """The index is up to date."""
    staging = Staging(writer.disk, writer.repository)
    staging.refresh()
    return staging


def status(store):
    return git(store, "status", "--porcelain", "--untracked-files=all").splitlines()


def staged(store, path):
    """What the index has for a file."""
    return git(store, "show", f":{path}")


# -- ours --------------------------------------------------------------------------------------


def test_a_new_store_is_clean(staging, store):
    assert status(store) == []
    assert git(store, "stash", "list") == ""


def test_it_is_clean_after_changes_of_every_kind(writer, staging, store):
    wrote(writer, {A: "changed", C: "new"}, [B])
    wrote(writer, {"index.json": "{}", "a": "x"})
    wrote(writer, {}, ["a"])
    wrote(writer, {"a/b": "a folder where a file was"})
    staging.refresh()
    assert status(store) == []
    assert git(store, "ls-files").splitlines() == [
        ".gitignore", "README.md", "a/b", "index.json", A, C,
    ]  # fmt: skip


def test_an_index_that_is_old_or_gone_is_made_anew(writer, staging, store):
    (store / ".git/index").unlink()
    wrote(writer, {A: "changed"})
    Staging(writer.disk, writer.repository).refresh()
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


def test_it_is_clean_after_the_repository_was_replaced(writer, staging, store):
    replaced(store)
    wrote(writer, {A: "ours"})
    staging.refresh()
    assert status(store) == []
    git(store, "commit", "--quiet", "--allow-empty", "-m", "Bob's")
    assert git(store, "show", f"HEAD:{A}") == "ours"


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
        Staging(writer.disk, writer.repository).refresh()
    assert status(store) == [f" M {A}"]


def test_who_may_run_a_file_stays(writer, store):
    put(store, "tool.sh", "x")
    (store / "tool.sh").chmod(0o755)
    git(store, "add", "tool.sh")
    git(store, "commit", "--quiet", "-m", "Bob's", "tool.sh")
    wrote(writer, {"tool.sh": "y"})
    Staging(writer.disk, writer.repository).refresh()
    assert git(store, "ls-files", "--stage", "tool.sh").startswith("100755 ")
    assert status(store) == []


# -- theirs ------------------------------------------------------------------------------------


def test_what_somebody_has_staged_stays_staged(writer, staging, store):
    put(store, A, "staged")
    put(store, "projects/p/new.md", "staged")
    git(store, "add", A, "projects/p/new.md")
    git(store, "rm", "--quiet", "--cached", B)
    put(store, A, "not staged")
    wrote(writer, {C: "ours"})
    staging.refresh()
    assert staged(store, A) == "staged"
    assert staged(store, "projects/p/new.md") == "staged"
    assert status(store) == [f"MM {A}", f"D  {B}", "A  projects/p/new.md", f"?? {B}"]
    assert git(store, "commit", "--quiet", "-m", "Bob's") == ""
    assert git(store, "show", f"HEAD:{A}") == "staged"
    assert git(store, "show", f"HEAD:{C}") == "ours"


def test_what_we_change_ourselves_is_no_longer_staged(writer, staging, store):
    put(store, A, "staged")
    git(store, "add", A)
    wrote(writer, {A: "ours"})
    staging.refresh()
    assert status(store) == []
    assert git(store, "show", f"HEAD~1:{A}") == "staged"


@pytest.mark.parametrize("what", ["other", "deleted", "added"])
def test_what_was_staged_before_we_began_stays_staged(writer, staging, store, tmp_path, what):
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
        Staging(another.disk, another.repository).refresh()
    assert [line for line in status(store) if line[0] != "?"] == before


def test_an_ignored_file_that_was_staged_all_the_same_stays_staged(writer, store):
    put(store, "a.tmp", "staged")
    git(store, "add", "--force", "a.tmp")
    Staging(writer.disk, writer.repository).refresh()
    assert status(store) == ["A  a.tmp"]


def test_while_somebody_holds_the_index_it_waits(writer, staging, store):
    (store / ".git/index.lock").touch()
    wrote(writer, {A: "changed"})
    with pytest.raises(Refusal):
        staging.refresh()
    (store / ".git/index.lock").unlink()
    staging.refresh()
    assert status(store) == []


def test_a_lock_that_could_not_be_made_is_not_taken_for_ours_later(
    writer, staging, store, monkeypatch
):
    make = beneath.Folder.open

    def fill_up(folder, name, *flags):
        if name == "index.lock":
            raise OSError(errno.ENOSPC, "No space left on device")
        return make(folder, name, *flags)

    wrote(writer, {A: "changed"})
    with monkeypatch.context() as meanwhile, pytest.raises(OSError, match="No space"):
        meanwhile.setattr(beneath.Folder, "open", fill_up)
        meanwhile.setattr(beneath.Folder, "link", without_links)
        staging.refresh()
    (store / ".git/index.lock").touch()  # a person's git has begun
    with pytest.raises(Refusal):
        staging.refresh()
    assert (store / ".git/index.lock").exists()
    (store / ".git/index.lock").unlink()
    staging.refresh()
    assert status(store) == []


@pytest.mark.parametrize("has_links", [True, False])
def test_a_lock_that_a_kill_has_left_goes_and_that_of_somebody_else_stays(
    writer, staging, store, monkeypatch, has_links
):
    def killed(*_):
        raise KeyboardInterrupt

    lock = store / ".git/index.lock"
    wrote(writer, {A: "changed"})
    with monkeypatch.context() as meanwhile, pytest.raises(KeyboardInterrupt):
        meanwhile.setattr(beneath.Folder, "replace", killed)
        if not has_links:
            meanwhile.setattr(beneath.Folder, "link", without_links)
        staging.refresh()
    assert lock.exists()
    if not has_links:  # nobody can tell whose it is
        lock.unlink()
    staging.refresh()
    assert not lock.exists()
    assert status(store) == []
    wrote(writer, {A: "again"})
    lock.touch()
    with pytest.raises(Refusal):
        staging.refresh()
    assert lock.exists()


def test_without_hard_links_a_lock_that_is_of_no_use_goes(writer, staging, store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    wrote(writer, {A: "changed"})
    for fails in ("move", "replace"):
        with monkeypatch.context() as meanwhile, pytest.raises(OSError, match="No space"):
            meanwhile.setattr(beneath.Folder, "link", without_links)
            meanwhile.setattr(beneath.Folder, fails, full)
            staging.refresh()
        assert not (store / ".git/index.lock").exists()
    staging.refresh()
    assert status(store) == []


def without_links(*_):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("setting", ["once", "always"])
def test_an_index_in_two_files_is_followed(writer, staging, store, setting):
    git(store, "update-index", "--split-index")
    if setting == "always":
        git(store, "config", "core.splitIndex", "true")
    wrote(writer, {A: "changed", C: "new"})
    staging.refresh()
    assert status(store) == []
    put(store, B, "mine")
    git(store, "add", B)
    wrote(writer, {A: "again"})
    staging.refresh()
    assert status(store) == [f"M  {B}"]


def test_what_somebody_stages_meanwhile_stays_staged(writer, staging, store, monkeypatch):
    run = staging._run_git

    def run_while_somebody_stages(*arguments, **given):
        said = run(*arguments, **given)
        put(store, B, "staged")
        git(store, "add", B)
        return said

    wrote(writer, {A: "changed"})
    with monkeypatch.context() as meanwhile, pytest.raises(Refusal):
        meanwhile.setattr(staging, "_run_git", run_while_somebody_stages)
        staging.refresh()
    staging.refresh()
    assert status(store) == [f"M  {B}"]


def test_a_broken_index_is_left_to_its_owner(writer, staging, store):
    (store / ".git/index").write_bytes(b"broken")
    wrote(writer, {A: "changed"})
    with pytest.raises(Refusal):
        staging.refresh()
    assert (store / ".git/index").read_bytes() == b"broken"
    assert (store / A).read_text(encoding="utf-8") == "changed"


def test_nothing_is_made_where_no_store_is(tmp_path):
    (tmp_path / "store").mkdir()
    with writer_of(tmp_path) as writer:
        Staging(writer.disk, writer.repository).refresh()
    assert files_of(tmp_path / "store") == {}
    assert not (tmp_path / "store/.git").exists()


# -- in its thread -----------------------------------------------------------------------------


def test_it_is_up_to_date_when_it_has_stopped(writer, store):
    staging = Staging(writer.disk, writer.repository)
    staging.start()
    wrote(writer, {C: "new"})
    staging.look()
    staging.stop()
    assert not staging.is_busy
    assert status(store) == []


async def test_a_commit_is_staged_at_once_and_those_behind_it_together(writer, store, monkeypatch):
    for name in ("_PAUSE_PER_UPDATE", "_LONGEST_BURST_PAUSE_SECONDS"):
        monkeypatch.setattr(f"vector_index_mcp.notes.store.staging.{name}", 1e6)
    staging = Staging(writer.disk, writer.repository)
    staging.start()
    try:
        wrote(writer, {C: "new"})
        staging.look()
        await eventually(lambda: not staging.is_busy)
        assert status(store) == []
        wrote(writer, {C: "newer"})
        staging.look()
        assert staging.is_busy
    finally:
        staging.stop()
    assert status(store) == []


def test_a_commit_during_the_last_update_but_one_is_not_left_out(writer, store, monkeypatch):
    staging = Staging(writer.disk, writer.repository)
    refresh, is_first = staging.refresh, [True]
    stopping = threading.Thread(target=staging.stop)

    def refresh_and_stop():
        refresh()
        if is_first:
            is_first.pop()
            wrote(writer, {C: "new"})
            stopping.start()
            assert staging._stopping.wait(PATIENCE_SECONDS)

    monkeypatch.setattr(staging, "refresh", refresh_and_stop)
    staging.start()
    staging.look()
    staging._thread.join(PATIENCE_SECONDS)
    stopping.join(PATIENCE_SECONDS)
    assert status(store) == []


async def test_an_error_that_nobody_foresaw_is_logged_and_tried_again(
    writer, store, monkeypatch, caplog
):
    monkeypatch.setattr("vector_index_mcp.notes.store.staging._FIRST_PAUSE_SECONDS", 0.01)
    staging = Staging(writer.disk, writer.repository)
    refresh, failures = staging.refresh, [KeyError("a surprise")]

    def fail_once():
        if failures:
            raise failures.pop()
        refresh()

    monkeypatch.setattr(staging, "refresh", fail_once)
    staging.start()
    try:
        staging.look()
        await eventually(lambda: not status(store))
    finally:
        staging.stop()
    assert "Traceback" in caplog.text
    assert "a surprise" in caplog.text


def test_it_stops_at_once_while_somebody_holds_the_index(writer, store):
    (store / ".git/index.lock").touch()
    staging = Staging(writer.disk, writer.repository)
    staging.start()
    staging.look()
    staging.stop()
    staging._thread.join(PATIENCE_SECONDS)
    assert not staging._thread.is_alive()

"""People's own git commands, and repositories that are not the store's."""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from kept import kept_by_hand
from processes import posix_only
from stores import git, opened, state_of, writer_of, wrote
from waiting import PATIENCE_SECONDS

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store import upkeep
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.upkeep import without_pruning

A = "projects/p/a.md"


@pytest.fixture
def writer(tmp_path):
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "first"})
        while (tmp_path / "store/.git/gc.pid").exists():  # it goes a moment after the answer
            time.sleep(0.001)
        yield writer


def marked(store, pid):
    (store / ".git/gc.pid").write_text(f"{pid} {socket.gethostname()}", encoding="utf-8")


# -- git gc ------------------------------------------------------------------------------------


@pytest.mark.slow
@posix_only
def test_a_write_waits_for_the_end_of_a_gc(writer, store):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as gc:
        marked(store, gc.pid)
        thread = threading.Thread(target=wrote, args=(writer, {A: "second"}))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert git(store, "show", f"HEAD:{A}") == "first"
        gc.communicate(b"\n")
        thread.join(PATIENCE_SECONDS)
    assert git(store, "show", f"HEAD:{A}") == "second"
    writer.stop()  # the mark goes a moment after the answer
    assert not (store / ".git/gc.pid").exists()


@pytest.mark.slow
@posix_only
def test_no_gc_begins_during_a_write(writer, store):
    with without_pruning(writer.disk):
        # Here as another process, which is what git takes ours for.
        git(store, "gc", "--prune=now", "--quiet", status=128)
    git(store, "gc", "--prune=now", "--quiet")


@pytest.mark.slow
@posix_only
def test_a_gc_that_does_not_end_is_told(writer, store, monkeypatch):
    monkeypatch.setattr(upkeep, "_OTHERS_SECONDS", 0.1)
    marked(store, os.getppid())
    before = state_of(store)
    with pytest.raises(Refusal, match="`git gc` has been running in"):
        wrote(writer, {A: "second"})
    assert state_of(store) == before


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("left", ["gc.pid", "gc.pid.lock"])
def test_what_a_killed_process_has_left_goes(writer, store, left):
    with subprocess.Popen([sys.executable, "-c", ""]) as gc:
        pass
    marked(store, gc.pid)
    (store / ".git/gc.pid").rename(store / ".git" / left)
    began = time.monotonic()
    wrote(writer, {A: "second"})
    assert time.monotonic() - began < upkeep._OTHERS_SECONDS
    writer.stop()  # the mark goes a moment after the answer
    assert not (store / ".git" / left).exists()


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("left", ["gc.pid", "gc.pid.lock"])
def test_a_mark_that_git_itself_no_longer_heeds_stops_nothing(writer, store, monkeypatch, left):
    """Its process was killed, and another one has its number by now."""
    monkeypatch.setattr(upkeep, "_OTHERS_SECONDS", 0.1)
    marked(store, os.getppid())
    mark = (store / ".git/gc.pid").rename(store / ".git" / left)
    hours_ago = time.time() - 13 * 3_600
    os.utime(mark, (hours_ago, hours_ago))
    wrote(writer, {A: "second"})
    assert git(store, "show", f"HEAD:{A}") == "second"


def test_a_lock_of_nobody_stops_nothing(writer, store):
    lock = store / ".git/gc.pid.lock"
    lock.touch()
    os.utime(lock, (0, 0))
    wrote(writer, {A: "second"})
    assert lock.exists()


@pytest.mark.slow
def test_nor_does_one_that_gets_too_old_meanwhile(writer, store, monkeypatch):
    monkeypatch.setattr(upkeep, "_OTHERS_SECONDS", 2.0)
    lock = store / ".git/gc.pid.lock"
    lock.touch()
    made = time.time() - 1.5
    os.utime(lock, (made, made))
    wrote(writer, {A: "second"})
    assert lock.exists()


@posix_only
@pytest.mark.slow
def test_a_gc_that_prunes_everything_all_the_time_loses_nothing(writer, store):
    over = threading.Event()

    def prune():
        while not over.is_set():
            subprocess.run(
                ["git", "-C", store, "gc", "--prune=now", "--quiet"],
                capture_output=True,
                check=False,
            )
            time.sleep(0.02)

    thread = threading.Thread(target=prune)
    thread.start()
    done = []
    for number in range(40):
        try:
            wrote(writer, {A: str(number)})
            done.append(number)
        except Refusal as refusal:  # then nothing has changed
            assert refusal.code in {Code.GIT_COMMAND_FAILED, Code.GIT_ERROR}
    over.set()
    thread.join(PATIENCE_SECONDS)
    git(store, "fsck", "--strict", "--no-dangling")
    assert git(store, "show", f"HEAD:{A}") == str(done[-1])
    assert len(git(store, "log", "--format=%h", "--", A).splitlines()) == len(done) + 1


# -- other repositories ------------------------------------------------------------------------


def test_a_work_tree_of_another_repository_is_refused(tmp_path):
    home = tmp_path / "first"
    home.mkdir()
    with kept_by_hand(home) as kept:
        kept.commit({A: "theirs"})
        kept.person("worktree", "add", "--quiet", "-b", "other", str(tmp_path / "store"))
    before = state_of(tmp_path / "store")
    with writer_of(tmp_path) as writer:
        with pytest.raises(Refusal, match="as its work tree or submodule") as refused:
            wrote(writer, {A: "ours"})
        assert refused.value.code is Code.INVALID_PATH
        with pytest.raises(Refusal):
            opened(writer)
    assert state_of(tmp_path / "store") == before


@pytest.mark.slow
@pytest.mark.parametrize("does", ["prepares", "runs git"])
def test_two_who_begin_at_once_do_not_disturb_each_other(writer, tmp_path, monkeypatch, does):
    one, other = (Repository(writer.disk, tmp_path / "fresh") for _ in range(2))
    begun, link = [], Path.symlink_to

    def linked(path, target):
        if not begun:
            begun.append(path)
            if does == "prepares":
                other.prepare()
            begun.append(other.done("for-each-ref", "refs/heads"))
        link(path, target)

    monkeypatch.setattr(Path, "symlink_to", linked)
    one.prepare()
    assert begun[1] and one.done("for-each-ref", "refs/heads") == begun[1]
    assert sorted(path.name for path in (tmp_path / "fresh/git").iterdir()) == [
        "HEAD", "config", "objects", "packed-refs", "refs", "shallow",
    ]  # fmt: skip

"""What a person's git has kept from git's index is in it soon after."""

import threading

import pytest
from stores import done, git, notes_of, serving, writer_of, wrote
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.store.staging import Staging

pytestmark = pytest.mark.anyio

A = "projects/p/a.md"


@pytest.fixture
def writer(tmp_path, monkeypatch):
    """A writer that does not wait for who holds the index."""
    monkeypatch.setattr("vector_index_mcp.notes.store.index_lock._SECONDS", 0.0)
    with writer_of(tmp_path) as writer:
        wrote(writer, {A: "a"})
        yield writer


@pytest.fixture
def lock(store, writer):
    """A person's git holds the index."""
    lock = store / ".git/index.lock"
    lock.touch()
    return lock


@pytest.fixture
def staging(writer):
    return Staging(writer.disk, writer.repository)


def status(store):
    return git(store, "status", "--porcelain", "--untracked-files=all").splitlines()


@pytest.mark.slow
async def test_a_change_is_staged_as_soon_as_the_index_is_free(writer, store, lock, staging):
    staging.start()
    try:
        wrote(writer, {A: "changed"})
        staging.look()
        assert status(store) == [f"MM {A}"]
        await eventually(lambda: not staging.is_busy)  # the service may end meanwhile
        lock.unlink()
        await eventually(lambda: status(store) == [])
    finally:
        staging.stop()


@pytest.mark.slow
def test_it_makes_a_last_attempt_when_it_is_stopped(writer, store, lock, staging):
    wrote(writer, {A: "changed"})
    lock.unlink()
    staging.start()
    staging.stop()
    assert not staging.is_busy
    assert status(store) == []


@pytest.mark.slow
def test_it_stops_at_once_while_somebody_holds_the_index(writer, lock, staging):
    wrote(writer, {A: "changed"})
    staging.start()
    staging.look()
    staging.stop()
    assert lock.exists()


@pytest.mark.slow
def test_a_commit_during_the_last_update_but_one_is_not_left_out(
    writer, store, lock, staging, monkeypatch
):
    refresh, is_first = staging._index.refresh, [True]
    stopping = threading.Thread(target=staging.stop)

    def refresh_and_stop():
        if is_first:
            is_first.pop()
            stopping.start()
            assert staging._stopping.wait(PATIENCE_SECONDS)
            lock.unlink()
            return
        refresh()

    wrote(writer, {A: "changed"})
    monkeypatch.setattr(staging._index, "refresh", refresh_and_stop)
    staging.start()
    staging.look()
    staging._thread.join(PATIENCE_SECONDS)
    stopping.join(PATIENCE_SECONDS)
    assert status(store) == []


@pytest.mark.slow
async def test_an_error_that_nobody_foresaw_is_logged_and_tried_again(
    writer, store, lock, staging, monkeypatch, caplog
):
    monkeypatch.setattr("vector_index_mcp.notes.store.staging._FIRST_PAUSE_SECONDS", 0.01)
    refresh, failures = staging._index.refresh, [KeyError("a surprise")]

    def fail_once():
        if failures:
            raise failures.pop()
        refresh()

    wrote(writer, {A: "changed"})
    lock.unlink()
    monkeypatch.setattr(staging._index, "refresh", fail_once)
    staging.start()
    try:
        staging.look()
        await eventually(lambda: not status(store))
    finally:
        staging.stop()
    assert "Traceback" in caplog.text
    assert "a surprise" in caplog.text


@pytest.mark.slow
async def test_a_service_that_starts_removes_the_lock_that_a_killed_one_has_left(
    tmp_path, writer, store, monkeypatch
):
    with monkeypatch.context() as killed:
        killed.setattr(beneath.Folder, "remove", lambda *_: None)
        with writer.index.locked():
            pass
    writer.stop()
    assert (store / ".git/index.lock").exists()
    async with notes_of(tmp_path).running():
        await eventually(lambda: not (store / ".git/index.lock").exists())


@pytest.mark.slow
async def test_a_change_that_the_index_lacks_is_answered_with_a_note(tmp_path, writer, store):
    writer.stop()
    lock = store / ".git/index.lock"
    async with serving(notes_of(tmp_path)) as client:
        text = {"project_id": "p", "content": "x"}
        assert "note" not in await done(client, "update_project_main", **text)
        lock.touch()
        noted = await done(client, "update_project_main", **text | {"content": "y"})
        assert "a `git commit` would undo it" in noted["note"]
        lock.unlink()
        await eventually(lambda: status(store) == [])
        assert "note" not in await done(client, "update_project_main", **text)

"""The note of which process writes an index."""

import os
import time

import pytest

from vector_index_mcp.indexing.opening.locks import held, new_lock, try_acquire
from vector_index_mcp.indexing.opening.writers import Writer, WriterNote, busy, note_at
from vector_index_mcp.indexing.role import Role


@pytest.fixture
def lock(tmp_path):
    return tmp_path / "0123456789abcdef.lock"


@pytest.mark.parametrize("role", [Role.KEEPER, Role.DEPUTY, Role.VISITOR])
def test_it_names_the_process_that_holds_the_lock(lock, role):
    note = WriterNote(lock)
    with held(lock):
        for is_behind in (True, False):
            note.write(role, is_behind=is_behind)
            assert note.read() == Writer(
                os.getpid(),
                is_passing=role is not Role.KEEPER,
                watches=role is not Role.VISITOR,
                is_behind=is_behind,
            )
    assert note.read() is None, "nobody holds the lock any more"


def test_a_lock_without_a_note_has_an_unknown_holder(lock):
    assert WriterNote(lock).read() is None
    with held(lock):
        assert WriterNote(lock).read() is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pid": 1', '{"pid": "x"}', '{"pid": 1}'])
def test_a_damaged_note_names_nobody(lock, text):
    with held(lock):
        note_at(lock).write_text(text)
        assert WriterNote(lock).read() is None


def test_a_note_replaces_a_link_and_leaves_its_target(lock, tmp_path):
    target = tmp_path / "precious"
    target.write_text("kept")
    note_at(lock).symlink_to(target)
    with held(lock):
        WriterNote(lock).write(Role.KEEPER, is_behind=False)
        assert WriterNote(lock).read().pid == os.getpid()
    assert target.read_text() == "kept"


def test_a_folder_in_its_way_is_no_error(lock):
    note_at(lock).mkdir()
    with held(lock):
        WriterNote(lock).write(Role.KEEPER, is_behind=False)
        assert WriterNote(lock).read() is None


def test_of_an_unknown_writer_nobody_says_that_it_follows_changes():
    known = Writer(os.getpid(), is_passing=False, watches=True, is_behind=False)
    assert "follows every change" in str(busy(known, ""))
    assert "follows every change" in str(busy(None, "another machine"))
    assert str(busy(None, "")) == "another process, which is not known, writes this index"


def test_who_looks_at_a_lock_keeps_nobody_from_it(lock, monkeypatch):
    with new_lock(lock) as looking:
        monkeypatch.setattr(time, "sleep", lambda _: looking.release())
        assert try_acquire(new_lock(lock))
    with new_lock(lock):
        monkeypatch.setattr(time, "sleep", lambda _: None)
        assert not try_acquire(new_lock(lock))


@pytest.mark.parametrize("pid", [-1, 0, 2**40])
def test_a_process_that_cannot_be_is_not_stopped(pid):
    assert Writer(pid, is_passing=True, watches=True, is_behind=False).stop == ""

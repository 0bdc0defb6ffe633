"""The note of which process writes an index."""

import os

import pytest

from vector_index_mcp.indexing.locks import held
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.writers import Writer, WriterNote, note_at


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


@pytest.mark.parametrize("pid", [-1, 0, 2**40])
def test_a_process_that_cannot_be_is_not_stopped(pid):
    assert Writer(pid, is_passing=True, watches=True, is_behind=False).stop == ""

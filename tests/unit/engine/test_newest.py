"""Commits of other programs are noticed, and a drive that hangs is not waited for."""

import threading

import pytest

from vector_index_mcp.engine.store import newest
from vector_index_mcp.engine.store.newest import Newest
from vector_index_mcp.processes import detached

pytestmark = pytest.mark.anyio


@pytest.fixture
def table(tmp_path):
    (tmp_path / "_versions").mkdir()
    (tmp_path / "_versions" / "9.manifest").touch()
    return tmp_path


async def test_a_commit_of_somebody_else_is_noticed_and_our_own_is_noted(table):
    tables = Newest([table])
    await tables.note()
    assert tables.is_as_left
    (table / "_versions" / "8.manifest").touch()
    assert not tables.is_as_left
    await tables.note()
    assert tables.is_as_left


async def test_what_could_not_be_noted_is_no_commit_of_somebody_else(table, monkeypatch):
    monkeypatch.setattr(detached, "DRIVE_SECONDS", 0.05)
    tables, answers = Newest([table]), threading.Event()
    await tables.note()
    (table / "_versions" / "8.manifest").touch()
    with monkeypatch.context() as hanging:
        hanging.setattr(newest, "state_of", lambda table: answers.wait())
        await tables.note()
        answers.set()
    assert tables.is_as_left
    (table / "_versions" / "7.manifest").touch()
    assert not tables.is_as_left

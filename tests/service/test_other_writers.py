"""What is said of another process that writes the index: it is stopped, behind or watches none."""

import os
import signal
import time
from contextlib import nullcontext
from functools import partial

import anyio
import other_process
import pytest
from fakes import FakeEmbedder
from qmd import documents_of, written
from serving import Gate, codebase_of, failing_call, found, serving, status_of
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.rendering import search_result
from vector_index_mcp.console import local
from vector_index_mcp.documents.reach import out_of_reach
from vector_index_mcp.errors import BusyError, first_of
from vector_index_mcp.indexing.following import settle
from vector_index_mcp.indexing.opening.locks import lock_of
from vector_index_mcp.indexing.opening.writers import Writer, WriterNote
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.folders import state_folder
from vector_index_mcp.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path):
    return write(tmp_path / "project", {"one.py": "apple = 1\n"})


async def test_a_service_says_that_the_writer_is_stopped(project):
    codebase = codebase_of(project, FakeEmbedder())
    lock = lock_of(str(project / ".lancedb"), project.parent / "state")
    async with codebase.running(Role.VISITOR):
        await (await codebase.index.trigger(force_reindex=False)).finished.wait()
        noted = Writer(os.getpid(), is_passing=True, watches=False, is_behind=False)
        await eventually(lambda: WriterNote(lock).read() == noted)
    with other_process.writer(lock, Role.DEPUTY) as writer:
        async with serving(codebase_of(project, FakeEmbedder())) as client:
            await eventually(partial(_has_error, client, ""))
            other_process.stop(writer)
            stopped = f"process {writer.pid}, which writes this index, is stopped"
            await eventually(partial(_has_error, client, stopped))
            answer = await client.call_tool("search_index", {"query": "apple"})
            assert f"Recent changes may be missing: {stopped}" in answer.content[0].text
            assert f"kill -CONT {writer.pid}" in await failing_call(client, "trigger_index")
            assert await found(client, "apple")
            writer.send_signal(signal.SIGCONT)
            await eventually(partial(_has_error, client, ""))
            assert not (await status_of(client))["is_writer"]


async def _has_error(client, start):
    said = (await status_of(client))["error_message"] or ""
    return said.startswith(start) if start else not said


@pytest.mark.parametrize(
    ("role", "is_behind", "said"),
    [
        (Role.DEPUTY, True, "is not done yet"),
        (Role.KEEPER, True, "is not done yet"),
        (Role.VISITOR, False, "follows no changes until it ends"),
        (Role.DEPUTY, False, ""),
    ],
)
async def test_what_another_process_has_not_indexed_is_not_said_to_be_nowhere(
    project, role, is_behind, said
):
    codebase = codebase_of(project, FakeEmbedder())
    lock = lock_of(str(project / ".lancedb"), project.parent / "state")
    async with codebase.running(Role.VISITOR):
        await (await codebase.index.trigger(force_reindex=False)).finished.wait()
    write(project, {"two.py": "mango = 1\n"})
    with other_process.writer(lock, role, is_behind=is_behind) as writer:
        for own in (Role.KEEPER, Role.VISITOR, Role.READER):
            other = codebase_of(project, FakeEmbedder())
            async with other.running(own):
                answer = search_result(await other.search("mango_count", 5), 8_000)
                status = await wire.index_status(other)
                with pytest.raises(BusyError) as refused:
                    await other.index.trigger(force_reindex=False)
            assert (said or "follows every change by itself") in str(refused.value)
            lack = f"Recent changes may be missing: process {writer.pid}, which writes this index, "
            assert (f"{lack}{said}" in (answer.note or "")) == bool(said)
            assert answer.miss.startswith("When last indexed, no" if said else "No searched file")
            assert status.status == ("SCANNING" if said else "WATCHING")


async def test_documents_that_another_process_has_not_indexed_may_be_missing(tmp_path):
    documents = documents_of(written(tmp_path), FakeEmbedder(dimension=64))
    async with documents.running(Role.DEPUTY):
        await settle(documents.index)
    lock = lock_of(str(documents.home.index), tmp_path / "state")
    with other_process.writer(lock, Role.DEPUTY, is_behind=True) as writer:
        other = documents_of(documents.home, FakeEmbedder(dimension=64))
        async with other.running(Role.READER):
            said = await out_of_reach(other)
    assert said.startswith(f"Recent changes may be missing: process {writer.pid}, which writes")


async def test_a_writer_notes_that_it_has_come_to_the_end(project):
    codebase = codebase_of(project, FakeEmbedder())
    lock = lock_of(str(project / ".lancedb"), project.parent / "state")
    gate = Gate(codebase)
    async with codebase.running(Role.KEEPER):
        await gate.wait()
        assert WriterNote(lock).read().is_behind
        gate.open()
        await eventually(lambda: not WriterNote(lock).read().is_behind)


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Settings(embedding_model="/nowhere", embedding_cache_dir=str(tmp_path / "cache"))


async def test_index_waits_for_another_command(project, settings, monkeypatch):
    shown = []
    bar = nullcontext(lambda what, done, total: shown.append(what))
    monkeypatch.setattr(local.progress, "shown", lambda: bar)
    lock = lock_of(str(project / ".lancedb"), state_folder())
    with other_process.writer(lock, Role.DEPUTY) as writer:
        async with anyio.create_task_group() as tasks:
            began = time.monotonic()
            tasks.start_soon(partial(local.index, project, settings, began, force=False))
            await eventually(lambda: shown)
            waiting = f"waiting for process {writer.pid}, which indexes the same folder"
            assert set(shown) == {waiting}
            writer.kill()
    assert "indexing files" in shown


async def test_index_does_not_wait_for_a_command_that_is_stopped(project, settings):
    lock = lock_of(str(project / ".lancedb"), state_folder())
    with other_process.writer(lock, Role.VISITOR) as writer:
        other_process.stop(writer)
        with pytest.raises(BusyError, match=f"process {writer.pid}, .* is stopped"):
            await local.index(project, settings, time.monotonic(), force=False)


async def test_index_does_not_wait_for_a_service(project, settings):
    lock = lock_of(str(project / ".lancedb"), state_folder())
    with other_process.writer(lock, Role.KEEPER), pytest.raises(ExceptionGroup) as refused:
        await local.index(project, settings, time.monotonic(), force=False)
    assert "another process keeps this index" in str(first_of(refused.value))

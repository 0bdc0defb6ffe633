"""An error in the middle of something leaves the index as true as if it had not come."""

from dataclasses import replace

import anyio
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, contents, converged, fresh_contents, is_as_fresh, serving
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.errors import Problem, StorageError, StoreError
from vector_index_mcp.files.conversion import NEEDS_EXTRA
from vector_index_mcp.indexing import live as lives
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.reasons import INDEXED, SKIPPED
from vector_index_mcp.indexing.writing import indexer as indexing
from vector_index_mcp.indexing.writing import scanned

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(indexing, "_RETRY_SECONDS", (0.01,))


@pytest.fixture
def project(tmp_path):
    return write(tmp_path / "project", {"one.py": "apple = 1\n", "two.py": "banana = 2\n"})


def fails_once(monkeypatch, of, name, first=lambda: None):
    """Let a method fail at the next call, after `first`; returns an event, set when it has."""
    method, failed = getattr(of, name), anyio.Event()

    async def failing(*arguments, **options):
        monkeypatch.setattr(of, name, method)
        first()
        failed.set()
        raise StoreError("the disk is full")

    monkeypatch.setattr(of, name, failing)
    return failed


async def saved_in_vain(codebase, monkeypatch, file, meanwhile):
    """Save a file whose commit fails: its rows are new, the record is not, and then `meanwhile`."""
    await converged(codebase)
    store = codebase.index.indexer.live.index.store
    failed = fails_once(monkeypatch, store, "put_records", meanwhile)
    file.write_text("cherry = 1\n")
    with anyio.fail_after(PATIENCE_SECONDS):
        await failed.wait()


async def test_an_undo_before_the_next_try_of_a_commit_is_indexed(project, monkeypatch):
    codebase, file = codebase_of(project, FakeEmbedder()), project / "one.py"
    before = file.read_text()
    async with serving(codebase) as client:
        await saved_in_vain(codebase, monkeypatch, file, lambda: file.write_text(before))
        await is_as_fresh(client, project)


async def test_a_new_file_that_goes_before_the_next_try_leaves_no_rows(project, monkeypatch):
    codebase, file = codebase_of(project, FakeEmbedder()), project / "new.py"
    async with serving(codebase) as client:
        await saved_in_vain(codebase, monkeypatch, file, file.unlink)
        await is_as_fresh(client, project)


async def test_a_run_ends_although_an_error_came_after_its_last_batch(project, monkeypatch):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        indexer = codebase.index.indexer
        check, failed = Live.check_index, anyio.Event()

        async def failing(live, *, each_file=False):
            run = indexer.runs.current
            if run is not None and not indexer.runs.is_walk_due and not failed.is_set():
                failed.set()
                raise StorageError("the drive does not answer")
            await check(live, each_file=each_file)

        monkeypatch.setattr(Live, "check_index", failing)
        run = await codebase.index.trigger(force_reindex=False)
        with anyio.fail_after(PATIENCE_SECONDS):
            await failed.wait()
            await run.finished.wait()
        await eventually(lambda: not indexer.is_in_error)


async def test_a_damaged_index_that_cannot_be_replaced_yet_is_replaced_once_that_is_possible(
    project, monkeypatch
):
    monkeypatch.setattr(indexing, "_RETRY_SECONDS", (0.01, 3_600.0))
    codebase = codebase_of(project, FakeEmbedder())
    async with serving(codebase) as client:
        await converged(codebase)
        indexer, commit = codebase.index.indexer, codebase.index.pipeline.commit
        damaged = indexer.live.index.store

        async def failing(store, *arguments):
            if store is damaged:
                raise StoreError("words that nobody knows", Problem.INDEX_DAMAGED)
            return await commit(store, *arguments)

        codebase.index.pipeline.commit = failing
        fails_once(monkeypatch, indexer, "_start_over")
        write(project, {"two.py": "cherry = 1\n"})
        await eventually(lambda: "the disk is full" in codebase.index.progress.error)
        run = await codebase.index.trigger(force_reindex=False)
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert run.error is None
        await is_as_fresh(client, project)


async def test_the_index_rests_although_something_wakes_it_all_the_time(project, monkeypatch):
    monkeypatch.setattr(lives, "_QUIET_SECONDS", 0.2)
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running(), anyio.create_task_group() as tasks:
        await converged(codebase)
        indexer, rested = codebase.index.indexer, anyio.Event()
        rest = Live.rest

        async def noticed(live):
            rested.set()
            await rest(live)

        async def disturb():
            while True:
                indexer.queue.wake()
                await anyio.sleep(0.01)

        monkeypatch.setattr(Live, "rest", noticed)
        tasks.start_soon(disturb)
        with anyio.fail_after(PATIENCE_SECONDS):
            await rested.wait()
        tasks.cancel_scope.cancel()


async def test_vectors_that_were_half_stored_are_stored_once(project, monkeypatch):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        store = codebase.index.indexer.live.index.store
        delete = store._delete

        async def failing(predicate):
            if "NOT embedded" not in predicate:
                return await delete(predicate)
            monkeypatch.setattr(store, "_delete", delete)
            raise StoreError("the disk is full")

        monkeypatch.setattr(store, "_delete", failing)
        (project / "one.py").write_text("cherry = 1\n")
        await eventually(lambda: store._delete == delete)
        await converged(codebase)
    fresh = await fresh_contents(project, FakeEmbedder(), project.parent / "fresh")
    assert await contents(codebase.index.uri) == fresh


@pytest.mark.parametrize("is_installed", [False, True])
@pytest.mark.parametrize("is_asked", [False, True])
async def test_a_document_is_read_once_its_extra_is_installed(
    project, monkeypatch, is_asked, is_installed
):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        live = codebase.index.indexer.live
        known = live.ledger.get("one.py")
        skipped = replace(known, state=SKIPPED, reason=NEEDS_EXTRA, chunk_count=0)
        await live.index.store.delete(["one.py"])
        await live.index.store.put_records([skipped])
    codebase = codebase_of(project, FakeEmbedder())
    monkeypatch.setattr(scanned, "has_extra", lambda: is_installed and not is_asked)
    async with codebase.running():
        await converged(codebase)
        if is_asked:
            monkeypatch.setattr(scanned, "has_extra", lambda: is_installed)
            run = await codebase.index.trigger(force_reindex=False)
            await run.finished.wait()
        expected = INDEXED if is_installed else SKIPPED
        assert codebase.index.ledger.get("one.py").state == expected


async def test_the_index_rests_although_a_saved_file_waits(project, monkeypatch):
    """Else nothing to wait for would be left, and the writer turn round and round."""
    codebase = codebase_of(project, FakeEmbedder(), quiet_seconds=3_600.0, longest_seconds=3_600.0)
    async with codebase.running():
        await converged(codebase)
        rested, rest = anyio.Event(), Live.rest

        async def noticed(live):
            rested.set()
            await rest(live)

        monkeypatch.setattr(Live, "rest", noticed)
        monkeypatch.setattr(lives, "_QUIET_SECONDS", 0.2)
        codebase.index.indexer.queue.touch(["one.py"])
        with anyio.fail_after(PATIENCE_SECONDS):
            await rested.wait()

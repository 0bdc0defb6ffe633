"""A drive that does not answer: whatever lies on it waits, and nothing else does."""

import threading
from contextlib import asynccontextmanager

import anyio
import pytest
from fakes import FakeEmbedder
from serving import codebase_of
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import search
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.answering.asking import ask
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.indexing.state import State
from vector_index_mcp.processes import detached

pytestmark = pytest.mark.anyio

SILENT = "the drive of the index .* does not answer"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(detached, "DRIVE_SECONDS", 0.3)


async def settled(index):
    async def is_settled():
        return index.indexer is not None and not index.progress.is_busy

    await eventually(is_settled)


# -- the index's drive --------------------------------------------------------------------------


@pytest.fixture
def codebase(drive, tmp_path):
    """A project whose index lies on a drive that can hang."""
    write(tmp_path / "project", {"one.py": "apple = 1\n"})
    return codebase_of(tmp_path / "project", FakeEmbedder(), uri=str(drive.folder / "index"))


async def finds(codebase, word, name):
    """Wait until a search for `word` has a hit in `name`, whatever happens meanwhile."""

    async def is_found():
        try:
            answer = await codebase.search(word, 5)
        except StoreError:
            return False
        return name in {hit.chunk.key for hit in answer.hits}

    await eventually(is_found)


async def test_while_the_index_s_drive_hangs_this_is_said_and_then_all_goes_on(
    codebase, drive, tmp_path
):
    async with codebase.running():
        await settled(codebase.index)
        with drive.hanging(30) as hangs:
            for _ in range(3):
                with pytest.raises(StorageError, match=SILENT):
                    await codebase.search("apple", 5)
                status = await codebase.index.status()
                assert "does not answer" in status.error
                assert (status.indexed, status.size_bytes) == (1, None)
            assert codebase.state == State.WATCHING  # nothing has to be written
            write(tmp_path / "project", {"two.py": "banana = 2\n"})
            await eventually(lambda: codebase.state == State.ERROR)
            assert "does not answer" in codebase.index.state.error
            assert hangs()
        await finds(codebase, "banana", "two.py")
        await settled(codebase.index)
        assert codebase.state == State.WATCHING
        assert (await codebase.index.status()).error == ""


async def test_a_service_ends_although_its_index_s_drive_hangs(codebase, drive, tmp_path):
    running = codebase.running()
    await running.__aenter__()
    await settled(codebase.index)
    with drive.hanging(30) as hangs:
        write(tmp_path / "project", {"two.py": "banana = 2\n"})
        await eventually(lambda: codebase.state == State.ERROR)
        await running.__aexit__(None, None, None)
        assert hangs()


async def test_a_scan_that_finds_the_index_s_drive_hanging_is_done_when_it_answers(codebase, drive):
    async with codebase.running():
        await settled(codebase.index)
        with drive.hanging(30) as hangs:
            run = codebase.index.indexer.begin_run("rescan")
            await eventually(lambda: codebase.state == State.ERROR)
            assert not run.finished.is_set()
            assert hangs()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert run.error is None
        assert codebase.state == State.WATCHING


async def test_a_search_during_which_the_index_s_drive_hangs_ends(codebase, drive):
    async with codebase.running():
        await settled(codebase.index)
        with drive.hanging(30) as hangs:
            drive.go_on()

            async def find(store, question, most):
                drive.hang()
                return await search(store, Query(question.text), no_vector, most)

            with pytest.raises(StorageError, match=SILENT):
                await ask(codebase.index, "apple", find, 5)
            assert hangs()
        await finds(codebase, "apple", "one.py")


async def no_vector():
    return None


async def test_a_commit_during_which_the_index_s_drive_hangs_stops_nobody_else(
    codebase, drive, tmp_path
):
    async with codebase.running():
        await settled(codebase.index)
        live, begun = codebase.index.indexer.live, anyio.Event()
        replace = live.index.store.replace

        async def hang_and_replace(*arguments):
            live.index.store.replace = replace
            drive.hang()
            begun.set()
            await replace(*arguments)

        live.index.store.replace = hang_and_replace
        with drive.hanging(30) as hangs:
            drive.go_on()
            write(tmp_path / "project", {"two.py": "banana = 2\n"})
            await begun.wait()
            with pytest.raises(StorageError, match=SILENT):
                await codebase.search("apple", 5)
            assert "does not answer" in (await codebase.index.status()).error
            assert hangs()
        await finds(codebase, "banana", "two.py")
        assert codebase.index.indexer.live is live


async def test_a_start_while_the_index_s_drive_hangs_waits_for_it(codebase, drive):
    with drive.hanging(30) as hangs:
        async with codebase.running():
            with pytest.raises(StoreError, match=SILENT):
                await codebase.search("apple", 5)
            assert "does not answer" in (await codebase.index.status()).error
            assert hangs()
            drive.go_on()
            await finds(codebase, "apple", "one.py")


async def test_a_start_that_is_given_up_while_the_index_s_drive_hangs_ends(codebase, drive):
    with drive.hanging(30) as hangs:
        async with codebase.running():
            await anyio.wait_all_tasks_blocked()
        assert hangs()
    async with codebase_of(codebase.root, FakeEmbedder(), uri=codebase.index.uri).running() as _:
        pass


async def test_who_only_reads_an_index_whose_drive_hangs_is_told(codebase, drive, tmp_path):
    reader = codebase_of(codebase.root, FakeEmbedder(), uri=codebase.index.uri)
    async with codebase.running():
        await settled(codebase.index)
        async with reader.running():
            await finds(reader, "apple", "one.py")
            assert reader.index.indexer is None
            with drive.hanging(30) as hangs:
                for _ in range(3):
                    with pytest.raises(StoreError, match=SILENT):
                        await reader.search("apple", 5)
                    assert "does not answer" in (await reader.index.status()).error
                assert hangs()
            await finds(reader, "apple", "one.py")


# -- the drive of one folder of several ---------------------------------------------------------


@pytest.fixture
def remote(drive):
    """A folder on a drive that can hang."""
    write(drive.behind / "remote", {"far.md": "# Elder\n"})
    return Folder(drive.folder / "remote", "remote")


@pytest.fixture
def docs(tmp_path):
    write(tmp_path / "docs", {"one.md": "# Apple\n"})
    return Folder(tmp_path / "docs", "docs")


@asynccontextmanager
async def running(folders, tmp_path):
    options = Options(
        recipe=Recipe(1_200),
        quiet_seconds=0.01,
        longest_seconds=0.1,
        rescan_seconds=3_600.0,
        state_folder=tmp_path / "state",
        remedies=REMEDIES,
    )
    where = Place(str(tmp_path / "index"), "two folders")
    cache = EmbeddingCache(tmp_path / "cache", 100_000_000)
    index = LiveIndex(folders, where, options, FakeEmbedder(), cache)
    async with index.running():
        yield index


async def files_with(index, word):
    async def find(store, question, most):
        return await search(store, Query(question.text), no_vector, most)

    return {hit.chunk.key for hit in (await ask(index, word, find, 5)).hits}


async def holds(index, *keys):
    async def is_so():
        return set(index.ledger.keys()) == set(keys)

    await eventually(is_so)


async def test_a_folder_whose_drive_hangs_holds_up_no_scan_and_no_sweep_of_the_others(
    drive, remote, docs, tmp_path
):
    async with running([remote, docs], tmp_path) as index:
        await settled(index)
        with drive.hanging(30) as hangs:
            write(docs.path, {"two.md": "# Banana\n"})
            with anyio.fail_after(PATIENCE_SECONDS):
                await (await index.trigger(force_reindex=False)).finished.wait()
            assert set(index.ledger.keys()) == {"remote/far.md", "docs/one.md", "docs/two.md"}
            assert "does not answer" in index.indexer.outlook.problems["remote"]
            with anyio.fail_after(PATIENCE_SECONDS):
                await index.freshness.sweep(index.indexer)
            write(docs.path, {"three.md": "# Cherry\n"})
            await holds(index, "remote/far.md", "docs/one.md", "docs/two.md", "docs/three.md")
            write(drive.behind / "remote", {"near.md": "# Fig\n"})
            assert hangs()
        near = "remote/far.md", "remote/near.md"
        await holds(index, *near, "docs/one.md", "docs/two.md", "docs/three.md")
        await eventually(lambda: not index.indexer.outlook.problems)


async def test_a_walk_in_the_middle_of_which_a_drive_hangs_goes_on_with_the_others(
    drive, remote, docs, tmp_path, monkeypatch
):
    async with running([remote, docs], tmp_path) as index:
        await settled(index)
        make_ignore = index.indexer.outlook._make_ignore

        def hang_and_make(folder):
            if folder.name == "remote":
                drive.hang()
            return make_ignore(folder)

        with drive.hanging(30) as hangs:
            drive.go_on()
            monkeypatch.setattr(index.indexer.outlook, "_make_ignore", hang_and_make)
            write(docs.path, {"two.md": "# Banana\n"})
            with anyio.fail_after(PATIENCE_SECONDS):
                await (await index.trigger(force_reindex=True)).finished.wait()
            assert set(index.ledger.keys()) == {"remote/far.md", "docs/one.md", "docs/two.md"}
            assert hangs()
        monkeypatch.undo()


@pytest.fixture
def read_while_it_hangs(drive, remote, monkeypatch):
    """Has the drive hang when a file of `remote` is about to be read; an event that it does."""
    hung, prepare = anyio.Event(), Crew.prepare_promptly

    async def hang_and_prepare(crew, tasks):
        if any(task.folder == remote for task in tasks) and not hung.is_set():
            drive.hang()
            hung.set()
        return await prepare(crew, tasks)

    monkeypatch.setattr(Crew, "prepare_promptly", hang_and_prepare)
    return hung


async def test_a_drive_that_hangs_while_its_files_are_read_stops_no_other_folder(
    drive, remote, docs, tmp_path, read_while_it_hangs
):
    async with running([remote, docs], tmp_path) as index:
        await settled(index)
        with drive.hanging(30) as hangs:
            drive.go_on()
            write(remote.path, {"far.md": "# Fig\n"})
            await read_while_it_hangs.wait()
            write(docs.path, {"two.md": "# Banana\n"})
            await holds(index, "remote/far.md", "docs/one.md", "docs/two.md")
            await eventually(lambda: "remote" in index.indexer.outlook.problems)
            assert hangs()

        async def is_read():
            return await files_with(index, "fig") == {"remote/far.md"}

        await eventually(is_read)
        await settled(index)
        assert not index.indexer.outlook.problems


async def test_a_service_ends_although_the_drive_hangs_that_it_reads_from(
    drive, remote, docs, tmp_path, read_while_it_hangs
):
    with drive.hanging(30) as hangs:
        drive.go_on()
        async with running([remote, docs], tmp_path) as index:
            await settled(index)
            write(remote.path, {"far.md": "# Fig\n"})
            await read_while_it_hangs.wait()
        assert hangs()


@pytest.mark.long
async def test_a_start_does_not_wait_for_a_folder_whose_drive_hangs(drive, remote, docs, tmp_path):
    with drive.hanging(30) as hangs:
        async with running([remote, docs], tmp_path) as index:
            await holds(index, "docs/one.md")
            await eventually(lambda: index.indexer.runs.current is None)
            assert "does not answer" in (await index.status()).absent["remote"]
            write(docs.path, {"two.md": "# Banana\n"})
            await holds(index, "docs/one.md", "docs/two.md")
            assert hangs()
            drive.go_on()
            await holds(index, "docs/one.md", "docs/two.md", "remote/far.md")
            await eventually(lambda: not index.indexer.outlook.problems)


async def test_a_hit_on_a_drive_that_hangs_is_left_out(drive, remote, docs, tmp_path):
    async with running([remote, docs], tmp_path) as index:
        await settled(index)
        assert await files_with(index, "elder") == {"remote/far.md"}
        with drive.hanging(30) as hangs:
            for _ in range(3):
                assert await files_with(index, "elder") == set()
                assert await files_with(index, "apple") == {"docs/one.md"}
            checks = [thread for thread in threading.enumerate() if thread.name == "check"]
            assert len(checks) <= 1
            assert hangs()

        async def is_found():
            return await files_with(index, "elder") == {"remote/far.md"}

        await eventually(is_found)


async def test_a_search_whose_hits_no_thread_can_check_ends(docs, tmp_path, monkeypatch):
    start, refused = threading.Thread.start, {"check"}

    def starting(thread):
        if thread.name in refused:
            raise RuntimeError("can't start new thread")
        start(thread)

    async def refusing_all(store, question, most):
        hits = await search(store, Query(question.text), no_vector, most)
        refused.add("look")
        return hits

    async with running([docs], tmp_path) as index:
        await settled(index)
        with monkeypatch.context() as full, anyio.fail_after(PATIENCE_SECONDS):
            full.setattr(threading.Thread, "start", starting)
            assert await files_with(index, "apple") == set()
            with pytest.raises(StorageError, match="ulimit -u"):
                await ask(index, "apple", refusing_all, 5)
        assert await files_with(index, "apple") == {"docs/one.md"}

"""What a start finds: nothing to do, another model, another way of cutting, another writer."""

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from serving import (
    Gate,
    call,
    codebase_of,
    contents,
    converged,
    failing_call,
    found,
    fresh_contents,
    indexed,
    serving,
    settled,
    status_of,
)
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.engine.store import Store, pinned
from vector_index_mcp.engine.store.schema import FORMAT
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.indexing.opening.local import Opener
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio

LONG = "".join(f"def function_{i}(value):\n    return value + {i}\n\n" for i in range(40))
FILES = {"one.py": "apple = 1\n", "sub/two.py": LONG, "blank.txt": "\n\n"}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


async def test_a_start_on_an_unchanged_project_reads_and_embeds_nothing(project):
    before = await indexed(project, FakeEmbedder())
    embedder = FakeEmbedder()
    async with serving(codebase_of(project, embedder)) as client:
        status = await settled(client)
    assert status["last_run"]["kind"] == "start"
    assert (status["last_run"]["files_seen"], status["last_run"]["files_read"]) == (3, 0)
    assert (embedder.calls, embedder.state) == (0, "off")
    assert await contents(project / ".lancedb") == before


def test_the_lock_is_free_however_often_the_index_had_to_be_tried(project, tmp_path):
    opener, other = (
        Opener(Place.in_project(project, ".lancedb"), "1", tmp_path / "state", REMEDIES)
        for _ in range(2)
    )
    assert opener.acquire()
    assert opener.acquire()
    assert not other.acquire()
    opener.release()
    assert other.acquire()
    other.release()


def is_held_open(folder):
    held = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    return str(folder) in held


@pytest.mark.skipif(sys.platform != "linux", reason="folders are held on Linux only")
async def test_who_ends_in_order_holds_the_folder_of_the_index_no_more(project, monkeypatch):
    monkeypatch.setattr(pinned, "_MOST_PINNED", 1_000)  # other tests may hold as many as may be
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        assert is_held_open(project / ".lancedb")
    assert not is_held_open(project / ".lancedb")


@pytest.mark.skipif(sys.platform != "linux", reason="folders are held on Linux only")
async def test_an_index_that_cannot_be_opened_holds_no_folder(project, monkeypatch):
    monkeypatch.setattr(pinned, "_MOST_PINNED", 1_000)

    async with (codebase := codebase_of(project, FakeEmbedder())).running(Role.VISITOR):
        await converged(codebase)

    async def fails(_):
        raise StorageError("the disk does not answer")

    monkeypatch.setattr(Store, "records", fails)
    async with (codebase := codebase_of(project, FakeEmbedder())).running(Role.VISITOR):
        with pytest.raises(StoreError, match="does not answer"):
            await codebase.index.trigger(force_reindex=False)
    assert not is_held_open(project / ".lancedb")


async def test_a_start_finds_what_changed_meanwhile(project):
    await indexed(project, FakeEmbedder())
    write(project, {"one.py": "banana = 1\n", "three.py": "cherry = 1\n"})
    (project / "sub/two.py").unlink()
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        status = await settled(client)
        assert status["last_run"]["files_read"] == 2
        assert status["last_run"]["files_removed"] == 1
        assert (await found(client, "banana"))[0] == "one.py"
    kept = await contents(project / ".lancedb")
    assert kept == await fresh_contents(project, FakeEmbedder(), project.parent / "fresh")


async def test_another_model_embeds_anew_and_reads_no_file(project):
    before = await indexed(project, FakeEmbedder())
    other = FakeEmbedder("other", dimension=32)
    async with serving(codebase_of(project, other)) as client:

        async def has_other_vectors():
            await call(client, "search_index", query="apple")
            status = await settled(client)
            return status["model"]["name"] == "other" and status

        status = await eventually(has_other_vectors)
        assert status["model"]["dimension"] == 32
        assert status["last_run"]["files_read"] == 0
        assert len(other.texts) == len({row["chunk_hash"] for row in before[0].values()})
        assert (await call(client, "search_index", query="apple"))["mode"] == "hybrid"
    rows, records = await contents(project / ".lancedb")
    assert records == before[1]
    assert all(len(row["vector"]) == 32 for row in rows.values())


async def test_trigger_embeds_anew_for_another_model(project):
    await indexed(project, FakeEmbedder())
    other = FakeEmbedder("other")
    async with serving(codebase_of(project, other)) as client:
        await settled(client)
        report = await call(client, "trigger_index")
        assert report["complete"]
        assert (await status_of(client))["model"]["name"] == "other"
    kept = await contents(project / ".lancedb")
    assert kept == await fresh_contents(project, other, project.parent / "fresh")


async def test_another_chunk_size_cuts_anew_by_a_rebuild_while_the_old_index_answers(project):
    await indexed(project, FakeEmbedder())
    embedder = FakeEmbedder()
    codebase = codebase_of(project, embedder, chunk_max_chars=300)
    rebuilding = Gate(codebase)
    async with serving(codebase) as client:
        await rebuilding.wait()
        assert (await status_of(client))["current_run"]["kind"] == "rebuild"
        assert (await found(client, "apple"))[0] == "one.py"
        rebuilding.open()
        status = await settled(client)
        assert status["last_run"]["files_read"] == 3
    kept = await contents(project / ".lancedb")
    fresh = await fresh_contents(
        project, FakeEmbedder(), project.parent / "fresh", chunk_max_chars=300
    )
    assert kept == fresh
    async with serving(codebase_of(project, embedder, chunk_max_chars=300)) as client:
        assert (await settled(client))["last_run"]["files_read"] == 0


async def test_a_copy_of_a_project_embeds_nothing_again(project):
    await indexed(project, FakeEmbedder())
    copy = project.parent / "copy"
    shutil.copytree(project, copy, ignore=shutil.ignore_patterns(".lancedb"))
    embedder = FakeEmbedder()
    rows, _ = await indexed(copy, embedder)
    assert embedder.texts == []
    assert all(row["vector"] is not None for row in rows.values())


async def test_a_second_service_follows_and_takes_over(project):
    ended = anyio.Event()

    async def keep(*, task_status):
        keeper = codebase_of(project, FakeEmbedder())
        async with keeper.running():
            await converged(keeper)
            task_status.started()
            await ended.wait()

    async with anyio.create_task_group() as tasks:
        await tasks.start(keep)
        async with serving(codebase_of(project, FakeEmbedder())) as follower:
            status = await status_of(follower)
            assert not status["is_writer"]
            assert (status["status"], status["indexed_file_count"]) == ("WATCHING", 3)
            assert status["error_message"] is None
            assert (await found(follower, "apple"))[0] == "one.py"
            message = await failing_call(follower, "trigger_index")
            assert "another process keeps this index" in message
            assert "get_status" in message
            write(project, {"three.py": "durian = 1\n"})

            async def is_told_by_the_keeper():
                return (await found(follower, "durian"))[:1] == ["three.py"]

            await eventually(is_told_by_the_keeper)
            ended.set()

            async def has_taken_over():
                return (await status_of(follower))["is_writer"]

            await eventually(has_taken_over)
            write(project, {"four.py": "elderflower = 1\n"})

            async def is_found():
                return (await found(follower, "elderflower"))[:1] == ["four.py"]

            await eventually(is_found)

            async def is_complete():  # not while another event of four.py is still to come
                return (await call(follower, "trigger_index"))["complete"]

            await eventually(is_complete)


async def test_a_reader_of_no_index_says_what_to_do_and_leaves_no_trace(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running(Role.READER):
        status = await wire.index_status(codebase)
        with pytest.raises(StoreError, match="nothing is indexed yet"):
            await codebase.search("apple", 5)
    assert (status.indexed_chunk_count, status.is_writer) == (0, False)
    assert "nothing is indexed yet; call trigger_index" in status.error_message
    assert not (project / ".lancedb").exists()


async def test_a_reader_of_an_index_that_another_version_writes_says_so(project):
    async with (writer := codebase_of(project, FakeEmbedder())).running():
        await converged(writer)
        index = writer.index.indexer.live.index
        await index._write_manifest(replace(index.manifest, format=FORMAT + 1))
        async with (reader := codebase_of(project, FakeEmbedder())).running(Role.READER):
            with pytest.raises(StoreError, match="by another version of this program"):
                await reader.search("apple", 5)
            status = await wire.index_status(reader)
    assert "by another version of this program" in status.error_message


async def test_a_reader_tells_what_the_index_holds_and_changes_nothing(project):
    before = await indexed(project, FakeEmbedder())
    write(project, {"one.py": "changed = 1\n"})
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running(Role.READER):
        status = await wire.index_status(codebase)
        answer = await codebase.search("apple", 5, wait_for_model=True)
    assert (status.indexed_file_count, status.embedded_chunk_count) == (3, len(before[0]))
    assert status.error_message is None
    assert answer.hits[0].chunk.key == "one.py"
    assert await contents(project / ".lancedb") == before


async def test_a_visitor_brings_the_index_up_to_date_without_watching(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
        assert (await wire.index_status(codebase)).watcher.mode == "off"
        answer = await codebase.search("apple", 5)
    assert answer.hits[0].chunk.key == "one.py"


async def test_a_visitor_reads_what_a_keeper_writes(project):
    visitor = codebase_of(project, FakeEmbedder())
    async with serving(codebase_of(project, FakeEmbedder())) as keeper:
        await settled(keeper)
        async with visitor.running(Role.VISITOR):
            answer = await visitor.search("apple", 5, wait_for_model=True)
            assert not (await wire.index_status(visitor)).is_writer
    assert answer.hits[0].chunk.key == "one.py"
    assert answer.is_hybrid


async def test_the_index_of_another_project_is_left_alone(project, tmp_path):
    await indexed(project, FakeEmbedder())
    before = await contents(project / ".lancedb")
    other = tmp_path / "other"
    write(other, {"other.py": "zucchini = 1\n"})
    async with serving(codebase_of(other, FakeEmbedder(), uri=str(project / ".lancedb"))) as client:
        status = await status_of(client)
        assert status["status"] == "ERROR"
        assert str(project) in status["error_message"]
        assert "VECTOR_INDEX_LANCEDB_URI" in status["error_message"]
        message = await failing_call(client, "trigger_index", force_reindex=True)
        assert f"belongs to {project}; set VECTOR_INDEX_LANCEDB_URI" in message
    assert await contents(project / ".lancedb") == before


async def test_a_moved_project_keeps_its_index(project):
    before = await indexed(project, FakeEmbedder())
    moved = project.rename(project.parent / "moved")
    embedder = FakeEmbedder()
    async with serving(codebase_of(moved, embedder)) as client:
        status = await settled(client)
        assert status["last_run"]["files_read"] == 0
        assert (await found(client, "apple"))[0] == "one.py"
    assert embedder.texts == []
    assert await contents(moved / ".lancedb") == before


OPEN_AS_NOBODY = """
import os, sys
from pathlib import Path
import anyio
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.indexing.opening.local import Opener
from vector_index_mcp.indexing.place import Place
if os.geteuid() == 0:  # to whom nothing is forbidden
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

async def main(root):
    place = Place.in_project(root, ".lancedb")
    opener = Opener(place, "", root.parent / "state of nobody", REMEDIES)
    opener.acquire()
    opened = await opener.open()
    place = Path(opener.uri).relative_to(root.parent).parts[0]
    sys.stdout.write(f"{opened.index.manifest.owner} {len(opened.ledger.all())} {place}")
    opened.index.close()

anyio.run(main, Path(sys.argv[1]))
"""


def bytes_below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def shared_folder():
    """A folder that another user can enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="the system has no user numbers")
async def test_the_index_of_another_user_is_neither_read_nor_changed(shared_folder):
    home = shared_folder / "home"
    (shared_folder / "state of nobody").mkdir(mode=0o777)
    (shared_folder / "state of nobody").chmod(0o777)
    write(home / "project", FILES)
    await indexed(home / "project", FakeEmbedder())
    copy = shutil.copytree(home / "project", shared_folder / "copy")
    if os.geteuid() == 0:
        for path in (copy, *copy.rglob("*")):
            os.chown(path, 65534, 65534)
    before = bytes_below(copy)
    home.chmod(0)
    try:
        command = [sys.executable, "-c", OPEN_AS_NOBODY, copy]
        done = await anyio.run_process(command, stderr=None)
    finally:
        home.chmod(0o755)
    assert done.stdout.decode() == f"{copy} 0 state of nobody"
    assert bytes_below(copy) == before

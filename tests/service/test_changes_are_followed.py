"""Whatever happens to the files, the index follows by itself."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import threading
from functools import partial

import anyio
import pytest
from fakes import FakeEmbedder
from serving import (
    Gate,
    call,
    codebase_of,
    contents,
    converged,
    found,
    fresh_contents,
    serving,
    settled,
    status_of,
)
from waiting import PATIENCE_SECONDS, eventually
from writing import replace_at_once, write

from vector_index_mcp.errors import BusyError, StoreError
from vector_index_mcp.files import scan
from vector_index_mcp.files.scan import stamp_of
from vector_index_mcp.files.watch import Watch
from vector_index_mcp.indexing.answering import asking
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.reasons import INDEXED
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.writing.scanned import FILES_PER_BATCH

pytestmark = pytest.mark.anyio

FILES = {
    "one.py": "apple\n",
    "sub/two.py": "banana\n",
    "sub/deep/three.py": "cherry\n",
    "build/out.py": "damson\n",
    ".gitignore": "build/\n",
}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture
def embedder():
    return FakeEmbedder()


@pytest.fixture
async def client(project, embedder):
    """Without a model: only the words of a text find it."""
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await eventually(lambda: is_found(client, "cherry", ["sub/deep/three.py"]))
        yield client


def git(folder, *arguments):
    subprocess.run(["git", *arguments], cwd=folder, check=True)


async def is_found(client, query, files):
    return sorted(await found(client, query)) == sorted(files)


async def holds(client, query, *files):
    """Wait until `files` are the answer to `query`."""
    await eventually(lambda: is_found(client, query, files))


async def test_a_new_file_is_found(client, project):
    write(project, {"new/place/four.py": "elderberry\n"})
    await holds(client, "elderberry", "new/place/four.py")


async def test_a_saved_file_is_found_by_its_new_text_only(client, project):
    write(project, {"one.py": "fig\n"})
    await holds(client, "fig", "one.py")
    await holds(client, "apple")


async def test_a_file_saved_by_renaming_over_it_is_found_by_its_new_text_only(client, project):
    replace_at_once(project / "one.py", "fig\n")
    await holds(client, "fig", "one.py")
    await holds(client, "apple")
    assert "one.py~" not in await found(client, "one.py~")


async def test_a_log_that_is_written_all_the_time_holds_up_no_file_and_is_no_work(
    project, embedder
):
    embedder.absent = "no model here"
    patient = {"quiet_seconds": 0.05, "longest_seconds": 3_600.0}
    codebase = codebase_of(project, embedder, **patient)
    lines = 0

    async def log():
        nonlocal lines
        while True:
            lines += 1
            write(project, {"debug.log": f"{lines}\n", "trace.log": f"{lines}\n"})
            await anyio.sleep(0.01)

    async def is_logged():
        return {"debug.log", "trace.log"} <= set(codebase.index.indexer.queue.touched)

    async with serving(codebase) as client, anyio.create_task_group() as tasks:
        await settled(client, with_vectors=False)
        tasks.start_soon(log)
        await eventually(is_logged)
        write(project, {"one.py": "fig\n"})
        await holds(client, "fig", "one.py")
        await settled(client, with_vectors=False)

        async def is_no_work():  # a slow machine may make a pause in which a log is indexed
            pending = (await status_of(client))["pending_path_count"]
            return await is_logged() and not pending and not codebase.is_busy

        await eventually(is_no_work)
        tasks.cancel_scope.cancel()


async def test_a_file_from_the_far_future_is_indexed_and_followed_like_any_other(client, project):
    write(project, {"late.py": "kiwi\n"})
    os.utime(project / "late.py", (10_500_000_000, 10_500_000_000))  # in the year 2302
    await holds(client, "kiwi", "late.py")
    (project / "late.py").write_text("lime\n")
    os.utime(project / "late.py", (10_500_000_001, 10_500_000_001))
    await holds(client, "lime", "late.py")


async def test_a_deleted_file_is_forgotten(client, project):
    (project / "one.py").unlink()
    await holds(client, "apple")

    async def is_counted():
        return (await status_of(client))["indexed_file_count"] == 3

    await eventually(is_counted)


async def test_a_renamed_file_is_found_at_its_new_place_only(client, project):
    (project / "one.py").rename(project / "sub" / "uno.py")
    await holds(client, "apple", "sub/uno.py")


async def test_a_renamed_folder_is_found_at_its_new_place_only(client, project):
    (project / "sub").rename(project / "moved")
    await holds(client, "banana", "moved/two.py")
    await holds(client, "cherry", "moved/deep/three.py")
    write(project, {"moved/deep/three.py": "grape\n"})  # the folder is watched at its new place
    await holds(client, "grape", "moved/deep/three.py")


async def test_a_folder_moved_in_and_out_of_the_project_is_followed(client, project):
    outside = project.parent / "outside"
    (project / "sub").rename(outside)
    await holds(client, "banana")
    outside.rename(project / "back")
    await holds(client, "banana", "back/two.py")


async def test_a_deleted_folder_is_forgotten(client, project):
    shutil.rmtree(project / "sub")
    await holds(client, "banana")
    await holds(client, "cherry")


async def test_a_file_replaced_by_a_folder_and_back_is_followed(client, project):
    (project / "one.py").unlink()
    write(project, {"one.py/inside.py": "huckleberry\n"})
    await holds(client, "huckleberry", "one.py/inside.py")
    await holds(client, "apple")
    shutil.rmtree(project / "one.py")
    write(project, {"one.py": "kiwi\n"})
    await holds(client, "kiwi", "one.py")
    await holds(client, "huckleberry")


async def test_an_edit_of_gitignore_takes_files_out_and_lets_them_in(client, project):
    assert await found(client, "damson") == []
    write(project, {".gitignore": "sub/deep/\n"})
    await holds(client, "damson", "build/out.py")
    await holds(client, "cherry")
    write(project, {"build/out.py": "lemon\n"})  # the folder is watched now
    await holds(client, "lemon", "build/out.py")
    (project / ".gitignore").unlink()
    await holds(client, "cherry", "sub/deep/three.py")


async def test_a_gitignore_in_a_folder_holds_for_that_folder(client, project):
    write(project, {"sub/.gitignore": "two.py\n"})
    await holds(client, "banana")
    assert await found(client, "apple") == ["one.py"]
    write(project, {"sub/.gitignore": "\n"})
    await holds(client, "banana", "sub/two.py")


async def test_what_git_begins_to_track_is_let_in_and_watched_and_what_it_forgets_is_not(
    project, embedder
):
    git(project, "init", "-q")
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await holds(client, "banana", "sub/two.py")
        await holds(client, "damson")
        git(project, "add", "-f", "build/out.py")
        write(project, {"one.py": "apricot\n"})  # of the git folder, no event tells
        await holds(client, "damson", "build/out.py")
        write(project, {"build/out.py": "elderberry\n"})
        await holds(client, "elderberry", "build/out.py")
        git(project, "rm", "-q", "--cached", "-f", "build/out.py")
        write(project, {"one.py": "apple\n"})
        await holds(client, "elderberry")


async def test_a_text_that_becomes_binary_is_dropped_and_told_of(client, project):
    (project / "one.py").write_bytes(b"\x00\x01\xff" * 50)
    await holds(client, "apple")
    status = await settled(client, with_vectors=False)
    assert (status["skipped"], status["skipped_files"]) == ({"binary": 1}, {"one.py": "binary"})
    write(project, {"one.py": "mango\n"})
    await holds(client, "mango", "one.py")
    assert (await settled(client, with_vectors=False))["skipped"] == {}


async def test_a_storm_of_changes_ends_as_a_fresh_index(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for turn in range(5):
            write(project, {f"storm/{turn}/{i}.txt": f"nectarine {turn * i}" for i in range(40)})
            (project / "storm" / str(turn)).rename(project / f"calm-{turn}")
        shutil.rmtree(project / "calm-3")
        write(project, {"last.txt": "orange"})

        async def is_complete():
            status = await status_of(client)
            return status["indexed_file_count"] == 4 + 4 * 40 + 1

        await eventually(is_complete)
        await settled(client)
    kept = await contents(project / ".lancedb")
    assert kept == await fresh_contents(project, embedder, project.parent / "fresh")


async def test_files_for_which_there_is_no_room_are_counted_until_there_is(
    client, project, monkeypatch
):
    monkeypatch.setattr(scan, "MOST_FILES", 5)

    async def left_out():
        return (await status_of(client))["skipped"].get("over the limit of files", 0)

    write(project, {"four.py": "elderberry\n"})
    await holds(client, "elderberry", "four.py")
    assert await left_out() == 0
    write(project, {"five.py": "fig\n"})
    await eventually(left_out)
    write(project, {"six.py": "grape\n"})
    await call(client, "trigger_index")
    assert (await left_out(), (await status_of(client))["indexed_file_count"]) == (2, 5)
    shutil.rmtree(project / "sub")
    await call(client, "trigger_index")
    assert await left_out() == 0
    await holds(client, "fig", "five.py")
    await holds(client, "grape", "six.py")


async def test_a_run_ends_though_all_it_found_was_indexed_as_just_changed(project, embedder):
    codebase = codebase_of(project, embedder, quiet_seconds=0.0)
    async with codebase.running(Role.VISITOR):  # without a watcher: events are ours to make
        await converged(codebase)
        indexer, names = codebase.index.indexer, [f"new_{number}.py" for number in range(5)]
        walk = indexer._walk

        async def walk_and_then_save():
            await walk()
            indexer.queue.touch(names)  # is more urgent than what the walk has found

        indexer._walk = walk_and_then_save
        write(project, dict.fromkeys(names, "elderberry\n"))
        run = await codebase.index.trigger(force_reindex=False)
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert (run.error, run.files_to_do) == (None, 5)
        assert all(codebase.index.ledger.get(name).state == INDEXED for name in names)


MANY = {f"data/file_{number}.py": "quince\n" for number in range(3 * FILES_PER_BATCH)}
"""One batch is committed, one prepared and one queued when the gate stops the pipeline."""


def ignore_all_of_data(project):
    write(project, {".gitignore": "build/\ndata/\n"})
    return [".gitignore"]


def delete_all_of_data(project):
    shutil.rmtree(project / "data")
    return ["data"]


def delete_one_by_one(project):
    for name in MANY:
        (project / name).unlink()
    return list(MANY)


@pytest.mark.parametrize("lose", [ignore_all_of_data, delete_all_of_data, delete_one_by_one])
@pytest.mark.parametrize("into", ["the index", "a rebuilt index"])
async def test_what_is_deleted_or_ignored_on_its_way_into_the_index_does_not_stay(
    project, embedder, lose, into
):
    codebase = codebase_of(project, embedder, quiet_seconds=0.0)
    async with codebase.running(Role.VISITOR):  # without a watcher: events are ours to make
        await converged(codebase)
        current = codebase.index.indexer.live.index.store
        write(project, MANY)
        is_rebuild = into == "a rebuilt index"
        gate = Gate(codebase, lambda store: (store is not current) == is_rebuild)
        run = await codebase.index.trigger(force_reindex=is_rebuild)
        await gate.wait()
        codebase.index.indexer.queue.touch(lose(project))
        gate.open()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()

        async def is_done():
            return codebase.index.indexer.pending_path_count == 0

        await eventually(is_done)
        held = [record.key for record, _ in codebase.index.ledger.all()]
        assert sorted(held) == sorted(FILES.keys() - {"build/out.py"})


async def test_files_changed_on_their_way_into_the_index_are_indexed_as_they_are_now(
    project, embedder
):
    names = list(MANY)[: 2 * FILES_PER_BATCH]
    write(project, dict.fromkeys(names, "quince\n"))
    codebase = codebase_of(project, embedder, quiet_seconds=0.0)
    gate = Gate(codebase)

    async def is_next_batch_prepared():
        return len(codebase.index.indexer._scanned._passage._batches) == 2

    async with codebase.running(Role.VISITOR):
        await gate.wait()
        await eventually(is_next_batch_prepared)
        late = [name for name in names if codebase.index.ledger.get(name) is None]
        assert len(late) > FILES_PER_BATCH  # too many to be indexed at once
        write(project, dict.fromkeys(late, "raspberry\n"))
        codebase.index.indexer.queue.touch(late)
        gate.open()
        await converged(codebase)
    kept = await contents(project / ".lancedb")
    assert kept == await fresh_contents(project, embedder, project.parent / "fresh")


async def test_a_rebuild_is_over_when_what_was_saved_meanwhile_is_in_it(project, embedder):
    codebase = codebase_of(project, embedder, quiet_seconds=0.0)
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
        indexer = codebase.index.indexer
        gate = Gate(codebase, stops_at=lambda store: store is not indexer.live.index.store)
        run = await codebase.index.trigger(force_reindex=True)
        await gate.wait()
        write(project, {"late.py": "raspberry = 1\n"})
        indexer.queue.touch(["late.py"])
        gate.open()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert codebase.index.ledger.get("late.py") is not None


async def test_what_is_saved_while_somebody_looks_at_it_counts_as_a_change(
    project, embedder, monkeypatch
):
    codebase = codebase_of(project, embedder, quiet_seconds=3_600.0, longest_seconds=3_600.0)
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
        queue, looks = codebase.index.indexer.queue, codebase.index.looks
        queue.touch(["one.py"])
        assert await codebase.pending() == 0
        at = looks.at

        async def saved_after(place, look):
            found = await at(place, look)
            write(project, {"one.py": "raspberry = 1\n"})
            queue.touch(["one.py"])
            return found

        monkeypatch.setattr(looks, "at", saved_after)
        assert await codebase.pending() == 1


async def test_a_service_that_ends_while_its_watches_are_set_leaves_none(
    project, embedder, monkeypatch
):
    begun, go_on, watches = threading.Event(), threading.Event(), []
    start = Watch.start

    def start_late(watch, signs):
        watches.append(watch)
        begun.set()
        go_on.wait(PATIENCE_SECONDS)
        start(watch, signs)

    monkeypatch.setattr(Watch, "start", start_late)
    async with codebase_of(project, embedder).running():
        assert await anyio.to_thread.run_sync(begun.wait, PATIENCE_SECONDS)
        asyncio.get_running_loop().call_soon(go_on.set)  # when the end has begun
    assert not watches[0].is_alive


@pytest.mark.parametrize("events", [True, False], ids=["events", "a scan"])
async def test_a_save_within_the_same_second_is_found_where_stamps_have_no_finer_time(
    coarse_disk, embedder, events
):
    root = coarse_disk / "project"
    root.mkdir()
    write(root, {"one.py": "start\n"})
    codebase = codebase_of(root, embedder, uri=str(coarse_disk.parent / "index"))
    async with codebase.running(Role.KEEPER if events else Role.VISITOR):
        await converged(codebase)

        async def is_indexed(text):
            if not events:
                await (await codebase.index.trigger(force_reindex=False)).finished.wait()
            content_hash = codebase.index.ledger.get("one.py").content_hash
            return content_hash == hashlib.sha256(text.encode()).hexdigest()

        stamps = set()
        for number in range(10):
            text = f"word{number}\n"
            write(root, {"one.py": text})
            stamps.add(stamp_of((root / "one.py").stat()))
            await eventually(partial(is_indexed, text))
        assert len(stamps) < 10, "no two saves fell into one second"


async def test_what_was_read_in_the_second_of_its_save_is_read_once_more(coarse_disk, embedder):
    root = coarse_disk / "project"
    root.mkdir()
    write(root, {"one.py": "apple\n"})
    codebase = codebase_of(root, embedder, uri=str(coarse_disk.parent / "index"))
    async with codebase.running(Role.VISITOR):

        async def is_trusted():
            run = await codebase.index.trigger(force_reindex=False)
            await run.finished.wait()
            return not run.files_to_do

        await eventually(is_trusted)
        assert codebase.index.ledger.get("one.py").stamp == stamp_of((root / "one.py").stat())


async def test_what_is_indexed_while_a_search_runs_is_found_by_it(project, embedder, monkeypatch):
    codebase = codebase_of(project, embedder)
    async with codebase.running(Role.VISITOR):  # without a watcher: events are ours to make
        await converged(codebase)
        write(project, {"new.py": "def elderberry(): pass\n"})
        codebase.index.indexer.queue.touch(["new.py"])
        asked = []

        async def overtaken(*arguments, **options):
            answered = await answer(*arguments, **options)
            asked.append(len(answered.hits))
            run = await codebase.index.trigger(force_reindex=False)
            await run.finished.wait()
            return answered

        answer = asking._answered
        monkeypatch.setattr(asking, "_answered", overtaken)
        found = await codebase.search("elderberry", 5)
        assert [hit.chunk.key for hit in found.hits][:1] == ["new.py"]
        assert found.absent == ()
        assert len(asked) == 2
        await codebase.search("elderberry", 5)
        assert len(asked) == 3, "nothing was saved before this one"


@pytest.mark.parametrize("query", ["elderberry", "where is the elderberry counted", "one"])
async def test_a_search_right_after_a_save_has_what_was_saved(project, embedder, query):
    codebase = codebase_of(project, embedder, quiet_seconds=0.3, longest_seconds=1.0)
    async with codebase.running():
        await converged(codebase)
        write(project, {"one.py": "elderberry = 1\n", "new.py": "elderberry_one = 1\n"})
        await eventually(lambda: codebase.index.indexer.queue.has_saved)
        answer = await codebase.search(query, 5)
        assert {hit.chunk.key for hit in answer.hits[:2]} == {"one.py", "new.py"}
        assert answer.hits[0].chunk.text.startswith("elderberry")
        assert (answer.stale, answer.absent) == (frozenset(), ())
        assert "changed" not in answer.note


async def test_a_file_that_is_set_aside_keeps_no_search_from_waiting_for_others(
    project, embedder, monkeypatch
):
    codebase = codebase_of(project, embedder, quiet_seconds=0.3, longest_seconds=1.0)
    async with codebase.running():
        await converged(codebase)
        monkeypatch.setattr(Crew, "late_count", property(lambda _: 1))
        assert (await codebase.search("apple", 5)).note == (
            "Recent changes may be missing: 1 changed path to index."
        )
        write(project, {"new.py": "elderberry = 1\n"})
        await eventually(lambda: codebase.index.indexer.queue.has_saved)
        answer = await codebase.search("elderberry", 5)
        assert [hit.chunk.key for hit in answer.hits][:1] == ["new.py"]
        assert answer.absent == ()


async def test_a_file_that_is_written_all_the_time_makes_searches_wait_once(
    project, embedder, monkeypatch
):
    codebase = codebase_of(project, embedder)
    async with codebase.running():
        await converged(codebase)
        gate = Gate(codebase)
        write(project, {"new.py": "elderberry = 1\n"})
        await gate.wait()
        monkeypatch.setattr(asking, "_CHANGES_PATIENCE_SECONDS", 0.1)
        assert "1 changed path to index" in (await codebase.search("apple", 5)).note
        monkeypatch.setattr(asking, "_CHANGES_PATIENCE_SECONDS", float("inf"))
        assert "1 changed path to index" in (await codebase.search("apple", 5)).note
        gate.open()


async def test_a_service_that_does_not_answer_is_not_said_to_keep_the_index(project, embedder):
    silence = []
    keeper = codebase_of(project, embedder)
    async with keeper.running(Role.KEEPER):
        await converged(keeper)
        for role in (Role.VISITOR, Role.READER):
            for said in ("", "the service of x does not answer"):
                silence[:] = [said]
                other = codebase_of(project, embedder, silence_of_service=silence.copy().pop)
                async with other.running(role):
                    answer = await other.search("apple", 5)
                    assert [hit.chunk.key for hit in answer.hits][:1] == ["one.py"]
                    lack = f"Recent changes may be missing: {said}."
                    assert (lack in answer.note) == bool(said)
                    assert ("no process keeps" in answer.note) is False
                    with pytest.raises((BusyError, StoreError)) as refused:
                        await other.index.trigger(force_reindex=False)
                    assert ("follows every change" in str(refused.value)) == (not said)
                    assert said in str(refused.value)

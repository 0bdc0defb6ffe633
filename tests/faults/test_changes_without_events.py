"""Where no event tells of a change, a scan finds it, and the status says so."""

import errno
import mmap
import os
import shutil
import subprocess
import sys

import anyio
import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from serving import Gate, call, codebase_of, converged, found, serving, settled, status_of
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.files import mounts, watch
from vector_index_mcp.files.scan import stamp_of
from vector_index_mcp.indexing import freshness
from vector_index_mcp.indexing.preparing import child
from vector_index_mcp.indexing.reasons import INDEXED
from vector_index_mcp.indexing.writing.run import Kind
from vector_index_mcp.indexing.writing.scanned import FILES_PER_BATCH

if sys.platform == "linux":
    from vector_index_mcp.files import inotify

pytestmark = pytest.mark.anyio

OFTEN_SECONDS = 0.1
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="as Linux tells it")


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, {"one.py": "apple = 1\n"})
    return root


@pytest.fixture
def deaf(monkeypatch):
    """An observer that delivers nothing."""
    monkeypatch.setattr(watch.Watch, "_report", lambda self, keys, whom: None)


@pytest.fixture
def soon(monkeypatch):
    """Polling scans without a pause."""
    monkeypatch.setattr(freshness, "_POLLING_LEAST_SECONDS", 0.0)


async def follows(client, project, name="two.py"):
    """Whether a new, a changed and a deleted file are noticed."""
    write(project, {name: "banana = 1\n"})
    await eventually(lambda: finds(client, "banana", name))
    write(project, {name: "cherry = 1\n"})
    await eventually(lambda: finds(client, "cherry", name))
    (project / name).unlink()
    await eventually(lambda: finds(client, "cherry"))


def is_by_events(status):
    return (status["watcher"]["mode"], status["watcher"]["problem"]) == ("events", None)


async def finds(client, query, *files):
    return await found(client, query) == list(files)


@pytest.mark.usefixtures("deaf")
async def test_changes_that_no_event_tells_of_are_found_by_the_next_scan(project):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder, rescan_seconds=OFTEN_SECONDS)) as client:
        await settled(client, with_vectors=False)
        await follows(client, project)
        assert is_by_events(await status_of(client))


@pytest.mark.usefixtures("deaf")
async def test_events_lost_after_the_walk_of_a_run_are_made_good_by_another_run(project):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"  # by meaning, the other file would be found as well
    codebase = codebase_of(project, embedder)
    gate = Gate(codebase)
    async with serving(codebase) as client:
        await gate.wait()
        write(project, {"two.py": "banana = 1\n"})
        codebase.index.freshness._note_problem(watch.EVENTS_LOST)
        await anyio.wait_all_tasks_blocked()
        gate.open()
        await eventually(lambda: finds(client, "banana", "two.py"))


@pytest.mark.usefixtures("deaf")
async def test_a_request_finds_what_changed_after_the_walk_of_the_run_it_joins(project):
    write(project, {f"file{i}.py": "cherry = 1\n" for i in range(FILES_PER_BATCH)})
    codebase = codebase_of(project, FakeEmbedder())
    gate = Gate(codebase)
    async with codebase.running():
        await gate.wait()
        write(project, {"two.py": "banana = 1\n"})
        run = await codebase.index.trigger(force_reindex=False)
        gate.open()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert (run.kind, codebase.index.ledger.count(INDEXED)) == (
            Kind.START,
            FILES_PER_BATCH + 2,
        )
        assert run.files_done == run.files_to_do == FILES_PER_BATCH + 2


@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize("force_reindex", [False, True])
async def test_who_joins_a_rebuild_gets_what_changed_after_it_was_read(project, force_reindex):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        index = codebase.index
        rebuilding = Gate(codebase, lambda store: store.generation == 1)
        run = await index.trigger(force_reindex=True)
        await rebuilding.wait()
        before = index.ledger
        write(project, {"one.py": "banana = 1\n" * 2, "two.py": "cherry = 1\n"})
        for _ in range(2):
            assert await index.trigger(force_reindex=force_reindex) is run
        rebuilding.open()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert (run.error, run.kind, index.indexer.runs.current) == (None, Kind.REBUILD, None)
        assert index.ledger is not before
        assert index.indexer.live.index.manifest.generation == 1
        assert index.ledger.count(INDEXED) == 2
        assert (run.files_done, run.files_to_do) == (2, 2)
        assert (await codebase.search("banana", 5)).hits[0].chunk.key == "one.py"


FAILING_CHILD = """
import sys
from pathlib import Path
from vector_index_mcp.indexing.preparing import child_main, file

def prepare(recipe, task, by_lines, sound=child_main.prepare):
    if task.key == "one.py" and Path({flaw!r}).exists():
        return file.failed(task, "internal error, see the log")
    return sound(recipe, task, by_lines)

child_main.prepare = prepare
child_main.main(*sys.argv[1:])
"""


@pytest.mark.usefixtures("deaf")
async def test_who_joins_a_scan_has_what_failed_before_tried_again(project, tmp_path, monkeypatch):
    flaw = tmp_path / "flaw"
    flaw.touch()
    command = [sys.executable, "-c", FAILING_CHILD.format(flaw=str(flaw))]
    monkeypatch.setattr(child, "_COMMAND", command)
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        assert set(codebase.index.ledger.failed) == {"one.py"}
        gate = Gate(codebase)
        write(project, {"two.py": "banana = 1\n"})
        run = codebase.index.indexer.begin_run(Kind.RESCAN)
        await gate.wait()
        flaw.unlink()
        assert await codebase.index.trigger(force_reindex=False) is run
        gate.open()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert (run.kind, codebase.index.ledger.failed) == (Kind.RESCAN, {})


@pytest.fixture
async def kept(project):
    """The service of the project, up to date; what no event tells it finds out when asked."""
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        await settled(client, with_vectors=False)
        yield codebase, client


async def test_a_sweep_finds_a_write_by_a_hard_link_from_outside(project, kept, tmp_path):
    codebase, client = kept
    (tmp_path / "outside").hardlink_to(project / "one.py")
    (tmp_path / "outside").write_text("banana = 1\n", encoding="utf-8")
    await codebase.index.freshness.sweep(codebase.index.indexer)
    await eventually(lambda: finds(client, "banana", "one.py"))


async def test_a_write_by_another_name_in_the_project_needs_no_sweep(project, kept):
    codebase, client = kept
    (project / "two.py").hardlink_to(project / "one.py")
    (project / "two.py").write_text("banana = 1\n", encoding="utf-8")

    async def are_both_found():
        return set(await found(client, "banana")) == {"one.py", "two.py"}

    await eventually(are_both_found)


@linux_only
async def test_a_write_through_a_map_that_leaves_the_stamp_is_found_when_the_map_is_closed(
    project, kept
):
    codebase, client = kept
    file = project / "one.py"
    with file.open("r+b") as opened:
        mapped = mmap.mmap(opened.fileno(), 0)
    with mapped:
        mapped[:5] = b"peach"  # the first write to a page is the one that is stamped
        await codebase.index.freshness.sweep(codebase.index.indexer)
        await eventually(lambda: finds(client, "peach", "one.py"))
        status = file.stat()
        mapped[:5] = b"guava"
    assert file.stat().st_mtime_ns == status.st_mtime_ns
    await eventually(lambda: finds(client, "guava", "one.py"))


def with_the_same_stamps(root, *texts):
    """Write files of the same size within one tick of the file system's clock."""
    for _ in range(1_000):
        write(root, dict(texts))
        for path, _ in texts:
            os.utime(root / path, ns=(10**18, 10**18))
        stamps = {stamp_of((root / path).stat()) for path, _ in texts}
        if len(stamps) == 1:
            return
    pytest.skip("the clock of this file system is too fine")


@linux_only
async def test_exchanged_folders_are_read_though_all_stamps_are_the_same(project):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    with_the_same_stamps(project, ("a/two.py", "banana = 1\n"), ("b/two.py", "cherry = 1\n"))
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        (project / "a").rename(project / "aside")
        (project / "b").rename(project / "a")
        (project / "aside").rename(project / "b")
        await eventually(lambda: finds(client, "banana", "b/two.py"))
        await eventually(lambda: finds(client, "cherry", "a/two.py"))


@linux_only
async def test_exchanged_folders_are_read_by_a_run_as_well(project):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    with_the_same_stamps(project, ("a/two.py", "banana = 1\n"), ("b/two.py", "cherry = 1\n"))
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        await settled(client, with_vectors=False)
        codebase.index.indexer.queue._soon = lambda *_: None  # no event comes through any more
        (project / "a").rename(project / "aside")
        (project / "b").rename(project / "a")
        (project / "aside").rename(project / "b")
        await call(client, "trigger_index")
        assert await finds(client, "banana", "b/two.py")
        assert await finds(client, "cherry", "a/two.py")


@linux_only
async def test_folders_that_were_exchanged_while_nobody_watched_are_read(project):
    with_the_same_stamps(project, ("a/two.py", "banana = 1\n"), ("b/two.py", "cherry = 1\n"))
    first = codebase_of(project, FakeEmbedder())
    async with first.running():
        await converged(first)
    (project / "a").rename(project / "aside")
    (project / "b").rename(project / "a")
    (project / "aside").rename(project / "b")
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        answer = await codebase.search("banana", 5)
        assert answer.hits[0].chunk.key == "b/two.py"
        assert "The index was wrong" not in answer.note
        assert (await codebase.index.status()).last_run.outcome.read == 2


async def test_a_write_by_a_name_that_is_gone_by_now_is_found_by_the_other(project, kept):
    codebase, client = kept
    (project / "two.py").hardlink_to(project / "one.py")
    await eventually(lambda: finds(client, "apple", "one.py", "two.py"))
    (project / "two.py").write_text("banana = 1\n", encoding="utf-8")
    (project / "two.py").unlink()
    await eventually(lambda: finds(client, "banana", "one.py"))


async def test_a_file_that_stays_open_is_followed(project, kept):
    codebase, client = kept
    with (project / "one.py").open("a", encoding="utf-8") as opened:
        opened.write("banana = 1\n")
        opened.flush()
        await eventually(lambda: finds(client, "banana", "one.py"))
        os.truncate(project / "one.py", 5)
        await eventually(lambda: finds(client, "banana"))


@linux_only
async def test_a_folder_that_is_mounted_over_is_found_by_a_sweep(project, tmp_path):
    write(project, {"under/two.py": "banana = 1\n"})
    write(tmp_path / "other", {"three.py": "damson = 1\n"})
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        await settled(client, with_vectors=False)
        command = ["mount", "--bind", str(tmp_path / "other"), str(project / "under")]
        if (await anyio.run_process(command, check=False)).returncode:
            pytest.skip("mounting is not permitted here")
        try:
            await codebase.index.freshness.sweep(codebase.index.indexer)
            await eventually(lambda: finds(client, "damson", "under/three.py"))
            write(tmp_path / "other", {"three.py": "elderberry = 1\n"})  # by its other place
            await eventually(lambda: finds(client, "elderberry", "under/three.py"))
        finally:
            await anyio.run_process(["umount", "--lazy", str(project / "under")])
        await codebase.index.freshness.sweep(codebase.index.indexer)
        await eventually(lambda: finds(client, "banana", "under/two.py"))


async def test_a_sweep_without_changes_queues_nothing(kept):
    codebase, client = kept
    for _ in range(3):
        await codebase.index.freshness.sweep(codebase.index.indexer)
        assert codebase.index.indexer.pending_path_count == 0


@linux_only
@pytest.mark.usefixtures("deaf", "soon")
async def test_a_network_file_system_is_scanned_and_the_status_says_so(project, monkeypatch):
    monkeypatch.setattr(mounts, "_mounts", lambda: {project: "nfs4"})
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        watcher = (await status_of(client))["watcher"]
        assert watcher["mode"] == "polling"
        assert "(nfs4) does not report changes that other machines make" in watcher["problem"]
        await follows(client, project)


@linux_only
@pytest.mark.usefixtures("soon")
async def test_once_a_silent_file_system_is_unmounted_events_are_relied_on(project, monkeypatch):
    seen = {project / "below": "nfs4"}
    monkeypatch.setattr(mounts, "_mounts", lambda: seen)
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        assert (await status_of(client))["watcher"]["mode"] == "polling"
        seen.clear()

        async def is_noticed():
            return is_by_events(await status_of(client))

        await eventually(is_noticed)
        await follows(client, project)


@pytest.fixture
def mounted(project, tmp_path):
    """A file system in user space that shows `project`, whose changes it is not told."""
    place = tmp_path / "mounted"
    place.mkdir()
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    if subprocess.run(["bindfs", project, place], capture_output=True, check=False).returncode:
        pytest.skip("nothing can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


@linux_only
@pytest.mark.usefixtures("soon")
async def test_what_changes_behind_a_real_file_system_in_user_space_is_found(project, mounted):
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(mounted, embedder)) as client:
        await settled(client, with_vectors=False)
        assert (await status_of(client))["watcher"]["mode"] == "polling"
        await follows(client, project)
        await follows(client, mounted, "three.py")
        assert (mounted / ".lancedb").is_dir()


class Droppable:
    """A file system that drops out when the process behind it is killed."""

    def __init__(self, project, place):
        self.place = place
        # What the kernel remembers would hide for a second that it is gone.
        self._command = ["bindfs", "-f", "-o", "attr_timeout=0", project, place]

    async def mount(self):
        self._process = await anyio.open_process(self._command)
        await eventually(self._is_mounted)

    async def _is_mounted(self):
        if self._process.returncode is not None:
            pytest.skip("nothing can be mounted here")
        return await anyio.to_thread.run_sync(os.path.ismount, self.place)

    async def drop(self):
        self._process.kill()
        await self._process.wait()
        with pytest.raises(OSError, match="not connected"):
            await anyio.Path(self.place).stat()

    async def umount(self):
        await anyio.run_process(["umount", "--lazy", self.place])
        await self._process.aclose()


@pytest.fixture
async def droppable(project, tmp_path):
    place = tmp_path / "droppable"
    place.mkdir()
    if shutil.which("bindfs") is None:
        pytest.skip("bindfs is not installed")
    droppable = Droppable(project, place)
    await droppable.mount()
    yield droppable
    await droppable.umount()


@linux_only
@pytest.mark.parametrize("when", ["before the start", "under the service"])
async def test_a_file_system_that_drops_out_is_told_and_followed_when_it_is_back(droppable, when):
    place = droppable.place
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    uri = str(place.parent / "index")
    codebase = codebase_of(place, embedder, uri=uri, rescan_seconds=OFTEN_SECONDS)
    if when == "before the start":
        await droppable.drop()
    async with serving(codebase) as client:
        if when == "under the service":
            await eventually(lambda: finds(client, "apple", "one.py"))
            await droppable.drop()

        async def is_told():
            await client.call_tool("search_index", {"query": "apple"})
            status = await status_of(client)
            return status["status"] == "ERROR" and status["error_message"]

        assert "the index is kept" in await eventually(is_told)
        if when == "under the service":
            number = codebase.index.indexer.runs.last.number

            async def is_scanned_again():
                return codebase.index.indexer.runs.last.number > number + 1

            await eventually(is_scanned_again)  # and looked for in vain
        await droppable.umount()
        await droppable.mount()
        await eventually(lambda: finds(client, "apple", "one.py"))
        await follows(client, place)


@pytest.mark.usefixtures("soon")
async def test_without_watches_the_project_is_scanned_and_the_status_says_so(project, monkeypatch):
    def refuse(self, signs):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(watch.Watch, "_started", refuse)
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        watcher = (await status_of(client))["watcher"]
        assert watcher["mode"] == "polling"
        assert "raise fs.inotify.max_user_instances" in watcher["problem"]
        await follows(client, project)


@pytest.fixture
def few_watches(monkeypatch):
    """Only the project's own folder gets a watch, until the returned list is emptied."""
    lacking = [True]
    add = inotify.Inotify._add

    def add_or_not(self, path):
        if lacking and path not in self._roots:
            self._on_limit()
            return False
        return add(self, path)

    monkeypatch.setattr(inotify.Inotify, "_add", add_or_not)
    return lacking


@linux_only
@pytest.mark.usefixtures("soon")
async def test_where_watches_run_out_the_project_is_scanned_and_the_status_says_so(
    project, few_watches
):
    write(project, {"sub/three.py": "damson = 1\n"})
    embedder = FakeEmbedder()
    embedder.absent = "no model here"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client, with_vectors=False)
        watcher = (await status_of(client))["watcher"]
        assert watcher["mode"] == "polling"
        assert "raise fs.inotify.max_user_watches" in watcher["problem"]
        await follows(client, project, "sub/two.py")
        few_watches.clear()  # the limit was raised

        async def are_events():
            return is_by_events(await status_of(client))

        await eventually(are_events)


@linux_only
@pytest.mark.usefixtures("few_watches")
async def test_that_watches_run_out_is_told_once_and_scanned_for_at_its_time(
    project, monkeypatch, caplog
):
    monkeypatch.setattr(freshness, "_POLLING_LEAST_SECONDS", 3_600.0)
    write(project, {f"sub{i}/three.py": "damson = 1\n" for i in range(5)})
    codebase = codebase_of(project, FakeEmbedder())
    async with serving(codebase) as client:
        await settled(client)
        await call(client, "trigger_index", force_reindex=True)  # every folder tells of it again
        rebuild = codebase.index.indexer.runs.last
        await anyio.wait_all_tasks_blocked()  # a scan that was due would begin now
        assert codebase.index.indexer.runs.current is None
        assert codebase.index.indexer.runs.last is rebuild
        assert caplog.text.count("watch limit reached") == 1


@pytest.mark.parametrize("uri", [".lancedb", "beside"])
async def test_a_project_deleted_and_made_again_is_indexed_as_it_is_now(project, uri):
    uri = uri if uri.startswith(".") else str(project.parent / uri)
    codebase = codebase_of(project, FakeEmbedder(), uri=uri, rescan_seconds=OFTEN_SECONDS)
    async with serving(codebase) as client:
        await settled(client)
        shutil.rmtree(project)

        async def is_told():
            return (await status_of(client))["status"] == "ERROR"

        await eventually(is_told)
        project.mkdir()
        write(project, {"new/four.py": "elderberry = 1\n"})

        async def is_followed():
            result = await client.call_tool("search_index", {"query": "elderberry"})
            hits = [] if result.is_error else result.structured_content["results"]
            return [hit["file_path"] for hit in hits] == ["new/four.py"]

        await eventually(is_followed)
        status = await settled(client)
        assert (status["indexed_file_count"], status["error_message"]) == (1, None)

"""What goes wrong around a running service is told with its remedy and loses nothing."""

import errno
import os
import shutil
import sys

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
    in_error,
    is_as_fresh,
    serving,
    settled,
    status_of,
    without_time,
)
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.errors import Problem, StoreError
from vector_index_mcp.indexing import freshness, tries
from vector_index_mcp.indexing.following import settle
from vector_index_mcp.indexing.preparing import child as child_module
from vector_index_mcp.indexing.reasons import INDEXED
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.writing import rebuild, scanned
from vector_index_mcp.indexing.writing.run import Kind
from vector_index_mcp.serving.loading import open_codebase
from vector_index_mcp.settings import Settings

pytestmark = pytest.mark.anyio

FILES = {f"sub/{i}.py": f"def number_{i}():\n    return {i}\n" for i in range(12)}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES | {"one.py": "apple = 1\n"})
    return root


@pytest.fixture
def embedder():
    return FakeEmbedder()


async def first_found(client, query, path):
    """Wait until `path` is the first answer to `query`, also over passing errors."""

    async def is_first():
        result = await client.call_tool("search_index", {"query": query})
        if result.is_error:
            return False
        return [hit["file_path"] for hit in result.structured_content["results"]][:1] == [path]

    await eventually(is_first)


@pytest.mark.parametrize("force_reindex", [False, True])
async def test_without_a_model_all_is_found_by_words_and_the_remedy_is_told(
    project, embedder, force_reindex
):
    embedder.absent = "there is no model; download one"
    async with serving(codebase_of(project, embedder)) as client:
        report = await call(client, "trigger_index")
        assert not report["complete"]
        assert "there is no model; download one" in report["message"]
        answer = await call(client, "search_index", query="apple")
        assert answer["mode"] == "lexical"
        assert "there is no model; download one" in answer["note"]
        assert answer["results"][0]["file_path"] == "one.py"
        status = await status_of(client)
        assert status["status"] == "WATCHING"
        assert status["model"]["state"] == "unavailable"
        assert status["model"]["reason"] == "there is no model; download one"
        assert (status["indexed_file_count"], status["embedded_chunk_count"]) == (13, 0)

        embedder.absent = ""
        assert (await call(client, "trigger_index", force_reindex=force_reindex))["complete"]
        assert (await call(client, "search_index", query="apple"))["mode"] == "hybrid"


async def test_a_trigger_that_joins_a_run_looks_for_the_model_as_well(project, embedder):
    embedder.absent = "there is no model; download one"
    codebase = codebase_of(project, embedder)
    first_run = Gate(codebase)
    async with codebase.running():
        await first_run.wait()
        embedder.start()
        assert embedder.state == "unavailable"
        embedder.absent = ""
        run = await codebase.index.trigger(force_reindex=False)
        assert run.kind is Kind.START
        assert embedder.state != "unavailable"
        first_run.open()
        await converged(codebase)
        assert codebase.index.ledger.unembedded_count == 0


async def test_a_model_that_is_gone_at_a_restart_costs_no_vector(project, embedder):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
    before = await contents(project / ".lancedb")
    without = FakeEmbedder()
    without.absent = "there is no model; download one"
    async with serving(codebase_of(project, without)) as client:
        await call(client, "search_index", query="apple")
        answer = await call(client, "search_index", query="apple")
        assert answer["mode"] == "lexical"
        assert "download one" in answer["note"]
        await call(client, "trigger_index")
    assert await contents(project / ".lancedb") == before


async def test_a_text_that_cannot_be_embedded_costs_the_others_nothing(project, embedder):
    embedder.poison = "apple"
    async with serving(codebase_of(project, embedder)) as client:

        async def are_the_others_embedded():
            return (await status_of(client))["embedded_chunk_count"] == 12

        await eventually(are_the_others_embedded)
        report = await call(client, "trigger_index")
        assert report["complete"]
        assert (report["indexed_chunk_count"], report["embedded_chunk_count"]) == (13, 12)
        status = await client.call_tool("get_status")
        assert status.structured_content["given_up_chunk_count"] == 1
        assert "12 of 13 chunks have vectors; the model failed on 1," in status.content[0].text
        assert "embedding goes on" not in status.content[0].text
        assert "one.py" in await found(client, "one")
        write(project, {"one.py": "apple = 1\n"})  # the same bytes at another time
        report = await call(client, "trigger_index")
        assert (report["indexed_chunk_count"], report["embedded_chunk_count"]) == (13, 12)
        write(project, {"one.py": "pear = 1\n"})  # a text without the poison
        await first_found(client, "pear", "one.py")
        assert (await settled(client))["embedded_chunk_count"] == 13


async def test_a_failed_request_to_the_model_is_made_again(project, embedder):
    embedder.failing_calls = {1}
    async with serving(codebase_of(project, embedder)) as client:
        assert (await settled(client))["embedded_chunk_count"] == 13


async def test_files_that_vanish_while_they_are_embedded_cost_nothing(project, embedder):
    embedder.hold()
    async with serving(codebase_of(project, embedder)) as client:

        async def is_embedding():
            return embedder.calls

        await eventually(is_embedding)
        shutil.rmtree(project / "sub")
        (project / "one.py").unlink()

        async def are_forgotten():
            return (await status_of(client))["indexed_file_count"] == 0

        await eventually(are_forgotten)
        embedder.release()
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")
        assert (await settled(client))["embedded_chunk_count"] == 1


BREAKING_CHILD = """
import sys
from vector_index_mcp.indexing.preparing import child_main
from vector_index_mcp.engine import chunk

def breaking(text, language, max_chars, cut=chunk.cut_text):
    if "apple" in text:
        raise RecursionError("too deep")
    return cut(text, language, max_chars)

chunk.cut_text = breaking
child_main.main(*sys.argv[1:])
"""


async def test_a_file_that_breaks_the_chunker_is_told_of_and_costs_no_other(
    project, embedder, monkeypatch
):
    sound = child_module._COMMAND
    monkeypatch.setattr(child_module, "_COMMAND", [sys.executable, "-c", BREAKING_CHILD])
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        status = await settled(client)
        assert status["failed"] == {"one.py": "internal error, see the log"}
        assert (status["indexed_file_count"], status["error_message"]) == (12, None)
        assert (await call(client, "trigger_index"))["run"]["files_failed"] == 1
        monkeypatch.setattr(child_module, "_COMMAND", sound)
        await codebase.index.pipeline.crew.end()
        report = await call(client, "trigger_index")
        assert (report["run"]["files_failed"], report["run"]["files_indexed"]) == (0, 1)
        await is_as_fresh(client, project)


async def test_a_full_disk_is_told_and_the_index_goes_on_when_there_is_space(
    project, embedder, small_disk
):
    uri = small_disk / "index"
    async with serving(codebase_of(project, embedder, uri=str(uri))) as client:
        await settled(client)
        filler = small_disk / "filler"
        filler.write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
        write(project, {"two.py": "banana = 1\n"})
        (project / "sub/0.py").unlink()
        status = await in_error(client)
        assert "the disk is full; free some space" in status["error_message"]
        assert status["indexed_file_count"] == 13
        assert (await found(client, "apple"))[0] == "one.py"
        note = (await call(client, "search_index", query="banana"))["note"]
        assert "Recent changes may be missing" in note
        assert "the disk is full" in note
        message = await failing_call(client, "trigger_index", force_reindex=True)
        assert "the disk is full; free some space" in message
        assert (await found(client, "apple"))[0] == "one.py"

        filler.unlink()
        await first_found(client, "banana", "two.py")
        await is_as_fresh(client, project)


async def test_nobody_waits_for_a_run_for_as_long_as_the_disk_is_full(
    project, embedder, small_disk, monkeypatch
):
    # Else the scan that follows an error may be under way when the status is asked.
    monkeypatch.setattr(freshness, "_SECONDS_BETWEEN_SCANS_AFTER_ERROR", 3_600.0)
    uri, filler = small_disk / "index", small_disk / "filler"
    async with serving(codebase_of(project, embedder, uri=str(uri))) as client:
        await settled(client)
        filler.write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
        write(project, {"two.py": "banana = 1\n"})
        told = await failing_call(client, "trigger_index")
        assert "the disk is full; free some space" in told
        status = await status_of(client)
        assert (status["status"], status["current_run"]) == ("ERROR", None)
    visited = codebase_of(project, FakeEmbedder(), uri=str(uri))  # as by a command
    async with visited.running(Role.VISITOR):
        run = await visited.index.catching_up()
        with anyio.fail_after(PATIENCE_SECONDS):
            await run.finished.wait()
        assert "the disk is full" in run.error
        answer = await visited.search("apple", 1)
        assert [hit.chunk.key for hit in answer.hits] == ["one.py"]
        assert "the disk is full" in answer.note
        with pytest.raises(StoreError, match="the disk is full"):
            await settle(visited.index)
        (project / "sub/0.py").unlink()  # which nobody reports to a visitor
        filler.unlink()
        assert (await visited.index.trigger(force_reindex=False)) is not run
        await converged(visited)
    fresh = await fresh_contents(project, FakeEmbedder(), project.parent / "fresh")
    assert without_time(await contents(uri)) == without_time(fresh)


async def test_nobody_waits_for_vectors_for_as_long_as_the_disk_is_full(
    project, embedder, small_disk
):
    uri, filler = small_disk / "index", small_disk / "filler"
    async with serving(codebase_of(project, embedder, uri=str(uri))) as client:
        await settled(client)
        embedder.hold()
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")
        filler.write_bytes(b"\0" * shutil.disk_usage(small_disk).free)
        embedder.release()

        async def failed():
            status = await client.call_tool("get_status")
            is_told = "is full" in (status.structured_content["error_message"] or "")
            return is_told and status.content[0].text

        assert "13 of 14 chunks have vectors\n" in await eventually(failed)
        report = await call(client, "trigger_index")
        assert not report["complete"]
        assert "All text is indexed" in report["message"]
        assert "the disk is full; free some space" in report["message"]
        filler.unlink()
        assert (await call(client, "trigger_index"))["complete"]
        assert (await status_of(client))["error_message"] is None
        await is_as_fresh(client, project)


@pytest.mark.parametrize("trigger", [False, True])
async def test_an_index_location_that_cannot_be_written_is_told(project, embedder, trigger):
    (project.parent / "file").write_text("not a folder", encoding="utf-8")
    codebase = codebase_of(project, embedder, uri=str(project.parent / "file" / "index"))
    async with serving(codebase) as client:
        if trigger:
            message = await failing_call(client, "trigger_index")
        else:
            status = await status_of(client)
            assert status["status"] == "ERROR"
            message = status["error_message"]
        assert "cannot be written" in message
        assert "set VECTOR_INDEX_LANCEDB_URI to a folder you may write" in message
        assert "set VECTOR_INDEX_LANCEDB_URI" in await failing_call(
            client, "search_index", query="apple"
        )


async def test_a_state_folder_that_cannot_be_written_is_named_and_the_index_answers(
    project, embedder, read_only
):
    state = project.parent / "state"
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        with read_only(state):  # needed only at the start and the end
            write(project, {"two.py": "banana = 1\n"})
            await first_found(client, "banana", "two.py")
    with read_only(state):
        async with serving(codebase_of(project, embedder)) as client:
            await call(client, "search_index", query="banana")  # waits for the try to open it
            status = await status_of(client)
            assert (status["status"], status["indexed_file_count"]) == ("ERROR", 14)
            assert f"the folder {state}/locks, " in status["error_message"]
            assert "set XDG_STATE_HOME to a folder you may write" in status["error_message"]
            result = await call(client, "search_index", query="banana")
            assert result["results"][0]["file_path"] == "two.py"
            assert "Recent changes may be missing: the folder " in result["note"]


async def test_an_index_that_becomes_read_only_answers_and_says_so(project, embedder, read_only):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        with read_only(project / ".lancedb" / "chunks.lance"):
            write(project, {"two.py": "banana = 1\n"})
            status = await in_error(client)
            assert "the folder is read-only; set VECTOR_INDEX_LANCEDB" in status["error_message"]
            result = await call(client, "search_index", query="apple")
            assert result["results"][0]["file_path"] == "one.py"
            assert "Recent changes may be missing: " in result["note"]
            assert "the folder is read-only" in result["note"]
        await first_found(client, "banana", "two.py")


async def test_an_index_location_that_no_file_system_takes_is_told(project):
    settings = Settings(lancedb_uri="n" * 300, embedding_cache_dir=str(project.parent / "cache"))
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.READER):
        with pytest.raises(StoreError, match="File name too long"):
            await codebase.search("apple", 5)


def damage(folder, pattern, how):
    """Damage every file below `folder` that matches; at least one."""
    victims = sorted(folder.glob(pattern))
    assert victims
    for victim in victims:
        if how == "truncated":
            victim.write_bytes(victim.read_bytes()[: victim.stat().st_size // 2])
        elif how == "emptied":
            victim.write_bytes(b"")
        elif how == "garbled":
            victim.write_bytes(b"\xa5" * victim.stat().st_size)
        else:
            victim.unlink()


DAMAGES = [
    (pattern, how)
    for pattern in (
        "chunks.lance/data/*",
        "chunks.lance/_versions/*",
        "files.lance/data/*",
        "manifest.lance/data/*",
        "manifest.lance/_versions/*",
    )
    for how in ("truncated", "emptied", "garbled", "deleted")
]


@pytest.mark.parametrize(("pattern", "how"), DAMAGES)
async def test_an_index_found_damaged_is_built_anew(project, embedder, pattern, how):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
    damage(project / ".lancedb", pattern, how)
    async with serving(codebase_of(project, embedder)) as client:
        await first_found(client, "apple", "one.py")
        await is_as_fresh(client, project)
        assert (await status_of(client))["error_message"] is None


@pytest.mark.parametrize("how", ["truncated", "emptied", "garbled", "deleted"])
async def test_an_index_damaged_under_the_running_service_is_built_anew(project, embedder, how):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        damage(project / ".lancedb", "chunks*.lance/data/*", how)
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")
        await first_found(client, "number_3", "sub/3.py")
        await call(client, "trigger_index", force_reindex=True)
        await is_as_fresh(client, project)


def as_a_link(path, target):
    path.rename(target)
    path.symlink_to(target)


def as_a_pipe(path, _target):
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("pattern", "put"),
    [
        ("manifest.lance", as_a_link),
        ("chunks.lance", as_a_link),
        ("files.lance/data", as_a_link),
        ("chunks.lance/_versions/*.manifest", as_a_pipe),
        ("chunks.lance/data/*", as_a_pipe),
        ("files.lance/data/*", as_a_pipe),
    ],
)
@pytest.mark.parametrize("force_reindex", [None, True])
async def test_what_is_no_plain_file_is_neither_waited_for_nor_written_through(
    project, embedder, tmp_path, pattern, put, force_reindex
):
    aside = tmp_path / "aside"
    aside.mkdir()
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for path in (project / ".lancedb").glob(pattern):
            put(path, aside / path.name)
        before = below(aside)
        reader = codebase_of(project, FakeEmbedder())
        async with reader.running(Role.READER):
            with pytest.raises(StoreError, match="is no plain file"):
                await reader.index.verify()
        if force_reindex is not None:
            await call(client, "trigger_index", force_reindex=force_reindex)
        assert (await found(client, "apple"))[0] == "one.py"
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")
        await is_as_fresh(client, project)
    assert below(aside) == before


def below(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["truncated", "emptied", "garbled"])
async def test_what_only_other_processes_read_is_repaired_when_somebody_asks(
    project, embedder, how
):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        damage(project / ".lancedb", "files.lance/data/*", how)
        await call(client, "trigger_index")
        await is_as_fresh(client, project)


async def test_tables_of_another_project_answer_no_question(project, embedder, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write(other, {"three.py": "cherry = 1\n"})
    async with serving(codebase_of(other, FakeEmbedder())) as client:
        await settled(client)
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        for name in ("manifest.lance", "chunks.lance", "files.lance"):
            shutil.rmtree(project / ".lancedb" / name)
            shutil.copytree(other / ".lancedb" / name, project / ".lancedb" / name)
            assert (await found(client, "apple"))[0] == "one.py"
            await is_as_fresh(client, project)


async def test_searches_that_work_hide_no_index_that_cannot_be_written(project, embedder):
    codebase = codebase_of(project, embedder)
    async with serving(codebase) as client:
        await settled(client)
        commit, damaged = codebase.index.pipeline.commit, []

        async def failing(store, *arguments):
            damaged[:] = damaged or [store]
            if store in damaged:
                raise StoreError("words that nobody knows", Problem.INDEX_DAMAGED)
            return await commit(store, *arguments)

        codebase.index.pipeline.commit = failing
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")  # searches again and again
        await is_as_fresh(client, project)
        assert damaged
        assert (await status_of(client))["error_message"] is None


@pytest.mark.parametrize("query_first", [True, False])
async def test_an_index_deleted_under_the_running_service_is_built_anew(
    project, embedder, query_first
):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
        shutil.rmtree(project / ".lancedb")
        if not query_first:
            write(project, {"two.py": "banana = 1\n"})
            await first_found(client, "banana", "two.py")
        await first_found(client, "apple", "one.py")
        await is_as_fresh(client, project)
        assert (project / ".lancedb" / ".gitignore").read_text(encoding="utf-8") == "*\n"


@pytest.mark.parametrize("force_reindex", [False, True])
async def test_a_project_moved_away_in_the_middle_of_a_run_is_not_forgotten(
    project, embedder, monkeypatch, force_reindex
):
    for module in (rebuild, scanned):
        monkeypatch.setattr(module, "FILES_PER_BATCH", 5)
    codebase = codebase_of(project, embedder, uri=str(project.parent / "index"))
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
    before = await contents(codebase.index.uri)
    write(project, {name: f"{text}# more\n" for name, text in FILES.items()})
    codebase = codebase_of(project, embedder, uri=codebase.index.uri)
    gate = Gate(codebase)
    async with codebase.running(Role.VISITOR):
        if force_reindex:
            gate.open()
            await converged(codebase)
            before = await contents(codebase.index.uri)
            gate = Gate(codebase)
        run = await codebase.index.trigger(force_reindex=force_reindex)
        await gate.wait()
        away = project.rename(project.parent / "away")
        gate.open()
        await run.finished.wait()
        assert "the index is kept" in run.error
        await converged(codebase)
        assert "the index is kept" in codebase.index.state.error
        rows, records = await contents(codebase.index.uri)
        assert records.keys() == before[1].keys()
        assert {record.state for record in records.values()} == {INDEXED}
        assert (rows == before[0]) is force_reindex

        away.rename(project)
        await codebase.index.trigger(force_reindex=False)
        await converged(codebase)
        assert codebase.index.state.error is None
    fresh = await fresh_contents(project, FakeEmbedder(), project.parent / "fresh")
    assert without_time(await contents(codebase.index.uri)) == without_time(fresh)


@pytest.mark.parametrize("uri", [".lancedb", "../index"])
async def test_a_project_moved_away_and_back_is_not_forgotten(project, embedder, uri):
    codebase = codebase_of(project, embedder, uri=uri)
    async with serving(codebase) as client:
        await settled(client)
        before = await contents(codebase.index.uri)
        away = project.rename(project.parent / "away")

        async def is_error():
            await client.call_tool("search_index", {"query": "apple"})
            status = await status_of(client)
            return status["status"] == "ERROR" and status

        status = await eventually(is_error)
        assert "the index is kept and goes on when the folder is back" in status["error_message"]
        message = await failing_call(client, "trigger_index", force_reindex=True)
        assert "the index is kept" in message
        assert not project.exists()

        away.rename(project)
        await call(client, "trigger_index")
        status = await settled(client)
        assert status["error_message"] is None
        assert status["indexed_file_count"] == 13
        await first_found(client, "apple", "one.py")
        assert (await contents(codebase.index.uri))[0] == before[0]
        write(project, {"two.py": "banana = 1\n"})
        await first_found(client, "banana", "two.py")
        await settled(client)
    assert len(embedder.texts) == 14


class Mistake:
    """An error of this program, in one of its functions: that raises what nobody expects of it."""

    def __init__(self, function, times, error):
        self.tries = 0
        self._function, self._times, self._error = function, times, error

    async def __call__(self, *arguments, **options):
        self.tries += 1
        if self.tries <= self._times:
            raise self._error
        return await self._function(*arguments, **options)


def make_mistakes(codebase, where, times, error=KeyError("nobody foresaw this")):  # noqa: B008
    """Have `times` calls of the function that does `where` fail, in a service about to run."""
    index = codebase.index
    owner, name = {
        "opening": (index._keeper.opener, "open"),
        "committing": (index.pipeline, "commit"),
        "embedding": (index.cached_embedder, "vectors_of"),
    }[where]
    mistake = Mistake(getattr(owner, name), times, error)
    setattr(owner, name, mistake)
    return mistake


@pytest.fixture
def pauses(monkeypatch):
    """Between two tries of what has failed by an error of this program: as long as a test says."""
    return lambda *seconds: monkeypatch.setattr(tries, "_FAULT_SECONDS", seconds)


@pytest.mark.parametrize("where", ["opening", "committing", "embedding"])
async def test_an_error_that_nobody_foresaw_is_told_and_ends_nothing(
    project, embedder, pauses, where
):
    pauses(0.01)
    codebase = codebase_of(project, embedder)
    mistake = make_mistakes(codebase, where, times=3)
    async with serving(codebase) as client:
        await first_found(client, "apple", "one.py")
        await is_as_fresh(client, project)
        assert mistake.tries > 3
        assert (await status_of(client))["error_message"] is None


async def test_what_is_indexed_is_found_while_an_error_of_ours_lasts(project, embedder, pauses):
    async with serving(codebase_of(project, embedder)) as client:
        await settled(client)
    pauses(3_600.0)
    codebase = codebase_of(project, embedder)
    mistake = make_mistakes(codebase, "committing", times=1)
    async with serving(codebase) as client:
        await settled(client)
        write(project, {"two.py": "banana = 1\n"})
        status = await in_error(client)
        assert "an error of this program keeps the index (KeyError)" in status["error_message"]
        assert "please report it" in status["error_message"]
        assert "one.py" in await found(client, "apple")
        keeper = codebase.index._keeper
        await eventually(
            lambda: keeper._tries.is_pausing or keeper.kept
        )  # the search may have asked
        assert (await call(client, "trigger_index"))["complete"]  # who asks need not wait an hour
        assert mistake.tries == 2
        assert "two.py" in await found(client, "banana")
        await is_as_fresh(client, project)


async def test_an_error_of_ours_that_lasts_is_met_less_and_less_often(project, embedder, pauses):
    pauses(0.01, 0.01, 3_600.0)
    codebase = codebase_of(project, embedder)
    mistake = make_mistakes(codebase, "opening", times=9)
    async with serving(codebase):

        async def is_pausing():
            return mistake.tries == 3

        await eventually(is_pausing)
        await codebase.index._keeper.wait()
        assert mistake.tries == 3


async def test_a_command_that_meets_an_error_of_ours_ends_with_it(project, embedder):
    codebase = codebase_of(project, embedder)
    make_mistakes(codebase, "committing", times=1)
    async with codebase.running(Role.VISITOR):
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        assert "an error of this program keeps the index (KeyError)" in run.error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RuntimeError("can't start new thread"), "ulimit -u"),
        (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
        (MemoryError(), "ulimit -v"),
    ],
)
async def test_what_the_machine_lacks_is_no_error_of_ours(project, embedder, error, words):
    codebase = codebase_of(project, embedder)
    make_mistakes(codebase, "committing", times=1, error=error)
    async with codebase.running(Role.VISITOR):
        run = await codebase.index.trigger(force_reindex=False)
        await run.finished.wait()
        assert words in run.error
        assert "report" not in run.error

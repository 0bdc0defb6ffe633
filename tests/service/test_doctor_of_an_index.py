"""What the doctor finds of an index: sound, absent, and wrong in the ways it can tell."""

import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace

import anyio
import anyio.to_thread
import other_process
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, converged
from writing import write

from vector_index_mcp.background.births import birth_of
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.doctor.finding import Case, Verdict, ok
from vector_index_mcp.doctor.index import first_answer, index, service
from vector_index_mcp.doctor.subject import Project
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest
from vector_index_mcp.indexing.opening.locks import lock_of
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.folders import state_folder
from vector_index_mcp.settings import Settings

FILES = {
    "a.py": "def first():\n    return 1\n",
    "b.py": "def second():\n    return 2\n",
    "picture.dat": "\0\1\2",
}


@pytest.fixture
def case(tmp_path, monkeypatch):
    """A project that is not indexed."""
    monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    project = tmp_path / "project"
    write(project, FILES)
    settings = Settings(
        embedding_model="./no-such-model", embedding_cache_dir=str(tmp_path / "cache")
    )
    subject = Project(project, settings)
    return Case(subject, settings, {}, tmp_path / "cache", state_folder())


@pytest.fixture
def indexed(case):
    async def build():
        codebase = codebase_of(case.subject.project, FakeEmbedder(), state_folder=case.state_folder)
        async with codebase.running(Role.VISITOR):
            await codebase.index.trigger(force_reindex=False)
            await converged(codebase)

    anyio.run(build)
    return case


def with_store(case, change):
    """Do to the store what a fault may have done."""

    async def opened():
        found = await Index.open(case.subject.place.uri)
        assert found is not None
        await change(found.store)
        found.close()

    anyio.run(opened)


def test_a_sound_index_is_told_by_its_counts(indexed):
    finding = index(indexed)
    assert finding.verdict is Verdict.OK
    assert finding.words.startswith("2 chunks of 2 files, 2 vectors, 1 file skipped, 0 failed, ")


def test_nothing_is_written(indexed):
    def state():
        return {p: p.stat().st_mtime_ns for p in indexed.subject.project.rglob("*") if p.is_file()}

    before = state()
    index(indexed)
    first_answer(indexed)
    assert state() == before


def test_a_project_without_an_index_is_told_how_it_gets_one(case):
    finding = index(case)
    assert finding.verdict is Verdict.WARNING
    assert finding.remedy == f"vector-index-mcp index {case.subject.project}, or connect a client"
    assert first_answer(case).verdict is Verdict.NOT_TRIED
    assert not (case.subject.project / ".lancedb").exists()


@pytest.mark.parametrize(
    "pattern", ["files.lance/data/*", "chunks.lance/data/*", "manifest.lance/data/*"]
)
def test_a_damaged_index_is_told_how_it_is_mended(indexed, pattern):
    victims = list((indexed.subject.project / ".lancedb").glob(pattern))
    assert victims
    for victim in victims:
        victim.write_bytes(victim.read_bytes()[:20])
    finding = index(indexed)
    assert finding.verdict is Verdict.FAILED
    assert finding.remedy == f"vector-index-mcp index {indexed.subject.project} builds it anew"


def test_an_index_of_another_format_is_told(indexed):
    manifest = Manifest(owner=str(indexed.subject.project), chunker="x", format=0)
    anyio.run(Index.create, indexed.subject.place.uri, manifest)
    finding = index(indexed)
    assert (finding.verdict, finding.words) == (
        Verdict.WARNING,
        "another version of this program wrote it",
    )


def test_rows_that_are_not_as_recorded_are_told_by_their_file(indexed):
    with_store(indexed, lambda store: store.delete(["b.py"]))
    assert index(indexed).verdict is Verdict.OK  # rows and record are gone together

    async def half(store):
        records = [r for r in await store.records() if r.key == "a.py"]
        await store.delete(["a.py"])
        await store.put_records(records)

    with_store(indexed, half)
    finding = index(indexed)
    assert finding.verdict is Verdict.FAILED
    assert "1 file has other rows than recorded: a.py" in finding.words
    assert str(indexed.subject.project) in finding.remedy


def test_an_index_of_another_project_is_told(indexed, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    settings = Settings(lancedb_uri=indexed.subject.place.uri)
    subject = Project(other, settings)
    finding = index(replace(indexed, subject=subject))
    assert finding.verdict is Verdict.FAILED
    assert finding.words == f"it belongs to {indexed.subject.project}"


@contextmanager
def sleeping(*arguments):
    """A process with these arguments that does nothing; ended at the end."""
    command = [sys.executable, "-c", "print(flush=True); input()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()  # in the middle of its start, /proc shows no arguments
        yield process.pid


def test_a_service_that_does_not_answer_is_told_by_its_process(indexed):
    with sleeping() as pid:
        record = {"pid": pid, "birth": birth_of(pid)}
        endpoint_of("codebase", indexed.subject.project).write_record(record)
        finding = service(indexed)
    assert finding.verdict is Verdict.FAILED
    assert finding.words == f"process {pid} does not answer"
    assert indexed.subject.stop in finding.remedy


@pytest.mark.parametrize("arguments", [["of somebody else"], ["-m", "vector_index_mcp", "host"]])
def test_nobody_is_told_to_end_a_process_that_has_the_number_of_a_former_service(
    indexed, arguments
):
    with sleeping(*arguments) as pid:
        record = {"pid": pid, "birth": "of a former process"}
        endpoint_of("codebase", indexed.subject.project).write_record(record)
        finding = service(indexed)
    assert finding == ok("none runs; the first client starts one")


def test_another_writer_is_told(indexed):
    async def examined():
        state = indexed.state_folder
        codebase = codebase_of(indexed.subject.project, FakeEmbedder(), state_folder=state)
        async with codebase.running():
            await codebase.index.catching_up()
            return await anyio.to_thread.run_sync(service, indexed)

    assert anyio.run(examined) == ok("none runs; another process writes the index")


def test_an_answer_is_timed_without_a_service(indexed):
    finding = first_answer(indexed)
    assert finding.verdict is Verdict.OK
    assert "with the index opened for it, the next 0." in finding.words


def test_a_writer_that_is_stopped_is_told(indexed):
    lock = lock_of(str(indexed.subject.project / ".lancedb"), indexed.state_folder)
    with other_process.writer(lock, Role.DEPUTY) as writer:
        assert index(indexed).verdict is Verdict.OK
        other_process.stop(writer)
        found = index(indexed)
    assert found.verdict is Verdict.WARNING
    assert f"process {writer.pid}, which writes this index, is stopped" in found.remedy

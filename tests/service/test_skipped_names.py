"""What has a name that is not Unicode, or lies too deep, is told at once, why, and to everybody."""

import os
import shutil
import sys

import pytest
from fakes import FakeEmbedder
from serving import codebase_of
from waiting import eventually
from writing import write

from vector_index_mcp.indexing.reasons import SKIPPED
from vector_index_mcp.indexing.verify import NOT_INDEXED

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="a name may be any bytes"),
]

NO_TEXT = os.fsdecode(b"caf\xe9.py")
DEEPEST = "/".join(["d"] * 201)
UNICODE, DEEP = "name is not valid Unicode", "folder is nested too deep"


@pytest.fixture
def project(tmp_path):
    return write(tmp_path / "project", {"one.py": "apple = 1\n"})


async def settled(codebase):
    async def is_settled():
        return codebase.index.indexer is not None and not codebase.index.progress.is_busy

    await eventually(is_settled)


async def skipped(codebase):
    """What is skipped, and why: to the writer, and to somebody who reads what it has committed."""
    reader = codebase_of(codebase.root, FakeEmbedder())
    async with reader.running(), reader.index.reading() as (_, ledger):
        assert reader.index.indexer is None
        told = {record.key: record.reason for record in ledger.with_state(SKIPPED)}
    ours = codebase.index.ledger.with_state(SKIPPED)
    return told if told == {record.key: record.reason for record in ours} else None


async def become(codebase, expected):
    async def are_so():
        return await skipped(codebase) == expected

    await eventually(are_so)
    await settled(codebase)


@pytest.mark.parametrize(
    "query", ["caf\xe9.py", "cafe_handler", "café", "README", "docs/", "docs", "caf"]
)
async def test_a_name_that_is_not_unicode_spoils_no_answer(project, query):
    names = (b"caf\xe9.py", b"README.fran\xe7ais", b"docs/r\xe9sum\xe9.md", b"caf\xe9_handler.py")
    write(
        project, {os.fsdecode(name): "x = 1\n" for name in names} | {"docs/install.md": "guide\n"}
    )
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        runs = codebase.index.indexer.runs.last.number
        answer = await codebase.search(query, 10)
        assert all(hit.chunk.key.isascii() for hit in answer.hits)
        await settled(codebase)
        assert codebase.index.indexer.runs.last.number == runs  # nobody took it for damage


async def test_names_that_are_not_unicode_are_told_to_who_reads_and_at_the_next_start(project):
    write(project, {NO_TEXT: "banana = 1\n"})
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        assert await skipped(codebase) == {NO_TEXT: UNICODE}
        assert (await codebase.index.verify()).faults == {}
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        assert codebase.index.indexer.runs.last.outcome.read == 0
        assert await skipped(codebase) == {NO_TEXT: UNICODE}
        (project / NO_TEXT).unlink()
        await become(codebase, {})
        write(project, {NO_TEXT: "cherry = 1\n"})
        await become(codebase, {NO_TEXT: UNICODE})


async def test_folders_that_are_too_deep_are_told_as_they_come_and_go(project):
    (project / DEEPEST).mkdir(parents=True)
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        assert await skipped(codebase) == {f"{DEEPEST}/": DEEP}
        status = await codebase.index.status()
        assert (status.skipped, status.unreadable) == ({DEEP: 1}, [])
        assert (await codebase.index.verify()).faults == {}
        (project / f"{DEEPEST}/deeper").mkdir()
        beside = f"{DEEPEST.removesuffix('d')}e"
        (project / beside).mkdir()
        await become(codebase, {f"{DEEPEST}/": DEEP, f"{beside}/": DEEP})
        (project / beside).rmdir()
        await become(codebase, {f"{DEEPEST}/": DEEP})
        codebase.index.indexer.look_again([DEEPEST])
        await settled(codebase)
        await become(codebase, {f"{DEEPEST}/": DEEP})
        write(project, {".gitignore": "d/d/d/\n"})
        await become(codebase, {})
        (project / ".gitignore").unlink()
        await become(codebase, {f"{DEEPEST}/": DEEP})
        run = await codebase.index.trigger(force_reindex=True)
        await run.finished.wait()
        await become(codebase, {f"{DEEPEST}/": DEEP})
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        assert codebase.index.indexer.runs.last.outcome.read == 0
        shutil.rmtree(project / "d")
        await become(codebase, {})


async def test_a_folder_that_is_moved_in_with_one_that_is_too_deep_is_told(project, tmp_path):
    (tmp_path / "out" / DEEPEST).mkdir(parents=True)
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        (tmp_path / "out" / "d").rename(project / "in")
        await become(codebase, {f"in/{DEEPEST.removeprefix('d/')}/": DEEP})


async def test_what_no_record_names_is_a_fault(project):
    codebase = codebase_of(project, FakeEmbedder())
    async with codebase.running():
        await settled(codebase)
        codebase.index.indexer.queue.take_touched()
        await codebase.index.freshness.stop()
        write(project, {NO_TEXT: "banana = 1\n"})
        assert (await codebase.index.verify()).faults == {NO_TEXT: NOT_INDEXED}

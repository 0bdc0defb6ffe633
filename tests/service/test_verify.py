"""An index compared with its project: sound, and wrong in every way that can be told."""

import numpy as np
import pytest
from fakes import FakeEmbedder
from serving import codebase_of, converged
from writing import write

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing import verify
from vector_index_mcp.indexing.role import Role

pytestmark = pytest.mark.anyio

FILES = {
    "a.py": "def first():\n    return 1\n",
    "b.py": "def second():\n    return 2\n",
    "c.md": "# Title\n\nText.\n",
    "picture.dat": "\0\1\2",
    ".env": "TOKEN=1",
}


@pytest.fixture
async def project(tmp_path):
    root = tmp_path / "project"
    write(root, FILES)
    async with (codebase := codebase_of(root, FakeEmbedder())).running(Role.VISITOR):
        await codebase.index.trigger(force_reindex=False)
        await converged(codebase)
    return root


@pytest.fixture
async def store(project):
    """The store itself, to be damaged."""
    index = await Index.open(str(project / ".lancedb"))
    assert index is not None
    yield index.store
    index.close()


async def report_of(project):
    async with (codebase := codebase_of(project, FakeEmbedder())).running(Role.READER):
        return await codebase.index.verify()


async def test_a_sound_index_is_true(project):
    report = await report_of(project)

    assert report.faults == {}
    assert (report.files, report.chunks, report.vectors) == (3, 3, 3)


async def test_what_changed_on_disk_is_told(project):
    write(project, {"a.py": "def other():\n    return 1\n", "new.py": "x = 1\n"})
    (project / "b.py").unlink()

    report = await report_of(project)

    assert report.faults == {
        "a.py": verify.OTHER_TEXT,
        "b.py": verify.GONE,
        "new.py": verify.NOT_INDEXED,
    }


async def test_rows_that_are_gone_are_told(project, store):
    await store._tables.chunks.delete("file_path = 'a.py'")

    assert (await report_of(project)).faults == {"a.py": verify.STRAY_ROWS}


async def test_rows_of_two_generations_are_told(project, store):
    rows = await store._tables.chunks.query().where("file_path = 'a.py'").to_arrow()
    await store._tables.chunks.add(rows)

    assert (await report_of(project)).faults == {"a.py": verify.STRAY_ROWS}


async def test_rows_of_a_file_nobody_knows_are_told(project, store):
    await store._tables.files.delete("file_path = 'a.py'")
    (project / "a.py").unlink()

    assert (await report_of(project)).faults == {"a.py": verify.STRAY_ROWS}


@pytest.mark.parametrize(
    "change",
    [
        {"extracted_text_chunk": "'def first():\n    return 3\n'"},
        {"start_line": "2"},
        {"scope": "'class Foo'"},
        {"chunk_hash": "'ff'"},
    ],
)
async def test_chunks_that_are_not_those_of_the_text_are_told(project, store, change):
    await store._tables.chunks.update(where="file_path = 'a.py'", updates_sql=change)

    assert (await report_of(project)).faults == {"a.py": verify.OTHER_CHUNKS}


@pytest.mark.parametrize("vector", [np.zeros(64), np.ones(64)])
async def test_vectors_that_are_none_are_told(project, store, vector):
    await store._tables.chunks.update({"vector": vector.tolist()}, where="file_path = 'a.py'")

    assert (await report_of(project)).faults == {"a.py": verify.BAD_VECTOR}


async def test_a_file_said_to_be_skipped_that_need_not_be_is_told(project, store):
    [record] = [r for r in await store.records() if r.key == "a.py"]
    skipped = FileRecord("a.py", record.stamp, record.content_hash, 0, "skipped", "binary")
    await store.put_records([skipped])

    assert (await report_of(project)).faults == {"a.py": verify.OTHER_TEXT}


async def test_a_rebuild_makes_it_true_again(project, store):
    await store._tables.chunks.update(where="true", updates_sql={"scope": "'class Foo'"})
    assert len((await report_of(project)).faults) == 3

    async with (codebase := codebase_of(project, FakeEmbedder())).running(Role.VISITOR):
        await (await codebase.index.trigger(force_reindex=True)).finished.wait()

    assert (await report_of(project)).faults == {}

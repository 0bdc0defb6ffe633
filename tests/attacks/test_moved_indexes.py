"""Projects and indexes that are moved, copied, deleted, restored, replaced, also while served."""

import os
import shutil
from contextlib import asynccontextmanager

import anyio
import pytest
from attacks.canaries import state_of
from fakes import FakeEmbedder
from serving import (
    call,
    codebase_of,
    contents,
    converged,
    failing_call,
    found,
    fresh_contents,
    indexed,
    is_as_fresh,
    serving,
    settled,
    status_of,
    without_time,
)
from waiting import eventually
from writing import write

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.errors import ProjectError
from vector_index_mcp.indexing.opening.local import Opener
from vector_index_mcp.indexing.place import Place

pytestmark = pytest.mark.anyio

FILES = {f"m{i}.py": f"def number_{i}():\n    return {i}\n" for i in range(5)}


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    write(root, FILES | {"one.py": "apple = 1\n"})
    return root


@asynccontextmanager
async def kept(root, embedder=None, **options):
    """The project's service, up to date."""
    codebase = codebase_of(root, embedder or FakeEmbedder(), **options)
    async with codebase.running():
        await converged(codebase)
        yield codebase


async def test_a_project_that_is_moved_while_it_is_served_is_kept_at_its_new_place(project):
    moved = project.parent / "moved"
    embedder = FakeEmbedder()
    async with serving(codebase_of(project, FakeEmbedder())) as old:
        await settled(old)
        before = await contents(project / ".lancedb")
        project.rename(moved)
        async with serving(codebase_of(moved, embedder)) as new:

            async def is_kept():
                return (await status_of(new))["is_writer"]

            await eventually(is_kept)
            assert await contents(moved / ".lancedb") == before
            write(moved, {"two.py": "banana = 1\n"})

            async def is_found():
                return (await found(new, "banana"))[:1] == ["two.py"]

            await eventually(is_found)
            message = await failing_call(old, "search_index", query="apple")
            assert f"the project folder {project} is gone" in message
            message = await failing_call(old, "trigger_index")
            assert f"the project folder {project} is gone" in message
            assert (await status_of(old))["status"] == "ERROR"
            await is_as_fresh(new, moved, without_time)
        assert not project.exists()
    assert len(embedder.texts) == 1


@pytest.mark.parametrize("is_served", [True, False])
async def test_a_copy_of_a_project_becomes_an_index_of_its_own(project, is_served):
    await indexed(project, FakeEmbedder())
    copy, embedder = project.parent / "copy", FakeEmbedder()
    async with anyio.create_task_group() as tasks:
        if is_served:
            original = codebase_of(project, FakeEmbedder())

            async def serve(*, task_status):
                async with original.running():
                    await converged(original)
                    task_status.started()
                    await anyio.sleep_forever()

            await tasks.start(serve)
        shutil.copytree(project, copy, symlinks=True)
        write(copy, {"one.py": "cherry = 1\n"})
        async with serving(codebase_of(copy, embedder)) as client:
            await settled(client)
            assert (await found(client, "cherry"))[0] == "one.py"
            await is_as_fresh(client, copy, without_time)
            assert (await status_of(client))["index_location"] == str(copy / ".lancedb")
        tasks.cancel_scope.cancel()
    assert len(embedder.texts) == 1
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await is_as_fresh(client, project, without_time)


async def test_a_copy_keeps_its_vectors_even_if_the_cache_has_lost_them(project):
    await indexed(project, FakeEmbedder())
    copy, embedder = project.parent / "copy", FakeEmbedder()
    shutil.copytree(project, copy)
    shutil.rmtree(project.parent / "cache")
    await indexed(copy, embedder)
    assert embedder.texts == []


async def test_a_copy_made_of_hard_links_and_its_original_are_both_kept(project):
    await indexed(project, FakeEmbedder())
    copy = project.parent / "copy"
    shutil.copytree(project, copy, copy_function=os.link)
    async with kept(project) as first, kept(copy) as second:
        assert first.index.indexer is not None
        assert second.index.indexer is not None
    for root in (project, copy):
        async with serving(codebase_of(root, FakeEmbedder())) as client:
            await is_as_fresh(client, root, without_time)


async def test_an_index_restored_from_a_backup_is_brought_up_to_date(project):
    await indexed(project, FakeEmbedder())
    backup = project.parent / "backup"
    shutil.copytree(project / ".lancedb", backup)
    write(project, {"one.py": "banana = 1\n", "new.py": "cherry = 1\n"})
    (project / "m1.py").unlink()
    await indexed(project, FakeEmbedder())
    shutil.rmtree(project / ".lancedb")
    shutil.copytree(backup, project / ".lancedb")
    embedder = FakeEmbedder()
    async with serving(codebase_of(project, embedder)) as client:
        await is_as_fresh(client, project, without_time)
    assert embedder.texts == []


async def test_an_index_that_is_replaced_while_it_is_served_is_noticed_by_a_trigger(project):
    """A synchroniser writes an older state over it, file by file, and keeps the folder."""
    await indexed(project, FakeEmbedder())
    backup = project.parent / "backup"
    shutil.copytree(project / ".lancedb", backup)
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        write(project, {"one.py": "banana = 1\n"})

        async def is_found():
            return (await found(client, "banana"))[:1] == ["one.py"]

        await eventually(is_found)
        await settled(client)
        for name in ("chunks", "files", "manifest"):
            shutil.rmtree(project / f".lancedb/{name}.lance")
            shutil.copytree(backup / f"{name}.lance", project / f".lancedb/{name}.lance")
        await call(client, "trigger_index")
        await eventually(is_found)
        await is_as_fresh(client, project, without_time)


@pytest.mark.parametrize("is_made_anew", [True, False])
async def test_a_deleted_index_leaves_one_writer(project, is_made_anew):
    state = project.parent / "state"
    async with kept(project) as codebase:
        shutil.rmtree(project / ".lancedb")
        if is_made_anew:
            (project / ".lancedb").mkdir()
        other = Opener(Place.in_project(project, ".lancedb"), "1", state, REMEDIES)
        assert other.is_taken()
        assert not other.acquire()
        write(project, {"two.py": "banana = 1\n"})

        async def is_found():
            with_it = (await codebase.search("banana", 1)).hits
            return [hit.chunk.key for hit in with_it] == ["two.py"]

        await eventually(is_found)
        await converged(codebase)
        assert not Opener(Place.in_project(project, ".lancedb"), "1", state, REMEDIES).acquire()
    fresh = await fresh_contents(project, FakeEmbedder(), project.parent / "fresh")
    assert without_time(await contents(project / ".lancedb")) == without_time(fresh)


async def test_a_project_out_of_reach_is_never_told_to_hold_nothing(project, tmp_path):
    async with kept(project, uri=str(tmp_path / "elsewhere")) as codebase:
        away = project.rename(project.parent / "away")
        with pytest.raises(ProjectError, match="is gone; the index is kept"):
            await codebase.search("number", 5)
        assert not project.exists()
        away.rename(project)
        assert len((await codebase.search("number", 5)).hits) == 5


async def test_two_projects_cannot_share_a_configured_folder(project, tmp_path):
    place = str(tmp_path / "index")
    await indexed(project, FakeEmbedder(), uri=place)
    other = tmp_path / "other"
    write(other, {"a.py": "other = 1\n"})
    before = state_of(place)
    codebase = codebase_of(other, FakeEmbedder(), uri=place)
    async with codebase.running():
        with pytest.raises(Exception, match="belongs to"):
            await codebase.index.trigger(force_reindex=False)
    assert state_of(place).keys() == before.keys()
    project.rename(tmp_path / "gone")
    async with kept(other, uri=place) as codebase:
        assert [hit.chunk.key for hit in (await codebase.search("other", 1)).hits] == ["a.py"]

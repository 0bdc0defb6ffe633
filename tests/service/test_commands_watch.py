"""While a command makes vectors, which may take long, a service finds what is saved meanwhile."""

import time
from functools import partial

import anyio
import pytest
from embedding_servers import served
from fakes import FakeEmbedder
from serving import codebase_of, found, serving, status_of
from waiting import eventually
from writing import write

from vector_index_mcp.console import local
from vector_index_mcp.console.documents import local as documents_local
from vector_index_mcp.documents.asking import Mode, Wanted, search
from vector_index_mcp.indexing.following import follow_vectors
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving.loading import home_of, load_codebase, load_documents
from vector_index_mcp.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def server():
    """A server that makes no vectors until the test has ended."""
    with served() as server:
        server.released.clear()
        yield server
        server.released.set()


@pytest.fixture
def settings(tmp_path, server):
    return Settings(
        embedding_url=server.url,
        embedding_model="small",
        embedding_key="geheim",
        embedding_cache_dir=str(tmp_path / "cache"),
    )


WITHOUT_MODEL = Settings(embedding_model="/nowhere")


async def test_index_follows_changes(tmp_path, server, settings):
    project = tmp_path / "project"
    write(project, {"one.py": "apple = 1\n"})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(local.index, project, settings, time.monotonic(), force=False))
        await eventually(lambda: server.asked)
        async with serving(load_codebase(project, WITHOUT_MODEL)) as client:
            assert not (await status_of(client))["is_writer"]
            write(project, {"two.py": "mango = 1\n"})

            async def is_found():
                return await found(client, "mango") == ["two.py"]

            await eventually(is_found)
            assert not (await status_of(client))["is_writer"]
        server.released.set()
        tasks.cancel_scope.cancel()


PATIENCE = 0.3  # seconds, in which chunks that lack vectors do not become fewer


async def lacking(codebase):
    """Wait until a file has text and no vector, for the model is at hand and makes none."""

    async def is_lacking():
        return codebase.index.progress.is_embedding and codebase.index.ledger.chunk_count

    await eventually(is_lacking)


async def test_who_watches_nothing_waits_for_all_vectors(tmp_path):
    embedder = FakeEmbedder()
    embedder.hold()
    codebase = codebase_of(write(tmp_path / "project", {"one.py": "apple = 1\n"}), embedder)
    async with codebase.running(Role.VISITOR):
        await lacking(codebase)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow_vectors, lambda *_: None, codebase.index, 0.0)
            for _ in range(3):
                await codebase.index.embedding_progressed()  # or a second
            embedder.release()
        assert not codebase.index.progress.lacks_vectors


@pytest.mark.parametrize("role", [Role.DEPUTY, Role.KEEPER])
async def test_who_waits_for_vectors_ends_though_they_never_become_fewer(tmp_path, role):
    embedder = FakeEmbedder()
    embedder.hold()
    project = write(tmp_path / "project", {"one.py": "apple = 1\n"})
    codebase = codebase_of(project, embedder)
    async with codebase.running(role):
        await lacking(codebase)
        async with anyio.create_task_group() as tasks:
            waits = partial(follow_vectors, lambda *_: None, codebase.index, PATIENCE)
            tasks.start_soon(waits)
            if role is Role.DEPUTY:  # it follows changes no longer, and finishes what there is
                await eventually(lambda: codebase.index.freshness.noticing.mode == "off")
                write(project, {"two.py": "mango = 1\n"})
                embedder.release()
        assert (codebase.index.freshness.noticing.mode == "off") == (role is Role.DEPUTY)
        await eventually(lambda: codebase.index.note.read().watches == (role is Role.KEEPER))
        assert codebase.index.progress.lacks_vectors == (role is Role.KEEPER)
        assert codebase.index.ledger.get("two.py") is None
        embedder.release()


async def test_embedding_of_documents_follows_changes(tmp_path, server, settings, monkeypatch):
    notes = tmp_path / "notes"
    write(notes, {"a.md": "# A\n\nThe old lantern.\n"})
    listed = f"collections:\n  notes:\n    path: {notes}\n    pattern: '**/*.md'\n"
    write(tmp_path / "configuration", {"index.yml": listed})
    monkeypatch.setenv("INDEX_PATH", str(tmp_path / "index.lancedb"))
    home = home_of(tmp_path / "configuration/index.yml")
    embed = partial(documents_local.answered, home, settings, "embed", {}, print, waits=False)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(embed)
        await eventually(lambda: server.asked)
        documents = load_documents(home, WITHOUT_MODEL)
        async with documents.running():
            write(notes, {"b.md": "# B\n\nThe new trombone.\n"})

            async def is_found():
                answer = await search(documents, Wanted("trombone", Mode.WORDS))
                return [hit.entry.key for hit in answer.found] == ["notes/b.md"]

            await eventually(is_found)
            assert documents.index.indexer is None
        server.released.set()
        tasks.cancel_scope.cancel()

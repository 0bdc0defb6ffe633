"""A codebase served to an MCP client in memory, and what tests ask of it."""

import json
from contextlib import asynccontextmanager
from itertools import count

import anyio
from fakes import FakeEmbedder
from mcp import Client
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.tables import connect, table_names
from vector_index_mcp.files.folder import Folder, Selection
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.serving import session, sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.server import build_server


def codebase_of(
    root,
    embedder,
    *,
    uri=".lancedb",
    chunk_max_chars=1_200,
    ignore_patterns=(),
    rerank_seconds=60.0,
    **options,
):
    """The service of the project at `root`; its cache and state lie beside the project."""
    beside = root.parent
    chosen = {
        "recipe": Recipe(chunk_max_chars),
        "quiet_seconds": 0.01,
        "longest_seconds": 0.1,
        "rescan_seconds": 3_600.0,  # what events miss is not healed behind a test's back
        "state_folder": beside / "state",
        "remedies": REMEDIES,
    }
    cache = EmbeddingCache(beside / "cache", 100_000_000)
    project = Folder(root, selection=Selection(ignore_patterns))
    chosen = Options(**chosen | options)
    return Codebase(project, uri, chosen, embedder, cache, rerank_seconds=rerank_seconds)


@asynccontextmanager
async def serving(running, mode="legacy", tool_set=sets.CODEBASE):
    """A client of a codebase, or of what another tool set serves, which runs meanwhile."""

    async def load():
        return running

    service = Lazily(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        async with Client(build_server(sets.named(tool_set), service), mode=mode) as client:
            yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def served(root, files):
    """A client of the project at `root`, once it is indexed; it is made of `files`."""
    async with serving(codebase_of(write(root, files), FakeEmbedder())) as client:
        await settled(client)
        yield client


@asynccontextmanager
async def spoken_to(running, tool_set):
    """Asks what a tool set serves, in plain JSON-RPC: for a method, the whole answer."""

    async def load():
        return running

    service, numbers = Lazily(load), count(1)
    says, said = anyio.create_memory_object_stream[bytes](1)
    tells, told = anyio.create_memory_object_stream[bytes]()
    served = sets.named(tool_set)
    limit = served.longest_message_bytes

    async def ask(method, **params):
        number = next(numbers)
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await says.send(json.dumps(message).encode() + b"\n")
        with anyio.fail_after(PATIENCE_SECONDS):
            answer = json.loads(await told.receive())
        assert answer.pop("jsonrpc") == "2.0"
        assert answer.pop("id") == number
        return answer

    with says, said, tells, told:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.run)
            server = build_server(served, service)
            tasks.start_soon(session.serve, server, said.receive, tells.send, limit)
            yield ask
            tasks.cancel_scope.cancel()


async def call(client, tool, **arguments):
    """The structured result of a tool that is expected to succeed."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return result.structured_content


async def failing_call(client, tool, **arguments):
    """The message of a tool error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    return result.content[0].text


async def status_of(client):
    return await call(client, "get_status")


async def in_error(client):
    """The status once it is an error."""

    async def status_if_error():
        status = await status_of(client)
        return status["status"] == "ERROR" and status

    return await eventually(status_if_error)


async def found(client, query, **arguments):
    """The files of the hits, best first, each once."""
    results = (await call(client, "search_index", query=query, **arguments))["results"]
    return list(dict.fromkeys(hit["file_path"] for hit in results))


async def settled(client, *, with_vectors=True):
    """The status once nothing is left to be done and, if wanted, every chunk has its vector."""

    async def status_if_settled():
        status = await status_of(client)
        done = status["status"] == "WATCHING" and not status["pending_path_count"]
        complete = status["embedded_chunk_count"] == status["indexed_chunk_count"]
        return done and (complete or not with_vectors) and status

    return await eventually(status_if_settled)


async def converged(codebase):
    """Wait until no run is under way and no chunk waits for its vector."""
    with anyio.fail_after(PATIENCE_SECONDS):
        while (run := await codebase.index.catching_up()) is not None:
            await run.finished.wait()
        while codebase.index.progress.lacks_vectors:
            await codebase.index.embedding_progressed()


async def contents(uri):
    """Everything an index holds that does not depend on how it came about: rows and records."""
    index = await Index.open(str(uri))
    assert index is not None
    records = {record.key: record for record in await index.store.records()}
    index.close()
    db = await connect(Reach(str(uri)))
    table = await db.open_table(table_names(index.manifest.generation)[0])
    rows = (await table.query().to_arrow()).to_pylist()
    db.close()
    for row in rows:
        del row["revision"]
    by_id = {row["document_id"]: row for row in rows}
    assert len(by_id) == len(rows), "two generations of a file lie side by side"
    return by_id, records


def without_time(index):
    """What `contents` returns but the time at which bytes were new: saved again, they are not."""
    rows, records = index
    return {key: row | {"last_modified_timestamp": None} for key, row in rows.items()}, records


def differences(one, other):
    """What two results of `contents` do not have in common, in a form that can be read."""
    found = []
    for what, here, there in zip(("row", "record"), one, other, strict=True):
        found += [f"{what} {key}: only here" for key in sorted(here.keys() - there.keys())]
        found += [f"{what} {key}: only there" for key in sorted(there.keys() - here.keys())]
        found += [
            f"{what} {key}: {_fields(here[key], there[key])}"
            for key in sorted(here.keys() & there.keys())
            if here[key] != there[key]
        ]
    return found


def _fields(here, there):
    if not isinstance(here, dict):
        return f"{here} and {there}"
    return ", ".join(
        f"{n}: {here[n]!r:.80} and {there[n]!r:.80}" for n in here if here[n] != there[n]
    )


async def indexed(root, embedder, **options):
    """Bring the index of `root` up to date, as the command does; returns what it holds then."""
    codebase = codebase_of(root, embedder, **options)
    async with codebase.running(Role.VISITOR):
        await converged(codebase)
    return await contents(codebase.index.uri)


async def fresh_contents(root, embedder, place, **options):
    """The contents of an index of the same tree, built from scratch at `place`."""
    codebase = codebase_of(root, embedder, uri=str(place), **options)
    async with codebase.running():
        await converged(codebase)
    return await contents(place)


async def is_as_fresh(client, root, seen=lambda index: index):
    """Check that a project's service is done, and that its index is what a fresh one would be.

    `seen` takes what `contents` returns and leaves out what may differ.
    """
    status = await settled(client)
    assert status["is_writer"]
    fresh = await fresh_contents(root, FakeEmbedder(), root.parent / f"fresh of {root.name}")
    assert seen(await contents(status["index_location"])) == seen(fresh)


class Gate:
    """Stops the pipeline after a batch, so that a test can look at the state in between."""

    def __init__(self, codebase, stops_at=lambda store: True):
        """Stop `codebase`, or an index, after a batch into a store for which `stops_at` is true."""
        self.reached = anyio.Event()
        self.opened = anyio.Event()
        pipeline = getattr(codebase, "index", codebase).pipeline
        commit = pipeline.commit

        async def stopping(store, *arguments):
            outcome = await commit(store, *arguments)
            if stops_at(store) and not self.reached.is_set():
                self.reached.set()
                await self.opened.wait()
            return outcome

        pipeline.commit = stopping

    async def wait(self):
        with anyio.fail_after(PATIENCE_SECONDS):
            await self.reached.wait()

    def open(self):
        self.opened.set()

"""A command about one index, answered by the project's background service, over MCP."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.abc
from mcp import Client, MCPError
from mcp_types import TextContent

from vector_index_mcp.codebase.wire import IndexStatus, RunReport, SearchResult, TriggerResult
from vector_index_mcp.console import output, progress
from vector_index_mcp.console.searching import Search
from vector_index_mcp.engine.query import Query
from vector_index_mcp.errors import BackgroundError, ServiceEndedError
from vector_index_mcp.serving import transport

_ASK_AGAIN_SECONDS = 0.5
_LOADING_PATIENCE_SECONDS = 120.0


# Each command prints after its session has ended: a reader like `head` may break off there.


async def index(connection: socket.socket, *, force: bool) -> int:
    """Bring the index up to date; returns the exit status."""
    async with session(connection) as client:
        report = await _index(client, force)
        current = await status(client)
    return output.of_index(report, current)


async def search(connection: socket.socket, wanted: Search) -> int:
    """Search and print what is found; returns the exit status."""
    async with session(connection) as client:
        result = await _search(client, wanted)
    return output.of_search(result, Query(wanted.query), wanted)


async def show_status(connection: socket.socket, *, as_json: bool) -> int:
    """Print what the index holds; returns the exit status."""
    async with session(connection) as client:
        current = await status(client)
    return output.of_status(current, as_json=as_json)


async def _index(client: Client, force: bool) -> RunReport:
    with progress.shown() as show:

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            show(message or "indexing", int(done), int(total or done))

        arguments = {"force_reindex": force}
        first = result = await _trigger(client, arguments, on_progress)
        # The tool answers after 45 s at the latest; asking again joins the run under way.
        while not result.complete and (await status(client)).model.state != "unavailable":
            result = await _trigger(client, {}, on_progress)
    return result.run if result.run.kind == first.run.kind else first.run


async def _search(client: Client, wanted: Search) -> SearchResult:
    """Search, and wait for the model: a person prefers that to an answer by words alone."""
    arguments = {
        "query": wanted.query,
        "top_k": wanted.top_k,
        "path": wanted.glob,
        "language": wanted.language,
        "max_tokens": wanted.max_tokens,
    }
    result = SearchResult.model_validate(await call(client, "search_index", arguments))
    with anyio.move_on_after(_LOADING_PATIENCE_SECONDS):
        while result.mode == "lexical" and (await status(client)).model.state == "loading":
            await anyio.sleep(_ASK_AGAIN_SECONDS)
            result = SearchResult.model_validate(await call(client, "search_index", arguments))
    return result


@asynccontextmanager
async def session(connection: socket.socket) -> AsyncIterator[Client]:
    """A client of the service at the other end of `connection`.

    Raises:
        ServiceEndedError: If the service ends meanwhile; in a group of exceptions.
    """
    kind = anyio.abc.SocketStream
    if connection.family is getattr(socket, "AF_UNIX", None):
        kind = anyio.abc.UNIXSocketStream
    stream = await kind.from_socket(connection)
    try:
        async with Client(transport.client_over(stream)) as client:
            yield client
    except* MCPError as group:
        raise ServiceEndedError(
            "the background service ended before it answered; its index is kept, try again"
        ) from group


async def status(client: Client) -> IndexStatus:
    """What the service reports of its index."""
    return IndexStatus.model_validate(await call(client, "get_status", {}))


async def _trigger(client: Client, arguments: dict[str, Any], on_progress: Any) -> TriggerResult:
    answer = await call(client, "trigger_index", arguments, progress_callback=on_progress)
    return TriggerResult.model_validate(answer)


async def call(client: Client, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
    """The structured result of a tool.

    Raises:
        BackgroundError: If the tool answers with an error.
    """
    result = await client.call_tool(tool, arguments, **options)
    if result.is_error:
        words = " ".join(part.text for part in result.content if isinstance(part, TextContent))
        raise BackgroundError(words)
    return result.structured_content

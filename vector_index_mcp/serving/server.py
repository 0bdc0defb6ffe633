"""Makes the MCP server of a tool set, and serves it on standard streams or as a background service.

It answers `initialize` and `tools/list` before anything heavy is imported, since clients give up
after 1.5 to 30 seconds. The service is loaded after the first answer.
"""

import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import ValidationError

from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.background.host import Host
from vector_index_mcp.errors import BackgroundError, sentence
from vector_index_mcp.indexing.preparing.head_start import HeadStart
from vector_index_mcp.page.handover import Handover, folders_for
from vector_index_mcp.processes import memory
from vector_index_mcp.protocol import faults_of, is_introduced
from vector_index_mcp.serving import session, transport
from vector_index_mcp.serving.answering import answered
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.ports import Ports
from vector_index_mcp.serving.sets import Service, ToolSet
from vector_index_mcp.settings import Settings
from vector_index_mcp.sharing.joining import STARTS_HOST

if TYPE_CHECKING:
    from vector_index_mcp.serving.listener import Page

_SECONDS_PER_MINUTE = 60
_INITIALIZE, _PROMPT = "initialize", "prompts/get"
# The library's answer to wrong arguments, and also to a request that comes before `initialize`.
_WORDS_OF_LIBRARY = "Invalid request parameters"
_STRANGER = "the session has not begun; send `initialize` first"
_LOADING = "INITIALIZING"
"""The reported state while the service is not loaded."""
_FAILING = "ERROR"
"""The state of each tool set's service while an error keeps it from working."""


def build_server(tool_set: ToolSet, service: Lazily[Service]) -> MCPServer[Any]:
    """Make the MCP server of a tool set. The caller runs `service`."""

    async def in_our_words(ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        try:
            return await call_next(ctx)
        except MemoryError as error:
            # Where a message does not fit into memory, no service will: it ends, and says why.
            service.give_up(error)
            raise MCPError(INTERNAL_ERROR, sentence(error)) from error
        except ValidationError as error:
            # The library would say the same of what is not offered at all.
            if ctx.method != _INITIALIZE and low.get_request_handler(ctx.method) is None:
                raise MCPError(METHOD_NOT_FOUND, "Method not found", ctx.method) from error
            raise MCPError(INVALID_PARAMS, faults_of(error)) from error
        except MCPError as error:
            if error.message != _WORDS_OF_LIBRARY or is_introduced(ctx):
                raise
            raise MCPError(INVALID_PARAMS, _STRANGER) from error
        except ValueError as error:
            if ctx.method != _PROMPT or type(error) is not ValueError:
                raise
            # The library answers an unknown prompt with the code 0, which means nothing.
            raise MCPError(INVALID_PARAMS, str(error)) from error

    async def begin_after_answer(ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        answer = await call_next(ctx)
        service.begin()
        return answer

    server: MCPServer[Any] = MCPServer(
        tool_set.server_name,
        title=tool_set.title,
        description=tool_set.description,
        version=tool_set.version,
        instructions=tool_set.instructions,
        middleware=[begin_after_answer, in_our_words],
        log_level="WARNING",
    )
    low = server._lowlevel_server
    tool_set.register(server, service.get)
    return server


async def serve_stdio(
    tool_set: ToolSet,
    place: Path,
    settings: Settings,
    streams: transport.StandardStreams,
    head_start: HeadStart | None,
) -> None:
    """Serve MCP on `streams` from this process, until they end or SIGTERM or SIGINT arrives."""
    service = Lazily(partial(tool_set.load, place, settings, head_start))
    server = build_server(tool_set, service)
    async with anyio.create_task_group() as tasks:

        async def end_on_signal() -> None:
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async for _ in signals:
                    tasks.cancel_scope.cancel()
                    return

        if sys.platform != "win32":
            tasks.start_soon(end_on_signal)
        tasks.start_soon(service.run)
        await session.serve(server, streams.receive, streams.send, tool_set.longest_message_bytes)
        tasks.cancel_scope.cancel()


async def host(
    tool_set: ToolSet,
    endpoint: Endpoint,
    settings: Settings,
    on_ready: Callable[[str], None],
    head_start: HeadStart | None,
) -> None:
    """Run the background service at `endpoint`, which serves every front end."""
    memory.share_heaps()
    STARTS_HOST.set(True)
    service = Lazily(partial(tool_set.load, Path(endpoint.place), settings, head_start))
    handover = Handover(endpoint.name, folders_for(endpoint.folder))

    async def load_page() -> "Page":
        assert tool_set.load_page is not None  # `open_page` has checked that
        return await anyio.to_thread.run_sync(tool_set.load_page, service.get, handover, settings)

    page = Lazily(load_page)
    server = build_server(tool_set, service)
    ports = Ports(tool_set, server, service)

    async def run() -> None:
        handover.remove_left()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.run)
            tasks.start_soon(page.run)
            tasks.start_soon(ports.run)

    async def open_page(in_a_file: bool) -> dict[str, Any]:
        if tool_set.load_page is None:
            raise BackgroundError(f"the tool set {tool_set.name} has no page")
        service.begin()
        opened = await page.get()
        if not in_a_file:
            return {"url": await opened.address()}
        url, path = await opened.handed_over()
        return {"url": url, "file": str(path or "")}

    async def serve_session(stream: anyio.abc.ByteStream) -> None:
        longest, send = tool_set.longest_message_bytes, transport.sending(stream)
        await session.serve(server, stream.receive, send, longest, outlives_service=True)

    def is_busy() -> bool:
        if page.loaded is not None and page.loaded.is_awaited:  # somebody has a valid link
            return True
        return service.loaded is not None and service.loaded.is_busy

    stamps = settings.stamps()

    def report() -> dict[str, Any]:
        held = memory.held_by(os.getpid())
        return {"state": _state_of(service), "memory_bytes": held, "settings": stamps}

    await Host(
        endpoint=endpoint,
        idle_seconds=settings.service_idle_minutes * _SECONDS_PER_MINUTE,
        serve_session=serve_session,
        serve_call=partial(answered, tool_set, service),
        open_page=open_page,
        viewers=lambda: page.loaded.viewers if page.loaded else 0,
        is_busy=is_busy,
        is_failing=lambda: _state_of(service) == _FAILING,
        report=report,
        open_port=ports.opened,
    ).run(run, on_ready)


def _state_of(service: Lazily[Service]) -> str:
    return service.loaded.state if service.loaded else _LOADING

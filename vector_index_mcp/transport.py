"""MCP messages over bytes: on the standard streams and on a socket."""

import contextlib
import io
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import anyio.abc
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.server.stdio import stdio_server

_READ_BYTES = 65_536
_LONGEST_MESSAGE_BYTES = 64_000_000  # whoever sends more without a line feed is not speaking MCP


def over(stream: anyio.abc.ByteStream) -> AbstractAsyncContextManager[Any]:
    """MCP's message streams over `stream`, for either side."""
    # Despite its name it takes any pair of streams, and leaves the standard ones alone then.
    return stdio_server(lines_of(stream.receive), SocketOutput(stream))  # type: ignore[arg-type]


@asynccontextmanager
async def client_over(stream: anyio.abc.ByteStream) -> AsyncIterator[Any]:
    """The same for a client, who ends the session: a service waits for that."""
    async with over(stream) as streams:
        try:
            yield streams
        finally:
            await stream.aclose()


async def serve(server: MCPServer[Any], streams: AbstractAsyncContextManager[Any]) -> None:
    """Serve one session until its client ends it; `server` may serve many at once."""
    low = server._lowlevel_server
    options = low.create_initialization_options(NotificationOptions())
    async with streams as (reading, writing):
        await low.run(reading, writing, options)


async def lines_of(receive: Callable[[], Awaitable[bytes]]) -> AsyncIterator[str]:
    """The lines in what `receive` returns, until it returns nothing or the stream ends."""
    buffer = bytearray()
    while True:
        try:
            data = await receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        if not data or len(buffer) > _LONGEST_MESSAGE_BYTES:
            return
        start = len(buffer)
        buffer += data
        while (end := buffer.find(b"\n", start) + 1) > 0:
            line = bytes(buffer[:end])
            del buffer[:end]
            start = 0
            yield line.decode("utf-8", "replace")


class SocketOutput:
    """Messages to a front end; what a front end that is gone does not get is dropped."""

    def __init__(self, stream: anyio.abc.ByteStream) -> None:
        self._stream = stream

    async def write(self, text: str) -> None:
        """Send `text`."""
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._stream.send(text.encode())

    async def flush(self) -> None:
        """Nothing is held back."""


class StandardStreams:
    """The process's standard streams, taken for the protocol.

    From then on what libraries or child processes print goes to stderr, and what they read is
    empty.
    """

    def __init__(self) -> None:
        self._input = os.dup(0)
        self._output = os.dup(1)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        os.dup2(2, 1)

    def messages(self) -> AbstractAsyncContextManager[Any]:
        """MCP's message streams over them."""
        raw = os.fdopen(self._output, "wb", closefd=False)
        output = anyio.wrap_file(io.TextIOWrapper(raw, encoding="utf-8"))
        return stdio_server(self._lines(), output)

    def _lines(self) -> Any:
        # Unlike a thread in read(2), waiting for the descriptor can be cancelled.
        if sys.platform == "win32":
            raw = os.fdopen(self._input, "rb", closefd=False)
            return anyio.wrap_file(io.TextIOWrapper(raw, encoding="utf-8", errors="replace"))
        return lines_of(self._receive)

    async def _receive(self) -> bytes:
        with contextlib.suppress(PermissionError):  # epoll's word for a file or /dev/null
            await anyio.wait_readable(self._input)
        return os.read(self._input, _READ_BYTES)

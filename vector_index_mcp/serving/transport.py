"""Carries the bytes of MCP: splits them into lines, reads and writes the standard streams."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

import anyio
import anyio.abc
import anyio.to_thread

from vector_index_mcp.processes import streams

_READ_BYTES = 65_536


async def lines_of(
    receive: Callable[[], Awaitable[bytes]], longest: int
) -> AsyncIterator[bytes | None]:
    """Yield the lines that `receive` returns, until it returns nothing or the stream ends.

    None stands for a line of more than `longest` bytes, which is dropped. Empty lines are skipped,
    and so is a last line without a newline.
    """
    buffer = bytearray()
    is_too_long = False
    while True:
        try:
            data = await receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return
        if not data:
            return
        start = len(buffer)
        buffer += data
        while (end := buffer.find(b"\n", start)) >= 0:
            line = bytes(buffer[:end])
            del buffer[: end + 1]
            start = 0
            if is_too_long or len(line) > longest:
                yield None
            elif line.strip():
                yield line
            is_too_long = False
        if len(buffer) > longest:
            is_too_long = True
            buffer.clear()


def sending(stream: anyio.abc.ByteStream) -> Callable[[bytes], Awaitable[None]]:
    """A function that sends on `stream`, and drops the bytes if the peer is gone."""

    async def send(data: bytes) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await stream.send(data)

    return send


class StandardStreams:
    """The process's standard streams, reserved for the protocol."""

    def __init__(self) -> None:
        self._input, self._output = streams.claim()

    async def receive(self) -> bytes:
        """The client's next bytes; empty at the end."""
        if sys.platform == "win32":
            return await anyio.to_thread.run_sync(self._read, abandon_on_cancel=True)
        # Unlike a thread in read(2), waiting for the descriptor can be cancelled.
        with contextlib.suppress(PermissionError):  # raised by epoll for files and /dev/null
            await anyio.wait_readable(self._input)
        return self._read()

    async def send(self, data: bytes) -> None:
        """Send `data`; drop it if the client is gone."""
        await anyio.to_thread.run_sync(self._write, data, abandon_on_cancel=True)

    def _read(self) -> bytes:
        return os.read(self._input, _READ_BYTES)

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(self._output, view) :]

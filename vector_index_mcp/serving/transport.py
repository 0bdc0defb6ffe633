"""Carries the bytes of MCP: splits them into lines, reads and writes the standard streams."""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

import anyio
import anyio.abc
import anyio.to_thread

from vector_index_mcp.processes import streams

_READ_BYTES = 65_536
_END_BYTES = 1_000  # of a line that is dropped, kept at either end


class TooLong(NamedTuple):
    """What is kept of a line that is too long: its ends, which may name the request."""

    start: bytes
    end: bytes


async def lines_of(
    receive: Callable[[], Awaitable[bytes]], longest: int
) -> AsyncIterator[bytes | TooLong]:
    """Yield the lines that `receive` returns, until it returns nothing or the stream ends.

    A line of more than `longest` bytes is dropped but for its ends. Empty lines are skipped, and so
    is a last line without a newline.
    """
    buffer = bytearray()
    too_long: TooLong | None = None
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
            if too_long or len(line) > longest:
                yield ends_of(line, too_long)
            elif line.strip():
                yield line
            too_long = None
        if len(buffer) > longest:
            too_long = ends_of(bytes(buffer), too_long)
            buffer.clear()


def ends_of(line: bytes, before: TooLong | None = None) -> TooLong:
    """The ends of a line, or of one that began with what has the ends `before`."""
    if before is None:
        return TooLong(line[:_END_BYTES], line[-_END_BYTES:])
    return TooLong(before.start, (before.end + line[-_END_BYTES:])[-_END_BYTES:])


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

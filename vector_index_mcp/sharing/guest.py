"""The connection of a service that uses the shared worker, with the frames to send to it."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.sharing import frames

# Limits for one guest, far above what a service needs that answers many people at once. A guest
# with more takes no answers, or is hostile.
_MOST_REQUESTS = 1_024
_MOST_BYTES = 64_000_000
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""The exceptions that show that the other side of a connection is gone."""


class Guest:
    """The connection of one service."""

    def __init__(self, stream: anyio.abc.ByteStream, lines: BufferedByteReceiveStream) -> None:
        """Prepare.

        Args:
            stream: The connection.
            lines: Reads from it.
        """
        self._stream, self._lines = stream, lines
        self._sending, self._to_send = anyio.create_memory_object_stream[tuple[bytes, int]](
            _MOST_REQUESTS * 4
        )
        self._bytes = self._requests = 0

    def send(self, frame: bytes, asked_bytes: int = 0) -> None:
        """Queue a frame to be sent. Returns at once.

        Args:
            frame: The frame.
            asked_bytes: The size of the request that the frame answers; 0 for an event.
        """
        self._bytes += len(frame) - asked_bytes
        try:
            self._sending.send_nowait((frame, asked_bytes))
        except (anyio.WouldBlock, *GONE):
            self.leave()

    def leave(self) -> None:
        """End the connection after the queued frames are sent."""
        self._sending.close()

    async def serve(self, ask: Callable[[frames.Request], None], kill: Callable[[], None]) -> None:
        """Pass on the service's requests until either side ends, or the service breaks a rule.

        Args:
            ask: Takes a request and returns at once.
            kill: Ends the worker.
        """
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._listen, ask, kill, tasks.cancel_scope)
            with self._sending, self._to_send:
                async for frame, asked_bytes in self._to_send:
                    try:
                        await self._stream.send(frame)
                    except GONE:
                        break
                    self._bytes -= len(frame)
                    self._requests -= asked_bytes > 0
            tasks.cancel_scope.cancel()

    async def _listen(
        self,
        ask: Callable[[frames.Request], None],
        kill: Callable[[], None],
        serving: anyio.CancelScope,
    ) -> None:
        try:
            while self._requests < _MOST_REQUESTS and self._bytes < _MOST_BYTES:
                values, size = await heard(self._lines)
                if values == frames.KILL:
                    kill()
                    continue
                request = frames.request(values, size)
                self._requests += 1
                self._bytes += size
                ask(request)
        except (ValueError, anyio.DelimiterNotFound, anyio.IncompleteRead, *GONE):
            pass
        serving.cancel()


async def heard(lines: BufferedByteReceiveStream) -> tuple[dict[str, Any], int]:
    """The next frame of a service, and its length in bytes.

    Raises:
        ValueError: If it is no frame.
        DelimiterNotFound: If it is too long.
        IncompleteRead: If the connection ends before the end of the frame.
    """
    data = await lines.receive_until(b"\n", frames.LONGEST_LINE_BYTES)
    return frames.parse(data), len(data) + 1

"""A service that uses the shared worker: its connection, and what is still to be sent to it."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.sharing import frames

# Of one guest: far more than a service that answers many people asks at once. Whoever has more
# takes no answers, or means harm.
_MOST_REQUESTS = 1_024
_MOST_BYTES = 64_000_000
GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""What tells that the other side of a connection is no more."""


class Guest:
    """One connection."""

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

    def tell(self, frame: bytes, asked_bytes: int = 0) -> None:
        """Send a frame some time.

        Args:
            frame: What to send.
            asked_bytes: The size of the request that it answers; 0 for an event.
        """
        self._bytes += len(frame) - asked_bytes
        try:
            self._sending.send_nowait((frame, asked_bytes))
        except (anyio.WouldBlock, *GONE):
            self.leave()

    def leave(self) -> None:
        """End the connection when what was told is sent."""
        self._sending.close()

    async def serve(self, ask: Callable[[frames.Request], None], kill: Callable[[], None]) -> None:
        """Hand on what it says until either side ends, or it says what it must not.

        Args:
            ask: Takes a request; never waits.
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
    """The next frame of a service, and how long that was.

    Raises:
        ValueError: If it is none.
        DelimiterNotFound: If it has no end.
        IncompleteRead: If it ends in the middle, or there is no other.
    """
    data = await lines.receive_until(b"\n", frames.LONGEST_LINE_BYTES)
    return frames.parse(data), len(data) + 1

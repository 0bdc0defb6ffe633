"""A proxy before a server that lets every request wait for a round trip, and counts.

    python benchmarks/roundtrip.py PORT MILLISECONDS

Prints its own port. `GET /-/counted` answers with the requests and bytes since it was last asked.
"""

import asyncio
import json
import sys
from dataclasses import dataclass

_COUNTED = b"/-/counted"
_CHUNKED = b"\r\ntransfer-encoding: chunked\r\n"


@dataclass(slots=True)
class Counted:
    """Since somebody asked."""

    requests: int = 0
    up: int = 0
    down: int = 0


class RoundTrip:
    """Passes requests on to a port of this machine."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port, self._seconds = port, seconds
        self._counted = Counted()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client's connection, with one of its own to the server."""
        try:
            await asyncio.sleep(self._seconds)  # to connect is a round trip, too
            from_server, to_server = await asyncio.open_connection("127.0.0.1", self._port)
            while await self._pass_on(reader, writer, from_server, to_server):
                pass
            to_server.close()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        from_server: asyncio.StreamReader,
        to_server: asyncio.StreamWriter,
    ) -> bool:
        head = await reader.readuntil(b"\r\n\r\n")
        method, path, _ = head.split(b" ", 2)
        if path == _COUNTED:
            said = json.dumps([getattr(self._counted, n) for n in Counted.__slots__]).encode()
            self._counted = Counted()
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(said) + said)
            await writer.drain()
            return False
        body = await reader.readexactly(_length(head) or 0)
        await asyncio.sleep(self._seconds)
        to_server.write(head + body)
        answer = await from_server.readuntil(b"\r\n\r\n")
        has_body = method != b"HEAD" and answer.split(b" ", 2)[1] not in {b"204", b"304"}
        length, is_chunked = _length(answer), _CHUNKED in answer.lower()
        content = b""
        if has_body and is_chunked:
            content = await _chunks(from_server)
        elif has_body:  # without a length, until the end of the connection
            content = await (
                from_server.read() if length is None else from_server.readexactly(length)
            )
        writer.write(answer + content)
        await writer.drain()
        self._counted.requests += 1
        self._counted.up += len(body)
        self._counted.down += len(content)
        return length is not None or is_chunked or not has_body


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """A body whose length nobody knew when it began, as it is sent."""
    content = b""
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.partition(b";")[0], 16)
        content += line + await reader.readexactly(size + 2)
        if size == 0:
            return content


def _length(head: bytes) -> int | None:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return None


async def main() -> None:
    trip = RoundTrip(int(sys.argv[1]), float(sys.argv[2]) / 1000)
    server = await asyncio.start_server(trip.serve, "127.0.0.1", 0, limit=1 << 24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

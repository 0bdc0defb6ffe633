"""A visitor of a page that is really listened on, and the news that it is told."""

import http.client
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream
from waiting import PATIENCE_SECONDS

from vector_index_mcp.serving.listener import Page


@dataclass
class Got:
    """An answer."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def values(self):
        return json.loads(self.body)


@dataclass
class Visitor:
    """Somebody who asks the page for something."""

    page: Page
    port: int = 0
    room: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    async def link(self) -> str:
        """The path of a new link."""
        address = await self.page.address()
        host, _, path = address.removeprefix("http://").partition("/")
        self.port = int(host.rpartition(":")[2])
        return f"/{path}"

    async def enter(self) -> "Visitor":
        got = await self.get(await self.link())
        assert got.status == 303
        self.room = got.headers["location"]
        self.headers = {"Cookie": got.headers["set-cookie"].partition(";")[0]}
        return self

    async def get(self, path, method="GET", body=None, **headers) -> Got:
        return await anyio.to_thread.run_sync(self._get, path, method, body, headers)

    async def see(self, path, **headers) -> Got:
        """What lies at `path` in the visitor's room."""
        return await self.get(self.room + path, **headers)

    def _get(self, path, method, body, headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, self.headers | headers)
            response = connection.getresponse()
            return Got(response.status, response.headers, response.read())
        finally:
            connection.close()

    @asynccontextmanager
    async def news(self):
        """The events from now on."""
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            lines = [f"GET {self.room}api/news HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
            lines += [f"{name}: {value}" for name, value in self.headers.items()]
            await stream.send("\r\n".join([*lines, "", ""]).encode())
            events = Events(BufferedByteReceiveStream(stream))
            assert b" 200 " in await events.line()
            yield events


@dataclass
class Events:
    """A stream of events, chunked as HTTP does."""

    stream: BufferedByteReceiveStream

    async def line(self) -> bytes:
        return await self.stream.receive_until(b"\n", 1_000_000)

    async def next(self, name):
        """The values of the next event of this name."""
        with anyio.fail_after(PATIENCE_SECONDS):
            while True:
                if await self.line() == f"event: {name}".encode():
                    return json.loads((await self.line()).removeprefix(b"data: "))

    async def status_when(self, holds):
        while not holds(status := await self.next("status")):
            pass
        return status

"""The page's listener: on the loopback interface only, and only while the page is used.

What serves it is a guest in the service's process (`guest`).
"""

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.page.content import Content
from vector_index_mcp.page.door import ENTRANCE, Door
from vector_index_mcp.page.handover import Handover, remove
from vector_index_mcp.page.routes import Visits, application
from vector_index_mcp.serving import guest

_HOST = "127.0.0.1"
_UNUSED_SECONDS = 600.0  # longer than a link is good
_LOOK_AT_FILES_SECONDS = 0.5  # while there are any
_MOST_CONNECTIONS = 64


class Page:
    """The page of one service. Nothing is open until somebody asks for its address."""

    def __init__(
        self,
        content: Content,
        handover: Handover | None = None,
        unused_seconds: float = _UNUSED_SECONDS,
    ) -> None:
        """Prepare; it is served while `running`.

        Args:
            content: What it shows.
            handover: Makes the files that links are handed over in, if there are to be any.
            unused_seconds: For how long nobody has to look at the page before it is closed.
        """
        self._content = content
        self._unused_seconds = unused_seconds
        self._door = Door()
        self._socket: socket.socket | None = None
        self._port = 0  # any, at first; then the same again, for pages that are still there
        self._visits = Visits()
        self._opened = anyio.Event()
        self._handover = handover
        self._files: dict[str, Path] = {}
        """Those that are there, by the token in them."""
        self._has_files = anyio.Event()

    @property
    def viewers(self) -> int:
        """How many browsers have the page open."""
        return self._visits.viewers

    @property
    def is_awaited(self) -> bool:
        """Whether somebody has a link that still opens it."""
        return self._door.is_awaited(time.monotonic())

    async def address(self) -> str:
        """A link that opens the page, once and within a few minutes.

        Raises:
            BackgroundError: If the system gives us no port.
        """
        return f"{self._entrance()}?token={self._door.issue(time.monotonic())}"

    async def handed_over(self) -> tuple[str, Path | None]:
        """The same, and a file that opens it; None if none can be written.

        Raises:
            BackgroundError: As above.
        """
        entrance, token = self._entrance(), self._door.issue(time.monotonic())
        path = None
        if self._handover is not None:
            with contextlib.suppress(OSError):
                path = self._files[token] = self._handover.write(entrance, token)
                self._has_files.set()
        return f"{entrance}?token={token}", path

    def _entrance(self) -> str:
        if self._socket is None:
            self._socket = _listening(self._port)
            self._port = self._socket.getsockname()[1]
            self._opened.set()
        self._visits.note()
        return f"http://{_HOST}:{self._port}{ENTRANCE}"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which it can be opened."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._serve_when_opened)
                tasks.start_soon(self._remove_files)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
        finally:
            self._remove_files_but(())
            if self._socket is not None:  # opened a moment ago, and not served yet
                self._socket.close()
                self._socket = None

    async def _remove_files(self) -> None:
        """Remove the files whose token has been used, or is too old."""
        while True:
            await self._has_files.wait()
            self._has_files = anyio.Event()
            while self._files:
                await anyio.sleep(_LOOK_AT_FILES_SECONDS)
                now = time.monotonic()
                self._remove_files_but([t for t in self._files if self._door.is_good(t, now)])

    def _remove_files_but(self, kept: Collection[str]) -> None:
        for token in [token for token in self._files if token not in kept]:
            remove(self._files.pop(token))

    async def _serve_when_opened(self) -> None:
        while True:
            await self._opened.wait()
            self._opened = anyio.Event()
            assert self._socket is not None
            await self._serve(self._socket)

    async def _serve(self, listening: socket.socket) -> None:
        """Serve until nobody has looked at the page for a while."""
        self._visits.ending = anyio.Event()
        app = application(self._content, self._door, self._visits, self._port)
        async with guest.serving(app, listening, _MOST_CONNECTIONS):
            try:
                await self._wait_until_unused()
            finally:
                self._socket = None
                self._visits.ending.set()

    async def _wait_until_unused(self) -> None:
        visits = self._visits
        while True:
            unused = 0.0 if visits.viewers else time.monotonic() - visits.last
            if unused >= self._unused_seconds:
                return
            await anyio.sleep(self._unused_seconds - unused)


def _listening(port: int) -> socket.socket:
    """A socket that only this machine reaches, at `port` or, if it is taken, at any other."""
    for wanted in (port, 0):
        try:
            return socket.create_server((_HOST, wanted))
        except OSError as error:
            problem = error
    raise BackgroundError(f"no port can be listened on ({problem}); look at the system's limits")

"""The page's listener. It is open only on the loopback interface, and only while the page is used.

Its HTTP server is a guest in the service's process (`guest`).
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
_UNUSED_SECONDS = 600.0  # longer than a link is valid
_LOOK_AT_FILES_SECONDS = 0.5  # between two checks for files with expired links
_MOST_CONNECTIONS = 64


class Page:
    """The page of one service. No port is open until somebody asks for its address."""

    def __init__(
        self,
        content: Content,
        handover: Handover | None = None,
        unused_seconds: float = _UNUSED_SECONDS,
    ) -> None:
        """Prepare; the page can be opened within `running`.

        Args:
            content: The content of the page.
            handover: Writes files that pass links to a browser; None for no such files.
            unused_seconds: The time without visitors after which the port is closed.
        """
        self._content = content
        self._unused_seconds = unused_seconds
        self._door = Door()
        self._socket: socket.socket | None = None
        self._port = 0  # any port at first; later the same one again, for pages that are still open
        self._visits = Visits()
        self._opened = anyio.Event()
        self._handover = handover
        self._files: dict[str, Path] = {}
        """The files that exist, by their tokens."""
        self._has_files = anyio.Event()

    @property
    def viewers(self) -> int:
        """How many browsers have the page open."""
        return self._visits.viewers

    @property
    def is_awaited(self) -> bool:
        """Whether somebody has a link that is unused and still valid."""
        return self._door.is_awaited(time.monotonic())

    async def address(self) -> str:
        """Open the port if necessary, and return a link that is valid once and for a few minutes.

        Raises:
            BackgroundError: If no port can be opened.
        """
        return f"{self._entrance()}?token={self._door.issue(time.monotonic())}"

    async def handed_over(self) -> tuple[str, Path | None]:
        """Like `address`, with a file that opens the link; None if it cannot be written.

        Raises:
            BackgroundError: If no port can be opened.
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
        """Keep the page ready to be opened while the context lasts."""
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
        """Remove files whose token was used or has expired, until cancelled."""
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
        """Serve until the page has been unused for a while."""
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
    """A socket on the loopback interface, at `port` or, if that is taken, at any other port."""
    for wanted in (port, 0):
        try:
            return socket.create_server((_HOST, wanted))
        except OSError as error:
            problem = error
    raise BackgroundError(f"no port can be opened ({problem}); look at the system's limits")

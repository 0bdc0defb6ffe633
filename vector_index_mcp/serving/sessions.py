"""Limits the MCP sessions over HTTP: if there are too many, the one unused for longest ends.

Many clients never end a session. Without this, their sessions would keep out new clients until they
expire. Within a session, requests with the same id take turns.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio

from vector_index_mcp.serving.guard import App

_NAME = b"mcp-session-id"
_REFUSED = 400


class Sessions:
    """Wraps an MCP application and counts its sessions."""

    def __init__(self, app: App, most: int) -> None:
        """Prepare.

        Args:
            app: The application. It ends a session on DELETE, as MCP defines it.
            most: How many sessions there may be. There may be more while all are in use or being
                opened, as far as the application allows.
        """
        self._app = app
        self._most = most
        self._requests: dict[bytes, int] = {}
        """The number of requests under way, by session; the session unused for longest first."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        name = dict(scope["headers"]).get(_NAME)
        if name is None:
            await self._open(scope, receive, send)
        elif name not in self._requests:
            await self._app(scope, receive, send)
        else:
            await self._use(name, scope, receive, send)

    async def _use(self, name: bytes, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request of a session, which is over only if the application has ended it."""
        is_over = False

        async def note(message: Any) -> None:
            nonlocal is_over
            if message["type"] == "http.response.start":
                is_over = scope["method"] == "DELETE" and message["status"] < _REFUSED
            await send(message)

        self._begin(name)
        try:
            await self._app(scope, receive, note)
        finally:
            self._end(name, is_over=is_over)

    def _begin(self, name: bytes) -> None:
        self._requests[name] = self._requests.pop(name, 0) + 1

    def _end(self, name: bytes, *, is_over: bool = False) -> None:
        if name in self._requests:
            left = self._requests.pop(name) - 1
            if not is_over:
                self._requests[name] = left

    async def _open(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request that may begin a session."""
        opened: list[bytes] = []
        is_refused = False

        async def note(message: Any) -> None:
            nonlocal is_refused
            if message["type"] == "http.response.start":
                opened.extend(value for key, value in message["headers"] if key.lower() == _NAME)
                is_refused = message["status"] >= _REFUSED
                for name in opened:
                    self._begin(name)
            await send(message)

        try:
            await self._app(scope, receive, note)
        finally:
            for name in opened:
                self._end(name, is_over=is_refused)
                if is_refused:  # the application has nevertheless begun a session
                    await self._delete(scope, name)
            await self._make_room(scope)

    async def _make_room(self, scope: Any) -> None:
        """End unused sessions until there are at most as many as allowed."""
        while len(self._requests) > self._most:
            unused = (name for name, under_way in self._requests.items() if not under_way)
            if (name := next(unused, None)) is None:
                return
            del self._requests[name]
            await self._delete(scope, name)

    async def _delete(self, scope: Any, name: bytes) -> None:
        """Have the application end a session, by a DELETE request derived from `scope`."""
        host = [(key, value) for key, value in scope["headers"] if key == b"host"]
        deleting = {**scope, "method": "DELETE", "headers": [*host, (_NAME, name)]}
        await self._app(deleting, _nothing, _ignored)


@dataclass(slots=True)
class _Turn:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class Turns:
    """The turns of requests that have the same id in the same session.

    Of those under way at once, the library answers one, and the others never.
    """

    def __init__(self) -> None:
        self._turns: dict[tuple[bytes, str], _Turn] = {}

    @asynccontextmanager
    async def of(self, scope: Any, id_: str | int | None) -> AsyncIterator[None]:
        """Wait for the turn of the request with this id; it lasts as long as the context."""
        name = dict(scope["headers"]).get(_NAME)
        if name is None or id_ is None:
            yield
            return
        key = name, str(id_)  # the library takes 7 and "7" for the same
        turn = self._turns.setdefault(key, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[key]


async def _nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_: Any) -> None:
    pass

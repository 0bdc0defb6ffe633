"""Sessions of MCP over HTTP: where there are too many, the one that was unused longest ends.

Many clients never end a session. Without this, the last ones that came would keep others out until
their sessions are too old.
"""

from typing import Any

from vector_index_mcp.serving.guard import App

_NAME = b"mcp-session-id"


class Sessions:
    """An MCP application, in front of which its sessions are counted."""

    def __init__(self, app: App, most: int) -> None:
        """Prepare.

        Args:
            app: The application; it ends a session on DELETE, as the protocol has it.
            most: How many sessions there may be.
        """
        self._app = app
        self._most = most
        self._requests: dict[bytes, int] = {}
        """How many each session has under way; the one that was unused longest first."""
        self._openings = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        name = dict(scope["headers"]).get(_NAME)
        if name is None:
            await self._open(scope, receive, send)
        elif name not in self._requests:
            await self._app(scope, receive, send)
        else:
            self._begin(name)
            try:
                await self._app(scope, receive, send)
            finally:
                self._end(name, is_over=scope["method"] == "DELETE")

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

        async def note(message: Any) -> None:
            if message["type"] == "http.response.start":
                opened.extend(value for key, value in message["headers"] if key.lower() == _NAME)
                for name in opened:
                    self._begin(name)
            await send(message)

        self._openings += 1
        try:
            await self._make_room(scope)
            await self._app(scope, receive, note)
        finally:
            self._openings -= 1
            for name in opened:
                self._end(name)

    async def _make_room(self, scope: Any) -> None:
        """End sessions until there is room for those that are being opened."""
        while len(self._requests) + self._openings > self._most:
            unused = (name for name, under_way in self._requests.items() if not under_way)
            if (name := next(unused, None)) is None:
                return  # all are in use: the application refuses
            del self._requests[name]
            await self._app(_deleting(scope, name), _nothing, _ignored)


def _deleting(scope: Any, name: bytes) -> dict[str, Any]:
    host = [(key, value) for key, value in scope["headers"] if key == b"host"]
    return {**scope, "method": "DELETE", "headers": [*host, (_NAME, name)]}


async def _nothing() -> dict[str, Any]:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _ignored(_: Any) -> None:
    pass

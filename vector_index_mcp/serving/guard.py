"""Checks every HTTP request before anything else sees it: its origin, its token and its size.

There is no login, so a web page in the user's browser must neither get nor change anything. A
request must name this listener as its host and come from no other page. A body must be JSON, which
a page cannot send to another site without a preflight request. With a token, only its holder may
ask. Requests that only listen last as long as their clients like, so they are counted apart.
"""

import json
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import anyio

from vector_index_mcp.origins import LOOPBACK_NAMES, hosts_of, is_of_another_page
from vector_index_mcp.serving.session import is_cheap

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
"""An ASGI application."""

LONGEST_BODY_BYTES = 1_000_000
_MOST_UNDER_WAY = 64
_MOST_LISTENING = 64
# Of each request under way; together, their values take a few hundred megabytes at most.
_MOST_BYTES_OF_VALUES = 100_000
_MOST_TEXTS = 10_000
_BODY_SECONDS = 30.0
_DROP_SECONDS = 2.0
# Some clients send a whole body before they read the answer. So much of one that is too long is
# read and dropped.
_MOST_DROPPED_BYTES = 20_000_000
# Those that two readers must not take differently.
_ONCE = frozenset(
    {"host", "origin", "authorization", "content-type", "content-length", "mcp-session-id"}
)
_HEADERS = {
    b"cache-control": b"no-store",
    b"cross-origin-resource-policy": b"same-origin",
    b"x-content-type-options": b"nosniff",
}
_LENGTH = re.compile(r"[0-9]{1,18}")
_WITH_BODY = frozenset({"content-length", "transfer-encoding"})


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    detail: str


_REPEATED = Refusal(400, "a header is repeated, or the body's length is given in two ways")
_OTHER_HOST = Refusal(403, "this host name does not belong to this server")
_OTHER_PAGE = Refusal(403, "requests from pages of other sites are refused")
_NO_TOKEN = Refusal(401, "the token is missing or wrong; send it as `Authorization: Bearer TOKEN`")
_NO_JSON = Refusal(415, "a body must be JSON, sent as `Content-Type: application/json`")
_TOO_LONG = Refusal(413, f"a body may have at most {LONGEST_BODY_BYTES} bytes")
_TOO_MUCH = Refusal(
    413,
    f"a body may have at most {_MOST_BYTES_OF_VALUES} bytes besides strings, and "
    f"{_MOST_TEXTS} strings",
)
_TOO_SLOW = Refusal(408, f"the body did not arrive within {_BODY_SECONDS:.0f} s")
_TOO_MANY = Refusal(503, f"{_MOST_UNDER_WAY} requests are under way; try again when some are done")
_CROWDED_OUT = Refusal(
    503, "there are too many requests, and the body of this one had not arrived yet; try again"
)
_MANY_LISTEN = Refusal(503, f"{_MOST_LISTENING} clients listen already; ask without listening")


@dataclass(frozen=True, slots=True)
class Listener:
    """The address of a listener, and the token that requests must have."""

    names: tuple[str, ...]
    """Names and addresses of the listener besides `localhost`."""
    port: int
    is_on_all: bool = False
    """Whether it listens on all addresses of the machine, and accepts each of them as its name."""
    token: str = ""
    """The token that a request must have; empty for none."""

    def refusal(self, scope: Scope) -> Refusal | None:
        """Why a request is refused by its headers; None if it is not."""
        headers = _headers(scope)
        if headers is None:
            return _REPEATED
        host = headers.get("host", "").lower()
        if host not in self._hosts(scope):
            return _OTHER_HOST
        if is_of_another_page(headers, host):
            return _OTHER_PAGE
        if self.token and not _is_bearer(headers.get("authorization", ""), self.token):
            return _NO_TOKEN
        if headers.keys() & _WITH_BODY and not _is_json(headers):
            return _NO_JSON
        if int(headers.get("content-length", 0)) > LONGEST_BODY_BYTES:
            return _TOO_LONG
        return None

    def _hosts(self, scope: Scope) -> frozenset[str]:
        local = (str(scope["server"][0]),) if self.is_on_all and scope.get("server") else ()
        return hosts_of((*LOOPBACK_NAMES, *self.names, *local), self.port)


def _headers(scope: Scope) -> Mapping[str, str] | None:
    """The headers by their names in lower case; None if they are ambiguous."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name = raw_name.decode("latin-1").lower()
        if name in found and name in _ONCE:
            return None
        found[name] = raw_value.decode("latin-1")
    if found.keys() >= _WITH_BODY or not _LENGTH.fullmatch(found.get("content-length", "0")):
        return None
    return found


def _is_bearer(authorization: str, token: str) -> bool:
    scheme, _, given = authorization.partition(" ")
    is_same = secrets.compare_digest(given.strip().encode(), token.encode())
    return is_same and scheme.lower() == "bearer"


def _is_json(headers: Mapping[str, str]) -> bool:
    if headers.get("content-length") == "0":
        return True
    kind, _, parameters = headers.get("content-type", "").lower().partition(";")
    is_readable = parameters.replace('"', "").strip() in {"", "charset=utf-8", "charset=utf8"}
    return kind.strip() == "application/json" and is_readable


class Guard:
    """An application that refuses what `listener` refuses, and passes on the rest to `app`."""

    def __init__(
        self, app: App, listener: Listener, listens: Callable[[Scope], bool] = lambda _: False
    ) -> None:
        """Prepare.

        Args:
            app: The application.
            listener: The address at which it is reached.
            listens: Whether a request only listens, for as long as its client likes.
        """
        self._app = app
        self._listener = listener
        self._listens = listens
        self._under_way = 0
        self._listening = 0
        self._arriving: list[anyio.CancelScope] = []
        """The waits for bodies, the earliest first."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def send_guarded(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ())]
                known = {name.lower() for name, _ in headers}
                headers += [(n, v) for n, v in _HEADERS.items() if n not in known]
                message = {**message, "headers": headers}
            await send(message)

        refusal = self._listener.refusal(scope)
        if refusal is _TOO_LONG:
            await _drop(receive)
        listens = self._listens(scope)
        refusal = refusal or self._crowd(listens)
        if refusal is not None:
            await _refuse(refusal, send_guarded)
            return
        self._under_way += not listens
        self._listening += listens
        try:
            await self._pass_on(scope, receive, send_guarded, listens=listens)
        finally:
            self._under_way -= not listens
            self._listening -= listens

    def _crowd(self, listens: bool) -> Refusal | None:
        """Make room for one more request, or return why there is none."""
        if listens:
            return _MANY_LISTEN if self._listening >= _MOST_LISTENING else None
        if self._under_way < _MOST_UNDER_WAY:
            return None
        if not self._arriving:
            return _TOO_MANY
        # A client that never sends its body must not keep out one that has sent it.
        self._arriving.pop(0).cancel()
        return None

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, *, listens: bool) -> None:
        """Read the whole body, and have the application answer the request."""
        body = await self._arrived(receive, listens=listens)
        if body is None:  # the client has left
            return
        if isinstance(body, Refusal):
            await _refuse(body, send)
            return
        if not is_cheap(body, _MOST_BYTES_OF_VALUES, _MOST_TEXTS):
            await _refuse(_TOO_MUCH, send)
            return
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> MutableMapping[str, Any]:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)

    async def _arrived(self, receive: Receive, *, listens: bool) -> bytes | Refusal | None:
        """Wait for the whole body; None if the client leaves before its end."""
        with anyio.move_on_after(_BODY_SECONDS) as arriving:
            if not listens:  # one that only listens takes up no room of the others
                self._arriving.append(arriving)
            try:
                return await _body(receive)
            finally:
                has_place = listens or arriving in self._arriving
                if arriving in self._arriving:
                    self._arriving.remove(arriving)
        return _TOO_SLOW if has_place else _CROWDED_OUT


async def _body(receive: Receive) -> bytes | Refusal | None:
    """Read a whole body; None if the client leaves before its end."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return None
        body += message.get("body", b"")
        is_whole = not message.get("more_body", False)
        if len(body) > LONGEST_BODY_BYTES:
            if not is_whole:
                await _drop(receive)
            return _TOO_LONG
        if is_whole:
            return bytes(body)


async def _drop(receive: Receive) -> None:
    """Read and drop the rest of a refused body, so that the client gets to read the answer."""
    dropped = 0
    with anyio.move_on_after(_DROP_SECONDS):
        while dropped < _MOST_DROPPED_BYTES:
            message = await receive()
            dropped += len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = json.dumps({"detail": refusal.detail, "status_code": refusal.status}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        # Close the connection: what follows on it may be the rest of the body.
        (b"connection", b"close"),
    ]
    if refusal is _NO_TOKEN:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

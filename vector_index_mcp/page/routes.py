"""Serves the page over HTTP: the answer for each path. Only it uses Starlette in `page/`."""

import contextlib
import json
import time
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs

import anyio
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import (
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vector_index_mcp import foreign
from vector_index_mcp.errors import QueryError, SettingsError, VectorIndexError
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.page import door
from vector_index_mcp.page.content import Content, News, events

_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_OBEYED = "obeyed.js"
_LONGEST_FORM_BYTES = 1_000
_LONGEST_CHANGE_BYTES = 20_000
# The browser loads only our own files. No text of the project can become markup: because of trusted
# types, Chromium refuses to parse a string as HTML.
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Visits:
    """Counts open pages, and notes the last request. Times are of the monotonic clock."""

    def __init__(self) -> None:
        self.viewers = 0
        """How many pages are open; each keeps a stream of news open."""
        self.last = time.monotonic()
        """The time of the last request."""
        self.ending = anyio.Event()
        """Set when the streams of news must end."""

    def note(self) -> None:
        """Note a request."""
        self.last = time.monotonic()

    @contextmanager
    def viewing(self) -> Iterator[None]:
        """Count an open page while the context lasts."""
        self.viewers += 1
        try:
            yield
        finally:
            self.viewers -= 1
            self.note()


class _NewsStream(StreamingResponse):
    """The endless stream of news to an open page, which counts as a viewer."""

    def __init__(self, news: Sequence[News], visits: Visits) -> None:
        super().__init__(events(news, visits.ending), media_type="text/event-stream")
        self._visits = visits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._visits.viewing():
            await super().__call__(scope, receive, send)


def application(content: Content, doorkeeper: door.Door, visits: Visits, port: int) -> ASGIApp:
    """Return the page of one service as an ASGI application.

    Args:
        content: What the page shows.
        doorkeeper: Decides who may see the page.
        visits: Counts open pages and notes requests.
        port: The port of the page.
    """
    static = {file.name: file.read_bytes() for file in _static_files()} | {_OBEYED: _obeyed()}

    async def enter(request: Request) -> Response:
        is_sent = request.method == "POST"
        token = await _token_sent(request) if is_sent else request.query_params.get("token", "")
        session = doorkeeper.admit(token, time.monotonic())
        if session is None:
            return _refused(door.used_link(content.command))
        room = f"/{session.room}/"
        response: Response = RedirectResponse(room, status_code=303)
        if is_sent:
            # A file counts as a foreign page. After a redirect that a foreign page began, a browser
            # does not send our strict cookie. After a refresh, which our own page begins, it does.
            response = PlainTextResponse("The page opens.", headers={"Refresh": f"0; url={room}"})
        response.set_cookie(
            session.cookie, session.key, path=room, httponly=True, samesite="strict"
        )
        return response

    async def show(request: Request) -> Response:
        name = request.path_params.get("name", content.index)
        if name not in static:
            return PlainTextResponse("There is no such page.", 404)
        return Response(static[name], media_type=_TYPES[name[name.rindex(".") :]])

    async def stream_news(request: Request) -> Response:
        return _NewsStream(await content.news(), visits)

    async def answer(request: Request) -> Response:
        if (ask := content.answers.get(request.path_params["name"])) is None:
            return PlainTextResponse("There is no such question.", 404)
        return await _answered(ask(request.query_params), content.remedies)

    async def change(request: Request) -> Response:
        return await _changed(content, request)

    routes = [
        Route(door.ENTRANCE, enter, methods=["GET", "POST"]),
        Route("/{room}/", show),
        Route("/{room}/{name}", show),
        Route("/{room}/api/news", stream_news),
        Route("/{room}/api/{name}", answer, methods=["GET"]),
        Route("/{room}/api/{name}", change, methods=["POST"]),
    ]
    return _Guard(Starlette(routes=routes), content.command, doorkeeper, visits, port)


class _Guard:
    """Refuses requests without access, and adds the security headers to every answer."""

    def __init__(
        self, app: ASGIApp, command: str, doorkeeper: door.Door, visits: Visits, port: int
    ) -> None:
        self._app = app
        self._command = command
        self._door = doorkeeper
        self._visits = visits
        self._port = port

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        refusal = self._refusal(scope)
        app = self._app if refusal is None else _refused(refusal)
        if refusal is None:
            self._visits.note()
        await app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> door.Refusal | None:
        if refusal := door.refusal(
            scope["method"], scope["path"], Headers(scope=scope), self._port
        ):
            return refusal
        room = scope["path"].strip("/").partition("/")[0]
        if room and not self._door.knows(room, HTTPConnection(scope).cookies):
            return door.no_session(self._command)
        return None


async def _changed(content: Content, request: Request) -> Response:
    """Make the change that the page asks for."""
    if (do := content.changes.get(request.path_params["name"])) is None:
        return PlainTextResponse("This cannot be done here.", 404)
    try:
        given = json.loads(await _body(request, _LONGEST_CHANGE_BYTES))
    except (ValueError, RecursionError):
        given = None
    if not isinstance(given, dict):
        return _json({"error": "The body of the request must be a JSON object."}, 400)
    return await _answered(do(given), content.remedies)


async def _token_sent(request: Request) -> str:
    """Return the token in a form's body; empty if there is none, or if the body is too long."""
    body = await _body(request, _LONGEST_FORM_BYTES)
    values = parse_qs(body.decode("utf-8", "replace"))
    return values.get("token", [""])[0]


async def _body(request: Request, longest: int) -> bytes:
    """Return the body of a request; empty if it is longer than `longest` bytes."""
    body = b""
    with contextlib.suppress(ClientDisconnect):
        async for chunk in request.stream():
            body += chunk
            if len(body) > longest:
                return b""
    return body


async def _answered(answer: Awaitable[Any], remedies: Remedies) -> Response:
    """Return `answer` as JSON, or its error."""
    try:
        return _json(await answer)
    except (QueryError, SettingsError) as error:
        return _json({"error": str(error)}, 400)
    except VectorIndexError as error:
        return _json({"error": remedies.message(error)}, 503)


def _json(values: Any, status: int = 200) -> Response:
    # As ASCII: names of files may have bytes that are not UTF-8.
    return Response(json.dumps(values), status, media_type="application/json")


def _refused(refusal: door.Refusal) -> Response:
    return PlainTextResponse(refusal.words, refusal.status)


def _obeyed() -> bytes:
    """Return a script that exports the characters that the page must escape in foreign texts."""
    ranges = "".join(f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in foreign.OBEYED)
    return f"export const OBEYED = /[{ranges}]/gu;\n".encode()


def _static_files() -> Iterator[Any]:
    folder = files("vector_index_mcp.page") / "static"
    return (file for file in folder.iterdir() if file.is_file())

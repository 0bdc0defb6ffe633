"""Decides who may see the page: one-time links, sessions, and refused requests. No I/O.

The page shows a project's sources, so only the service's own user may see it. But every process on
the machine, and every site that the user's browser visits, can reach its port:

- A link contains a token, which works once, within a few minutes, and is exchanged for a session.
  Only the service's own socket gives out tokens. A browser that we open gets the token in a file of
  the user's (`handover`), so that it is not among the arguments of a process.
- A session has a room, which is the first part of the page's path, and a key, which is a cookie. A
  browser sends cookies to every port of a host. So the cookie is limited to the room's path: a
  server on another port, which has other paths, never gets it.
- A request must name this listener as its host, not a DNS name that somebody points here, and must
  come from the page itself, not from another origin. A request that changes something must be a
  POST with the page as its origin, which no other page can send. One exception: a token may come
  from a file, which has no origin, because whoever has a token may enter.
"""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.origins import LOOPBACK_NAMES, hosts_of, is_of_another_page

TOKEN_SECONDS = 180.0
COOKIE_PREFIX = "vector-index-"
_MOST_TOKENS = 16
_MOST_SESSIONS = 32
_ROOM_BYTES = 9
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """The right to use the page, for as long as the service lives."""

    room: str
    """The first part of the page's path."""
    key: str
    """The value of the cookie."""

    @property
    def cookie(self) -> str:
        """The cookie's name."""
        return COOKIE_PREFIX + self.room


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not answered."""

    status: int
    words: str


_OTHER_HOST = Refusal(403, "This host name does not belong to the page.")
_OTHER_ORIGIN = Refusal(403, "The request comes from another site, which has no access.")
_OTHER_METHOD = Refusal(405, "Only GET and POST are allowed.")
ENTRANCE = "/"
_NO_ORIGIN = "null"  # the origin that a browser sends for a page in a file


def used_link(command: str) -> Refusal:
    """Return the refusal of a token that is wrong, used or too old; `command` makes a new one."""
    return Refusal(403, f"This link has been used, or is too old. Run `{command}` for a new one.")


def no_session(command: str) -> Refusal:
    """Return the refusal of a request without a session."""
    return Refusal(403, f"This page has no session here. Run `{command}` and open its link.")


class Door:
    """Keeps the valid tokens and the sessions. Times are seconds of one clock."""

    def __init__(self) -> None:
        self._tokens: dict[str, float] = {}  # the time when each expires, oldest first
        self._sessions: dict[str, Session] = {}  # by room, oldest first

    def issue(self, now: float) -> str:
        """Return a new token, which works once; if there are too many, drop the oldest."""
        _keep_newest(self._tokens, _MOST_TOKENS - 1)
        token = secrets.token_urlsafe(_SECRET_BYTES)
        self._tokens[token] = now + TOKEN_SECONDS
        return token

    def admit(self, token: str, now: float) -> Session | None:
        """Exchange `token` for a session; returns None if it is wrong, used or too old."""
        known = [issued for issued in self._tokens if _is_same(issued, token)]
        if not known or self._tokens.pop(known[0]) < now:
            return None
        _keep_newest(self._sessions, _MOST_SESSIONS - 1)
        session = Session(secrets.token_urlsafe(_ROOM_BYTES), secrets.token_urlsafe(_SECRET_BYTES))
        self._sessions[session.room] = session
        return session

    def is_good(self, token: str, now: float) -> bool:
        """Whether this token can still be exchanged."""
        return self._tokens.get(token, now - 1) >= now

    def is_awaited(self, now: float) -> bool:
        """Whether any token can still be exchanged."""
        return any(until >= now for until in self._tokens.values())

    def knows(self, room: str, cookies: Mapping[str, str]) -> bool:
        """Whether `cookies` contain the key of `room`."""
        session = self._sessions.get(room)
        return session is not None and _is_same(session.key, cookies.get(session.cookie, ""))


def refusal(method: str, path: str, headers: Mapping[str, str], port: int) -> Refusal | None:
    """Return why a request is refused; None if it may be answered. Does not check the session.

    Args:
        method: The method of the request.
        path: The path of the request.
        headers: The headers of the request, by names in lower case.
        port: The port of the page.
    """
    host = headers.get("host", "")
    if host not in hosts_of(LOOPBACK_NAMES, port):
        return _OTHER_HOST
    if method == "POST" and path == ENTRANCE:
        is_welcome = headers.get("origin", _own(host)) in {_own(host), _NO_ORIGIN}
        return None if is_welcome and _takes_the_whole_tab(headers) else _OTHER_ORIGIN
    if is_of_another_page(headers, host):
        return _OTHER_ORIGIN
    if method == "POST":
        return None if headers.get("origin") == _own(host) else _OTHER_ORIGIN
    return None if method == "GET" else _OTHER_METHOD


def _own(host: str) -> str:
    return f"http://{host}"


def _takes_the_whole_tab(headers: Mapping[str, str]) -> bool:
    """Whether the answer becomes a page of its own: no script or frame sent the request."""
    wanted = {"sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    return all(headers.get(name, value) == value for name, value in wanted.items())


def _is_same(secret: str, given: str) -> bool:
    return secrets.compare_digest(secret.encode(), given.encode("utf-8", "replace"))


def _keep_newest(values: dict[str, Any], most: int) -> None:
    while len(values) > most:
        del values[next(iter(values))]

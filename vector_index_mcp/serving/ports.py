"""Serves a tool set over HTTP, by REST and MCP, at the ports that front ends ask for.

A port is open as long as a front end wants it; several front ends may share it. The web framework
is imported only when a client connects.
"""

import errno
import ipaddress
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.serving import lean_mcp, session
from vector_index_mcp.serving.guard import LONGEST_BODY_BYTES, App, Guard, Listener, Scope
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.sessions import Sessions, Turns
from vector_index_mcp.serving.sets import Service, ToolSet

MCP_PATH = "/mcp"
_HIGHEST_PORT = 65_535
# The guard lets 64 clients listen and 64 requests be under way; the others have said nothing yet.
_MOST_CONNECTIONS = 192
_MOST_SESSIONS = 192  # more than can be in use at once, which do not end for a new one
_LISTEN = b"subscriptions/listen"
_LAST_EVENT = b"last-event-id"
_SESSION_SECONDS = 1_800.0  # without use, after which a session ends; a client may begin another


@dataclass(frozen=True, slots=True)
class Wish:
    """The port that a front end asks for."""

    host: str
    """The host, as the user wrote it."""
    address: str
    """The numeric address of `host`."""
    port: int
    """0 for any port."""
    token: str
    """The token that requests must have; empty for none."""
    host_from: str
    """What the user gave the host with: an option, or a variable. Likewise `port_from`."""
    port_from: str

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Wish":
        """Read the wish from the values of a greeting.

        Raises:
            BackgroundError: If a value is missing or invalid.
        """
        host, port, token = (values.get(key) for key in ("host", "port", "token"))
        if not (isinstance(host, str) and isinstance(port, int) and isinstance(token, str)):
            raise BackgroundError("host, port or token is missing in the request to open a port")
        host_from = str(values.get("host_from", "--host"))  # a front end of before does not say
        port_from = str(values.get("port_from", "--port"))
        if not 0 <= port <= _HIGHEST_PORT:
            raise BackgroundError(f"{port} is no port; choose one from 1 to {_HIGHEST_PORT}")
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise BackgroundError(
                f"{host} is no address of this machine ({error}); "
                f"choose another one with {host_from}"
            ) from error
        address = str(found[0][4][0])
        if not token and not ipaddress.ip_address(address).is_loopback:
            raise BackgroundError(
                f"other machines can reach {host}, which requires a token; "
                "set VECTOR_INDEX_HTTP_TOKEN"
            )
        return cls(host, address, port, token, host_from, port_from)

    @property
    def is_on_all(self) -> bool:
        """Whether the address stands for all addresses of the machine."""
        return ipaddress.ip_address(self.address).is_unspecified


@dataclass(slots=True)
class _Port:
    """An open port."""

    wish: Wish
    listening: socket.socket
    number: int
    users: int = 0
    unwanted: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)


class Ports:
    """The ports of one service. They are served while `run` runs."""

    def __init__(self, tool_set: ToolSet, server: MCPServer[Any], service: Lazily[Service]) -> None:
        """Prepare; no port is open yet.

        Args:
            tool_set: Makes the REST interface.
            server: Answers MCP.
            service: The service that both use.
        """
        self._tool_set = tool_set
        self._server = server
        self._service = service
        self._ports: list[_Port] = []
        self._opening = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self) -> None:
        """Serve all open ports, until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    @asynccontextmanager
    async def opened(self, values: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Keep a port open for a front end while the context lasts; yields its number as `port`.

        Args:
            values: The values of the front end's greeting.

        Raises:
            BackgroundError: If the port cannot be opened.
        """
        if self._tool_set.load_rest is None:
            raise BackgroundError(f"the tool set {self._tool_set.name} has no HTTP interface")
        wish = await anyio.to_thread.run_sync(Wish.of, values)
        async with self._opening:
            port = self._shared(wish) or self._open(wish)
            port.users += 1
        if values.get("is_alone"):  # else an MCP session follows, which loading would delay
            self._service.begin()
        try:
            yield {"port": port.number}
        finally:
            with anyio.CancelScope(shield=True):
                async with self._opening:
                    await self._leave(port)

    def _shared(self, wish: Wish) -> _Port | None:
        """The wanted port, if it is open already.

        Raises:
            BackgroundError: If it is open with another token or host.
        """
        for port in self._ports:
            if (port.wish.address, port.number) == (wish.address, wish.port):
                if (port.wish.host, port.wish.token) != (wish.host, wish.token):
                    raise BackgroundError(
                        f"port {wish.port} is open already with another token or host; "
                        f"end that server, or choose another port with {wish.port_from}"
                    )
                return port
        return None

    def _open(self, wish: Wish) -> _Port:
        if self._tasks is None:
            raise BackgroundError("the service is about to end; try again")
        listening = _listening(wish)
        port = _Port(wish, listening, listening.getsockname()[1])
        self._ports.append(port)
        self._tasks.start_soon(self._serve, port)
        return port

    async def _leave(self, port: _Port) -> None:
        port.users -= 1
        if not port.users:
            self._ports.remove(port)
            port.unwanted.set()
            await port.closed.wait()

    async def _serve(self, port: _Port) -> None:
        try:
            with port.listening:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._serve_once_needed, port)
                    await port.unwanted.wait()
                    tasks.cancel_scope.cancel()
        finally:
            port.closed.set()

    async def _serve_once_needed(self, port: _Port) -> None:
        await anyio.wait_readable(port.listening)
        from vector_index_mcp.serving import guest

        await anyio.to_thread.run_sync(lean_mcp.complete)
        load = self._tool_set.load_rest
        assert load is not None  # `opened` has checked that
        rest = await anyio.to_thread.run_sync(load, self._service.get, bool(port.wish.token))
        mcp = self._server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            max_request_body_size=LONGEST_BODY_BYTES,
            session_idle_timeout=_SESSION_SECONDS,
            max_sessions=_MOST_SESSIONS + _MOST_CONNECTIONS,
            # The guard has checked the host already, and knows more of its names than this check.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        sessions = self._server.session_manager  # belongs to this application alone
        app = Guard(_either(Sessions(mcp, _MOST_SESSIONS), rest), _listener_of(port), _listens)
        async with (
            guest.serving(app, port.listening, _MOST_CONNECTIONS),
            sessions.run(),  # ends before `guest`, which would wait for endless answers
        ):
            await anyio.sleep_forever()


def _listener_of(port: _Port) -> Listener:
    wish = port.wish
    names = () if wish.is_on_all else (wish.host, wish.address)
    return Listener(names, port.number, wish.is_on_all, wish.token)


def _listens(scope: Scope) -> bool:
    """Whether a request only listens to what MCP tells without being asked."""
    if scope["path"] != MCP_PATH:
        return False
    return scope["method"] == "GET" or (b"mcp-method", _LISTEN) in scope["headers"]


def _either(mcp: Any, rest: App) -> App:
    turns = Turns()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] != MCP_PATH:
            await rest(scope, receive, send)
            return
        message = await receive()  # all of the body: the guard has read it
        id_ = None
        if scope["method"] == "POST":
            id_, refusal = session.examined(message.get("body", b""))
            if refusal is not None:
                await _refuse(refusal, send)
                return
        # We keep no events to send again, and the library fails where somebody asks for them.
        headers = [(name, value) for name, value in scope["headers"] if name != _LAST_EVENT]
        scope = {**scope, "headers": headers}
        pending = [message]

        async def replay() -> Any:
            return pending.pop() if pending else await receive()

        async with turns.of(scope, id_):
            await mcp(scope, replay, send)

    return app


async def _refuse(answer: bytes, send: Any) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def _listening(wish: Wish) -> socket.socket:
    family = socket.AF_INET6 if ":" in wish.address else socket.AF_INET
    try:
        return socket.create_server((wish.address, wish.port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BackgroundError(
                f"port {wish.port} of {wish.host} is taken by another program; end it, or choose "
                f"another port with {wish.port_from}"
            ) from error
        raise BackgroundError(
            f"port {wish.port} of {wish.host} cannot be opened ({error.strerror}); "
            f"choose others with {wish.host_from} and {wish.port_from}"
        ) from error

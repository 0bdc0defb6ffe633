"""The HTTP side of a tool set: REST and MCP at the ports that front ends ask for.

A port is open as long as a front end wants it; several may share one. Nothing of the web framework
is imported before somebody connects.
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
from vector_index_mcp.serving import lean_mcp
from vector_index_mcp.serving.guard import LONGEST_BODY_BYTES, App, Guard, Listener
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.sessions import Sessions
from vector_index_mcp.serving.sets import Service, ToolSet

MCP_PATH = "/mcp"
_HIGHEST_PORT = 65_535
_MOST_CONNECTIONS = 128
_MOST_SESSIONS = 64
_SESSION_SECONDS = 1_800.0  # unused; then a client begins another one


@dataclass(frozen=True, slots=True)
class Wish:
    """What a front end asks for."""

    host: str
    """As its user wrote it."""
    address: str
    """The same as a number."""
    port: int
    """0 for any."""
    token: str
    """What requests must show; empty if they need not."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Wish":
        """The wish in the values of a greeting.

        Raises:
            BackgroundError: If it cannot be fulfilled.
        """
        host, port, token = (values.get(key) for key in ("host", "port", "token"))
        if not (isinstance(host, str) and isinstance(port, int) and isinstance(token, str)):
            raise BackgroundError("host, port and token are needed to listen")
        if not 0 <= port <= _HIGHEST_PORT:
            raise BackgroundError(f"{port} is no port; choose one from 1 to {_HIGHEST_PORT}")
        try:
            found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise BackgroundError(f"{host} is no address of this machine ({error})") from error
        address = str(found[0][4][0])
        if not token and not ipaddress.ip_address(address).is_loopback:
            raise BackgroundError(f"{host} can be reached by others, which needs a token")
        return cls(host, address, port, token)

    @property
    def is_on_all(self) -> bool:
        """Whether every address of the machine is meant."""
        return ipaddress.ip_address(self.address).is_unspecified


@dataclass(slots=True)
class _Port:
    """A port that is open."""

    wish: Wish
    listening: socket.socket
    number: int
    users: int = 0
    unwanted: anyio.Event = field(default_factory=anyio.Event)
    closed: anyio.Event = field(default_factory=anyio.Event)


class Ports:
    """The ports of one service. Serves while it is `running`."""

    def __init__(self, tool_set: ToolSet, server: MCPServer[Any], service: Lazily[Service]) -> None:
        """Prepare; nothing is open yet.

        Args:
            tool_set: Makes what answers REST.
            server: Answers MCP.
            service: What both are about.
        """
        self._tool_set = tool_set
        self._server = server
        self._service = service
        self._ports: list[_Port] = []
        self._opening = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    async def run(self) -> None:
        """Serve what is open, until cancelled."""
        async with anyio.create_task_group() as self._tasks:
            await anyio.sleep_forever()

    @asynccontextmanager
    async def opened(self, values: Mapping[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """The time in which a front end wants a port open; says where it is.

        Args:
            values: Those of its greeting.

        Raises:
            BackgroundError: If the port cannot be had.
        """
        if self._tool_set.load_rest is None:
            raise BackgroundError(f"the {self._tool_set.name} have no HTTP interface")
        wish = await anyio.to_thread.run_sync(Wish.of, values)
        async with self._opening:
            port = self._shared(wish) or self._open(wish)
            port.users += 1
        if values.get("is_alone"):  # else a session of MCP follows, which must not wait
            self._service.begin()
        try:
            yield {"port": port.number}
        finally:
            with anyio.CancelScope(shield=True):
                async with self._opening:
                    await self._leave(port)

    def _shared(self, wish: Wish) -> _Port | None:
        """The port that is wished, if it is open already."""
        for port in self._ports:
            if (port.wish.address, port.number) == (wish.address, wish.port):
                if (port.wish.host, port.wish.token) != (wish.host, wish.token):
                    raise BackgroundError(
                        f"port {wish.port} is open already with another token or host; "
                        "end that server, or choose another port with --port"
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
        assert load is not None  # without it nothing is opened
        rest = await anyio.to_thread.run_sync(load, self._service.get, bool(port.wish.token))
        mcp = self._server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            max_request_body_size=LONGEST_BODY_BYTES,
            session_idle_timeout=_SESSION_SECONDS,
            max_sessions=_MOST_SESSIONS + _MOST_CONNECTIONS,
            # What our guard lets through, this need not look at again: it knows fewer names.
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
        )
        sessions = self._server.session_manager  # of this application alone
        app = Guard(_either(Sessions(mcp, _MOST_SESSIONS), rest), _listener_of(port))
        async with (
            guest.serving(app, port.listening, _MOST_CONNECTIONS),
            sessions.run(),  # ends first: endless answers would keep the guest
        ):
            await anyio.sleep_forever()


def _listener_of(port: _Port) -> Listener:
    wish = port.wish
    names = () if wish.is_on_all else (wish.host, wish.address)
    return Listener(names, port.number, wish.is_on_all, wish.token)


def _either(mcp: Any, rest: App) -> App:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (mcp if scope["path"] == MCP_PATH else rest)(scope, receive, send)

    return app


def _listening(wish: Wish) -> socket.socket:
    family = socket.AF_INET6 if ":" in wish.address else socket.AF_INET
    try:
        return socket.create_server((wish.address, wish.port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise BackgroundError(
                f"port {wish.port} of {wish.host} is taken by another program; end it, or choose "
                "another port with --port"
            ) from error
        raise BackgroundError(
            f"port {wish.port} of {wish.host} cannot be listened on ({error.strerror}); "
            "choose others with --host and --port"
        ) from error

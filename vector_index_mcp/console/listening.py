"""Makes a background service listen on an HTTP port for as long as this process lives."""

import argparse
import contextlib
import ipaddress
import signal
import socket
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vector_index_mcp.background import contact, greeting, relay
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.console.terminal import write
from vector_index_mcp.errors import BackgroundError, SettingsError, VectorIndexError
from vector_index_mcp.foreign import visible

_UNPROTECTED = (
    "every user and program of this machine may ask, add and delete there; on a machine that you "
    "share, set VECTOR_INDEX_HTTP_TOKEN"
)
_CLIENT_LEFT = (
    "the MCP client has closed standard input, which ends the server; "
    "`--transport http` listens without a client"
)
_HIGHEST_PORT = 65_535
_CLOSING_SECONDS = 5.0  # the service promises to close the port within this time
_CHUNK_BYTES = 4_096


def add_options(parser: argparse.ArgumentParser, port: int) -> None:
    """Add the options --port and --host; `port` is the default port.

    A caller that takes a value from elsewhere sets `port_from` or `host_from`, for the messages.
    """
    parser.set_defaults(port_from="--port", host_from="--host")
    parser.add_argument(
        "--port", type=port_of, default=port, help=f"HTTP port ({port}); 0: any free"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="address to listen on (127.0.0.1); any other needs VECTOR_INDEX_HTTP_TOKEN",
    )


def run(
    parsed: argparse.Namespace, endpoint: Endpoint, host_arguments: Sequence[str], *, is_alone: bool
) -> int:
    """Listen until the MCP client disconnects or a signal comes; returns the exit status.

    Args:
        parsed: The options that `add_options` adds.
        endpoint: Where to reach the service.
        host_arguments: The arguments to start a service with if none runs.
        is_alone: Whether this process serves no MCP client on its standard streams.

    Raises:
        BackgroundError: If no service can be started, or the one of an `is_alone` ended by an
            error; gives the reason.
        SettingsError: If the address needs a token and none is set, or a setting is wrong.
    """
    values = {
        "host": parsed.host,
        "port": parsed.port,
        "host_from": parsed.host_from,
        "port_from": parsed.port_from,
        "token": _token(parsed, host_arguments),
        "is_alone": is_alone,
    }
    with contextlib.ExitStack() as ports:

        def listen(*, again: bool = False) -> socket.socket:
            connection, answer = contact.granted(
                endpoint, host_arguments, greeting.HTTP, values, any_version=again
            )
            ports.enter_context(_closed_at_the_end(connection))
            values["port"] = answer["port"]
            return connection

        def listen_again() -> None:
            with ports.pop_all(), contextlib.suppress(OSError):  # nobody may read what we write
                try:
                    listen(again=True)
                    _say_where(parsed.host, values)
                except VectorIndexError as error:  # the port is taken, say; the session goes on
                    write(f"vector-index-mcp: {visible(str(error))}", sys.stderr)

        connection = listen()
        is_ending = _end_on_signals(connection) if is_alone else None
        _say_where(parsed.host, values)
        if is_ending is None:
            status = relay.run(endpoint, host_arguments, listen_again)
            with contextlib.suppress(OSError):  # nobody may read what we write
                write(_CLIENT_LEFT, sys.stderr)
            return status
        return _wait(endpoint, connection, is_ending)


def port_of(text: str) -> int:
    """Return the number of a port.

    Raises:
        argparse.ArgumentTypeError: If it is none.
    """
    if not (text.isascii() and text.isdecimal()) or int(text[:9]) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_HIGHEST_PORT}")
    return int(text)


def _token(parsed: argparse.Namespace, host_arguments: Sequence[str]) -> str:
    """Return the token that requests must carry; empty if none is set and none is needed."""
    from vector_index_mcp import settings

    env_files = dict(zip(host_arguments, host_arguments[1:], strict=False))
    token = settings.load(env_files.get("--env-file")).http_token
    if not token and not _is_loopback(parsed.host):
        joint = " " if parsed.host_from.startswith("--") else "="
        raise SettingsError(
            f"other machines could reach {parsed.host}, and no token protects it; set "
            "VECTOR_INDEX_HTTP_TOKEN, or listen on this machine alone, with "
            f"{parsed.host_from}{joint}127.0.0.1"
        )
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a host name, which may resolve to another address later
        return False


def _say_where(host: str, values: Mapping[str, Any]) -> None:
    name = f"[{host}]" if ":" in host else host
    where = f"listening on http://{name}:{values['port']} (MCP at /mcp)"
    # In one piece: who has read the first line may close the stream.
    write(where if values["token"] else f"{where}\n{_UNPROTECTED}", sys.stderr)


def _end_on_signals(connection: socket.socket) -> threading.Event:
    """On SIGTERM or SIGINT, ask the service to close the port; the returned event is then set."""
    is_ending = threading.Event()

    def end(*_: object) -> None:
        is_ending.set()
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    return is_ending


def _wait(endpoint: Endpoint, connection: socket.socket, is_ending: threading.Event) -> int:
    """Wait until the service ends the connection: when it has closed the port, or ends itself."""
    pid = endpoint.read_record().get("pid")
    _drain(connection)
    if not is_ending.is_set() and (reason := contact.reason_of_end(endpoint, pid)):
        raise BackgroundError(reason)
    return 0


@contextlib.contextmanager
def _closed_at_the_end(connection: socket.socket) -> Iterator[None]:
    """When the context ends, ask the service to close the port, and wait until it has."""
    with connection:
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                connection.settimeout(_CLOSING_SECONDS)
                connection.shutdown(socket.SHUT_WR)
                _drain(connection)


def _drain(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(_CHUNK_BYTES):
            pass

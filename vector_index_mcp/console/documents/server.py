"""The command `server`: the documents over MCP on the standard streams, over HTTP, or both.

It is a front end: it has the background service listen, and as long as it lives the port is open.
"""

import argparse
import contextlib
import ipaddress
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Any

from vector_index_mcp.background import contact, greeting, relay
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.console.terminal import write
from vector_index_mcp.documents.home import Home
from vector_index_mcp.errors import BackgroundError, SettingsError
from vector_index_mcp.serving.sets import DOCUMENTS

DEFAULT_PORT = 18_765
_HIGHEST_PORT = 65_535
_CLOSING_SECONDS = 5.0  # for the service to close the port; it promises to end in that time
_CHUNK_BYTES = 4_096


def run(arguments: Sequence[str], home: Home, host_arguments: Sequence[str]) -> int:
    """Serve the documents of `home` until the client or a signal ends it; the exit status.

    Args:
        arguments: Those of the command.
        home: Which documents.
        host_arguments: The arguments that a service has to be started with.

    Raises:
        BackgroundError: If there is no service, or it ends by an error; says why.
        SettingsError: If the address may not be listened on, or a setting is wrong.
    """
    parsed = _parser().parse_args(arguments)
    endpoint = endpoint_of(DOCUMENTS, home.configuration)
    if parsed.transport == "mcp":
        return relay.run(endpoint, host_arguments)
    values = {
        "host": parsed.host,
        "port": parsed.port,
        "token": _token(parsed.host, host_arguments),
        "is_alone": parsed.transport == "http",
    }
    with _opened(endpoint, host_arguments, values) as connection:
        if parsed.transport == "both":
            return relay.run(endpoint, host_arguments)
        return _wait(endpoint, connection)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp documents server",
        description="Serve the documents: MCP on the standard streams, REST and MCP over HTTP.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--transport",
        choices=("both", "mcp", "http"),
        default="both",
        help="mcp: the standard streams; http: REST, and MCP at /mcp; both (the default)",
    )
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, help=f"of HTTP ({DEFAULT_PORT}); 0 for any"
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="what HTTP listens on (127.0.0.1); others need VECTOR_INDEX_HTTP_TOKEN",
    )
    return parser


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or int(text[:9]) > _HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {_HIGHEST_PORT}")
    return int(text)


def _token(host: str, host_arguments: Sequence[str]) -> str:
    """The token that requests must show; empty if there is none and none is needed."""
    from vector_index_mcp import settings

    env_files = dict(zip(host_arguments, host_arguments[1:], strict=False))
    token = settings.load(env_files.get("--env-file")).http_token
    if not token and not _is_loopback(host):
        raise SettingsError(
            f"others could reach {host}, and there is no token; set VECTOR_INDEX_HTTP_TOKEN, or "
            "leave out --host to listen on this machine alone"
        )
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # what a name leads to may change
        return False


@contextlib.contextmanager
def _opened(endpoint: Endpoint, host_arguments: Sequence[str], values: dict[str, Any]) -> Any:
    """The connection as long as which the port is open."""
    connection, told = contact.granted(endpoint, host_arguments, greeting.HTTP, values)
    with connection:
        host = f"[{values['host']}]" if ":" in values["host"] else values["host"]
        write(f"listening on http://{host}:{told['port']} (MCP at /mcp)", sys.stderr)
        try:
            yield connection
        finally:
            _close(connection)


def _wait(endpoint: Endpoint, connection: socket.socket) -> int:
    """Stay until a signal comes or the service ends."""
    pid = endpoint.read_record().get("pid")
    is_ending = False

    def end(*_: object) -> None:
        nonlocal is_ending
        is_ending = True
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)  # the service answers by the end, once it is closed

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    _drain(connection)
    if not is_ending and (reason := contact.reason_of_end(endpoint, pid)):
        raise BackgroundError(reason)
    return 0


def _close(connection: socket.socket) -> None:
    """Have the service close the port, and wait until it has."""
    with contextlib.suppress(OSError):
        connection.settimeout(_CLOSING_SECONDS)
        connection.shutdown(socket.SHUT_WR)
        _drain(connection)


def _drain(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while connection.recv(_CHUNK_BYTES):
            pass

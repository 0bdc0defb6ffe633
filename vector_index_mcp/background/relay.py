"""The front end: finds the service or starts it, then passes bytes between client and service.

An MCP client starts one for each session, so it must cost next to nothing: it imports only the
standard library, understands no message that it carries, and ends when either side does.
"""

import os
import socket
import threading
from collections.abc import Sequence

from vector_index_mcp.background import contact, launching
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.errors import BackgroundError

_CHUNK_BYTES = 65_536
_LAST_ANSWERS_SECONDS = 10.0  # for answers under way after the client has closed its output


def run(endpoint: Endpoint, host_arguments: Sequence[str]) -> int:
    """Relay the standard streams to a service until either side ends.

    Args:
        endpoint: The endpoint of the service, whether it runs or not.
        host_arguments: The command line's arguments to start a service with.

    Returns:
        The exit status.

    Raises:
        BackgroundError: If no service can be started, or it ends by an error, with the reason.
    """
    connection = contact.connected(endpoint, host_arguments)
    pid = endpoint.read_record().get("pid")
    has_left = threading.Event()
    _carry(connection, has_left)
    if not has_left.is_set() and (reason := contact.reason_of_end(endpoint, pid)):
        raise BackgroundError(reason)
    return 0


def _carry(connection: socket.socket, has_left: threading.Event) -> None:
    """Carry bytes both ways until either side ends.

    Args:
        connection: The connection to the service.
        has_left: Is set if the client ends first.
    """
    launching.in_background(_send_input, connection, has_left)
    while data := _receive(connection):
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(1, view) :]
            except OSError:  # the client reads no more
                has_left.set()
                return


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK_BYTES)
    except OSError:
        return b""


def _send_input(connection: socket.socket, has_left: threading.Event) -> None:
    try:
        while data := os.read(0, _CHUNK_BYTES):
            connection.sendall(data)
        has_left.set()
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_LAST_ANSWERS_SECONDS)
    except OSError:
        return

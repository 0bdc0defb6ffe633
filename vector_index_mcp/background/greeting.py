"""The first line of a connection, from each side; after it flows what the connection is for.

    front end: {"version": "0.1.0", "secret": "...", "wants": "mcp"}
    service:   {"version": "0.1.0", "pid": 4711, ...}        or   {"refused": "why"}

What is wanted is `mcp` (the rest of the connection is a session of MCP), `report` (the service
describes itself and the connection ends), `page` (it answers with a link to its page, likewise),
`page in a file` (the same, and a file that takes a browser there), `http` (it listens for HTTP at
the `host` and `port` of the greeting as long as the connection lives, for those who show its
`token`), `work` (in place of `mcp`, where the shared embedding worker is met: frames that
`sharing/frames` describes), `call` (one question of a command, below) or `stop` (the service ends).

    front end: {"call": "search", "arguments": {...}}
    service:   {"progress": {...}}  as often as it likes, then
               {"result": ...}  or  {"error": "why, and what to do", "status": 1 or 2}

Standard library only.
"""

import json
import socket
from collections.abc import Mapping
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.errors import BackgroundError

MCP, HTTP, REPORT, PAGE, CALL, STOP = "mcp", "http", "report", "page", "call", "stop"
WORK = "work"
PAGE_IN_A_FILE = "page in a file"
LONGEST_LINE_BYTES = 65_536
LONGEST_CALL_BYTES = 1_000_000
WRONG_USE = 2
"""The status of an error of whoever asked; any other error has 1."""
ANSWER_SECONDS = 10.0
"""How long a service may take to answer on a machine that does much else."""


def hello(wants: str, secret: str, values: Mapping[str, Any] | None = None) -> bytes:
    """The front end's line, with the `values` that its wish takes."""
    return line({**(values or {}), "version": __version__, "secret": secret, "wants": wants})


def line(values: dict[str, Any]) -> bytes:
    """A line of the greeting."""
    return json.dumps(values).encode() + b"\n"


def parse(data: bytes) -> dict[str, Any]:
    """The values in a line of the greeting; empty if it is none."""
    try:
        values = json.loads(data)
    except (ValueError, RecursionError):  # too deep is no less wrong
        return {}
    return values if isinstance(values, dict) else {}


def greet(
    connection: socket.socket,
    wants: str,
    secret: str,
    patience: float = ANSWER_SECONDS,
    values: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Say hello as a front end and return the service's answer, if it comes within `patience`.

    Reads not a byte beyond the answer: the rest belongs to whoever relays.

    Raises:
        BackgroundError: If the service refuses.
        OSError: If the connection breaks, ends before the service has answered, or leads to
            another program.
    """
    connection.settimeout(patience)
    connection.sendall(hello(wants, secret, values))
    answer = bytearray()
    while not answer.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte or len(answer) > LONGEST_LINE_BYTES:
            raise ConnectionAbortedError("the background service ended before it answered")
        answer += byte
    connection.settimeout(None)
    values = parse(bytes(answer))
    if refused := values.get("refused"):
        raise BackgroundError(f"the background service refuses: {refused}")
    if not isinstance(values.get("pid"), int):  # its port may be another program's by now
        raise ConnectionAbortedError("what answers is not the background service")
    return values

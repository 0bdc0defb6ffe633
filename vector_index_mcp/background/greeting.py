"""The greeting: the first line from each side of a connection, which says what it is for.

    front end: {"version": "0.1.0", "nonce": "...", "proof": "...", "wants": "mcp"}
    service:   {"version": "0.1.0", "proof": "...", "pid": 4711, ...}
          or   {"version": "0.1.0", "proof": "...", "pid": 4711, "refused": "why"}

Each side proves that it knows the secret in the service's record, which only the user can read. The
secret itself is not sent: if the service has died, another user's program may have its port now.

If the versions differ, the front end ends the service and starts its own, unless the greeting has
`any_version`. The wish in `wants` is one of:

    mcp             the rest of the connection is an MCP session
    report          the service describes itself in its answer, and the connection ends
    page            the same, with a link to the service's page
    page in a file  the same, also with a file that opens the link in a browser
    http            the service listens for HTTP at the `host` and `port` of the greeting as long as
                    the connection lives; requests must have its `token`; `host_from` and
                    `port_from` name what the user gave the two with
    work            in place of `mcp`, for the shared embedding worker: frames, see `sharing/frames`
    call            one call of a command, as below
    stop            the service ends

After the greeting, a call goes like this:

    front end: {"call": "search", "arguments": {...}}
    service:   {"progress": {...}}  any number of times, then
               {"result": ...}  or  {"error": "why, and what to do", "status": 1 or 2}

Imports the standard library only.
"""

import hmac
import json
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.background import messages
from vector_index_mcp.errors import BackgroundError

MCP, HTTP, REPORT, PAGE, CALL, STOP = "mcp", "http", "report", "page", "call", "stop"
WORK = "work"
PAGE_IN_A_FILE = "page in a file"
LONGEST_LINE_BYTES = 65_536
LONGEST_CALL_BYTES = 1_000_000
WRONG_USE = 2
"""The status of an error that the caller made; all other errors have 1."""
ANSWER_SECONDS = 10.0
"""How long a service may take to answer, even on a busy machine."""


_FRONT_END, _SERVICE = "front end", "service"


def hello(
    wants: str, secret: str, values: Mapping[str, Any] | None = None, nonce: str = ""
) -> bytes:
    """The front end's line, with the further `values` that its wish needs."""
    proof = {"nonce": nonce, "proof": _proof(secret, _FRONT_END, nonce)}
    return line({**(values or {}), **proof, "version": __version__, "wants": wants})


def is_served(hello: Mapping[str, Any]) -> bool:
    """Whether the front end's line `hello` is of one that a service of this version serves."""
    return hello.get("version") == __version__ or hello.get("any_version") is True


def proof_for(hello: Mapping[str, Any], secret: str) -> dict[str, Any] | None:
    """What proves to a front end that we know the secret; None if it does not know it itself.

    Args:
        hello: The values of its line.
        secret: The service's.
    """
    nonce = hello.get("nonce")
    if not isinstance(nonce, str) or not _is_same(hello.get("proof"), secret, _FRONT_END, nonce):
        return None
    return {"proof": _proof(secret, _SERVICE, nonce)}


def _proof(secret: str, role: str, nonce: str) -> str:
    key, message = (text.encode("utf-8", "surrogatepass") for text in (secret, role + nonce))
    return hmac.digest(key, message, "sha256").hex()


def _is_same(given: Any, secret: str, role: str, nonce: str) -> bool:
    expected = _proof(secret, role, nonce)
    return isinstance(given, str) and given.isascii() and hmac.compare_digest(given, expected)


def line(values: dict[str, Any]) -> bytes:
    """Encode a line of the greeting."""
    return json.dumps(values).encode() + b"\n"


def greet(
    connection: socket.socket,
    wants: str,
    secret: str,
    patience: float = ANSWER_SECONDS,
    values: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Send the front end's line, and return the service's answer.

    Reads no byte beyond the answer: the rest of the connection belongs to the caller.

    Args:
        connection: The connection to the service.
        wants: The wish.
        secret: The secret in the service's record.
        patience: How many seconds to wait for the whole answer.
        values: Further values of the greeting.

    Raises:
        BackgroundError: If the service refuses.
        OSError: If the connection breaks, ends before the service has answered, or leads to
            another program.
    """
    deadline = time.monotonic() + patience
    connection.settimeout(patience)
    nonce = secrets.token_hex(16)
    connection.sendall(hello(wants, secret, values, nonce))
    answer = bytearray()
    while not answer.endswith(b"\n"):
        # Of the whole answer: a program that sends a byte now and then would keep us for ever. Not
        # 0, which would not wait at all.
        connection.settimeout(max(deadline - time.monotonic(), 0.001))
        byte = connection.recv(1)
        if not byte or len(answer) > LONGEST_LINE_BYTES:
            raise ConnectionAbortedError("the background service ended before it answered")
        answer += byte
    connection.settimeout(None)
    found = messages.parsed(bytes(answer))
    if not _is_same(found.pop("proof", None), secret, _SERVICE, nonce):
        raise ConnectionAbortedError("what answers is not the background service")
    if refused := found.get("refused"):
        raise BackgroundError(f"the background service refuses: {refused}")
    return found

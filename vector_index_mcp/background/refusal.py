"""Answers a client that cannot be served with the reason. Imports the standard library only.

If a server ends at once, MCP clients only report that the connection was closed. But they show the
user an error that answers their first request.
"""

import json
import os
import select
import time

_INTERNAL_ERROR = -32603  # JSON-RPC's code
_PATIENCE_SECONDS = 1.0  # for the first request, which clients send at once
_LONGEST_REQUEST_BYTES = 65_536


def answer(reason: str) -> None:
    """Answer the first request on standard input with an error, if one comes soon."""
    if os.name != "posix":  # Windows cannot wait for a pipe with a time limit
        return
    try:
        if os.isatty(0):
            return
        identity = _identity(_first_line())
        if identity is not None:
            error = {"code": _INTERNAL_ERROR, "message": reason}
            answer = {"jsonrpc": "2.0", "id": identity, "error": error}
            os.write(1, json.dumps(answer).encode() + b"\n")
    except OSError:  # nobody reads it
        return


def _first_line() -> bytes:
    data = b""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while b"\n" not in data and len(data) < _LONGEST_REQUEST_BYTES:
        left = max(0.0, deadline - time.monotonic())
        if not select.select([0], [], [], left)[0] or not (more := os.read(0, 4_096)):
            break
        data += more
    return data.partition(b"\n")[0]


def _identity(line: bytes) -> str | int | None:
    """The `id` of a request; None if the line is no request, or has no valid one."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        return None
    identity = request.get("id") if isinstance(request, dict) and "method" in request else None
    is_usable = isinstance(identity, (str, int)) and not isinstance(identity, bool)
    return identity if is_usable else None

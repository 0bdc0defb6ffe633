"""Answers a client that cannot be served with the reason. Imports the standard library only.

If a server ends at once, MCP clients only report that the connection was closed. But they show the
user an error that answers their first request.
"""

import os
import select
import time

from vector_index_mcp.background import messages

_PATIENCE_SECONDS = 1.0  # for the first request, which clients send at once
_LONGEST_REQUEST_BYTES = 65_536


def answer(reason: str) -> None:
    """Answer the first request on standard input with an error, if one comes soon."""
    if os.name != "posix":  # Windows cannot wait for a pipe with a time limit
        return
    try:
        if os.isatty(0):
            return
        message = messages.understood(_first_line())
        if message.identity:
            os.write(1, messages.refusal(message, reason))
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

"""What a front end must know of the messages that it carries: JSON-RPC, one message a line.

`parsed` also reads the lines of the greeting.

Pure functions; imports the standard library only.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

INITIALIZE, INITIALIZED = "initialize", "notifications/initialized"
PING = "ping"
CALL, LIST_TOOLS = "tools/call", "tools/list"
LISTEN = "subscriptions/listen"
"""Its answer is the end of a stream of notifications, in versions without sessions."""
LONGEST_BYTES = 64_000_000
"""No tool set takes longer messages; longer lines are carried in pieces, and not understood."""
_CANCELLED = "notifications/cancelled"
_TOOLS_CHANGED = "notifications/tools/list_changed"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
_VERSION = "io.modelcontextprotocol/protocolVersion"
_INTERNAL_ERROR = -32603  # JSON-RPC's code


class Message(NamedTuple):
    """What a client's message is."""

    method: str = ""
    """Empty for an answer, and for what is no message."""
    identity: str = ""
    """The request's id as JSON; empty if it is no request."""
    cancels: str = ""
    """The id of the request that it cancels, as JSON."""
    tool: str = ""
    """The name of the tool that it calls."""
    names_version: bool = False
    """Whether it names its version of the protocol, as all do since the version without sessions.
    Then a result must have a type."""


def lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    """The lines that `read` returns, each with its newline, until it returns nothing.

    A line that is too long comes in pieces, and so does a last line without its newline.
    """
    buffer = bytearray()
    while data := read():
        searched = len(buffer)
        buffer += data
        while end := buffer.find(b"\n", searched) + 1:
            yield bytes(buffer[:end])
            del buffer[:end]
            searched = 0
        if len(buffer) > LONGEST_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def understood(line: bytes) -> Message:
    """What the line of a client is."""
    values = parsed(line)
    method = values.get("method")
    if not isinstance(method, str):
        return Message()
    parameters = object_of(values.get("params"))
    if method == _CANCELLED:
        return Message(method, cancels=_identity(parameters.get("requestId")))
    names_version = _VERSION in object_of(parameters.get("_meta"))
    name = parameters.get("name") if method == CALL else ""
    tool = name if isinstance(name, str) else ""
    return Message(method, _identity(values.get("id")), tool=tool, names_version=names_version)


def answered(values: dict[str, Any]) -> str:
    """The id, as JSON, of the request that a service's message answers; empty if it does not."""
    return "" if "method" in values else _identity(values.get("id"))


def tools_changed(subscription: str = "") -> bytes:
    """The line that tells a client that the list of tools has changed.

    Args:
        subscription: The id of the client's request to listen, as JSON; empty in a version of the
            protocol with sessions.
    """
    note: dict[str, Any] = {"jsonrpc": "2.0", "method": _TOOLS_CHANGED}
    if subscription:
        note["params"] = {"_meta": {_SUBSCRIPTION: json.loads(subscription)}}
    return line_of(note)


def refusal(message: Message, reason: str) -> bytes:
    """The answer to a request that no service has answered.

    A call of a tool gets a result that says so, which clients show to the agent; of an error in
    terms of the protocol, many show the code alone.
    """
    if message.method == CALL:
        return result(message, {"content": [{"type": "text", "text": reason}], "isError": True})
    return _answer(message, {"error": {"code": _INTERNAL_ERROR, "message": reason}})


def result(message: Message, values: dict[str, Any]) -> bytes:
    """The line that answers a request with a result."""
    if message.names_version:
        values = {"resultType": "complete", **values}
    return _answer(message, {"result": values})


def _answer(message: Message, values: dict[str, Any]) -> bytes:
    return line_of({"jsonrpc": "2.0", "id": json.loads(message.identity), **values})


def line_of(values: dict[str, Any]) -> bytes:
    """The line with these values."""
    return json.dumps(values).encode() + b"\n"


def parsed(line: bytes) -> dict[str, Any]:
    """The values in a line; empty if it is no object of JSON."""
    try:
        return object_of(json.loads(line.decode("utf-8-sig")))  # as a service reads it
    except (ValueError, RecursionError):  # the latter: nested too deep
        return {}


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object of JSON; empty if not."""
    return value if isinstance(value, dict) else {}


def _identity(value: Any) -> str:
    is_usable = isinstance(value, (str, int)) and not isinstance(value, bool)
    return json.dumps(value) if is_usable else ""

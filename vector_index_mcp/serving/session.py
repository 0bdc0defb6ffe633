"""Serves one MCP session, and bounds what a broken or hostile client can cost.

An invalid message is answered with an error, and the session goes on. If a client has too many
requests under way, nothing more is read from it. If it takes no answers for minutes, its session
ends. Other clients do not notice any of this.
"""

import codecs
import contextlib
import json
import logging
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.abc
from mcp.server.lowlevel import NotificationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.message import ServerMessageMetadata, SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from vector_index_mcp.serving.transport import TooLong, ends_of, lines_of

_log = logging.getLogger(__name__)

# Once parsed, JSON values take 50 times their size, except strings. So a longer message is accepted
# only if it has at most so many bytes besides strings, and so many strings.
_MOST_BYTES_OF_VALUES = 1_000_000
_MOST_TEXTS = 10_000
_MOST_UNDER_WAY = 16
_MOST_BYTES_UNDER_WAY = 1_000_000
_PATIENCE_SECONDS = 300.0  # after which a client that takes no answers is given up
# How long what a client has asked for is still answered once it says no more, as at the end of a
# pipe. A client that has gone takes none of it.
_LAST_SECONDS = 6.0


# A part of a message that says what it is.
_MEMBER = re.compile(rb'\s*"(id|jsonrpc|method)"\s*:\s*("[^"\\]*"|-?[0-9]{1,18})\s*')


def _error(code: int, message: str, id_: RequestId | None = None) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=code, message=message))


_TOO_MANY = (
    f"a message may have at most {_MOST_BYTES_OF_VALUES} bytes besides strings, and "
    f"{_MOST_TEXTS} strings"
)
_NO_ID = _error(INVALID_REQUEST, "the id of a request must be a string or a whole number")


async def serve(
    server: MCPServer[Any],
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
    longest_message_bytes: int,
    *,
    outlives_service: bool = False,
) -> None:
    """Serve one session until its client ends it; `server` may serve many at once.

    Args:
        server: Answers the messages.
        receive: Returns the client's next bytes; empty at their end.
        send: Sends bytes to the client; drops them if the client is gone.
        longest_message_bytes: Longer messages are refused.
        outlives_service: Whether a front end goes on with it at another service, and tells the
            client if that one has other tools.
    """
    low = server._lowlevel_server
    changes = NotificationOptions(tools_changed=outlives_service)
    options = low.create_initialization_options(changes)
    outgoing, written = anyio.create_memory_object_stream[SessionMessage]()
    answers = _Answers(outgoing, _UnderWay())
    requests = _Requests(receive, longest_message_bytes, answers)
    async with outgoing, written, anyio.create_task_group() as tasks:

        async def write() -> None:
            async for message in written:
                with anyio.move_on_after(_PATIENCE_SECONDS) as patience:
                    await send(_line(message))
                if patience.cancelled_caught:
                    _log.warning("a client takes no answers any more; its session ends")
                    tasks.cancel_scope.cancel()

        tasks.start_soon(write)
        await low.run(requests, answers, options)


class _UnderWay:
    """The requests that are not answered yet; limits their number and their size together."""

    def __init__(self) -> None:
        self._sizes: defaultdict[RequestId, list[int]] = defaultdict(list)
        self._bytes = 0
        self._count = 0
        self._fewer = anyio.Event()

    async def admit(self, request: RequestId, size: int) -> None:
        """Wait until there is room for a request of `size` bytes; alone, it always has room."""
        while self._count and not self._has_room_for(size):
            await self._fewer.wait()
        self._sizes[request].append(size)
        self._count += 1
        self._bytes += size

    def settle(self, request: RequestId) -> None:
        """Note that a request is answered, or never will be."""
        # If a client uses an id twice at once, it does not matter which of the two this was.
        self._bytes -= self._sizes[request].pop()
        self._count -= 1
        if not self._sizes[request]:
            del self._sizes[request]
        self._fewer.set()
        self._fewer = anyio.Event()

    async def settled(self) -> None:
        """Wait until no request is under way."""
        while self._count:
            await self._fewer.wait()

    def _has_room_for(self, size: int) -> bool:
        return self._count < _MOST_UNDER_WAY and self._bytes + size <= _MOST_BYTES_UNDER_WAY


class _Answers(anyio.abc.ObjectSendStream[SessionMessage]):
    """Passes the server's messages to the client; each answer makes room for a request."""

    def __init__(
        self, outgoing: anyio.abc.ObjectSendStream[SessionMessage], under_way: _UnderWay
    ) -> None:
        self.under_way = under_way
        self._outgoing = outgoing

    async def send(self, item: SessionMessage) -> None:
        """Hand a message to the writer; waits until earlier messages are written."""
        await self._outgoing.send(item)
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self.under_way.settle(message.id)

    async def refuse(self, answer: JSONRPCError) -> None:
        """Answer an invalid message, which does not count as a request under way."""
        await self._outgoing.send(SessionMessage(answer))

    async def aclose(self) -> None:
        """Let the writer end after the remaining messages."""
        await self._outgoing.aclose()


class _Requests(anyio.abc.ObjectReceiveStream[SessionMessage | Exception]):
    """Parses the client's lines into messages."""

    def __init__(
        self, receive: Callable[[], Awaitable[bytes]], longest: int, answers: _Answers
    ) -> None:
        self._lines = lines_of(receive, longest)
        self._too_long = f"a message may have at most {longest} bytes"
        self._answers = answers

    async def receive(self) -> SessionMessage:
        """The next message, once there is room for it.

        Raises:
            anyio.EndOfStream: If there are no more, and all are answered.
        """
        async for line in self._lines:
            if isinstance(line, TooLong):
                await self._refuse_unread(self._too_long, line)
                continue
            if not is_cheap(line):
                await self._refuse_unread(_TOO_MANY, ends_of(line))
                continue
            line = line.removeprefix(codecs.BOM_UTF8)  # shells of Windows write one
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                await self._answers.refuse(_refusal(line))
                continue
            if isinstance(message, JSONRPCNotification) and _has_id(line):
                await self._answers.refuse(_NO_ID)
                continue
            if not isinstance(message, JSONRPCRequest):
                return SessionMessage(message)
            request, under_way = message.id, self._answers.under_way
            await under_way.admit(request, len(line))

            async def settle() -> None:
                under_way.settle(request)  # noqa: B023 - the loop ends with this message

            return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=settle))
        with anyio.move_on_after(_LAST_SECONDS):
            await self._answers.under_way.settled()
        raise anyio.EndOfStream

    async def _refuse_unread(self, reason: str, ends: TooLong) -> None:
        await self._answers.refuse(_error(INVALID_REQUEST, reason, _id_of_unread(ends)))

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def is_cheap(
    message: bytes, most_bytes: int = _MOST_BYTES_OF_VALUES, most_texts: int = _MOST_TEXTS
) -> bool:
    """Whether parsing a message takes little memory: it is short, or consists mostly of strings.

    Args:
        message: The message, as JSON.
        most_bytes: How many bytes it may have besides strings.
        most_texts: How many strings it may have if it has more bytes than that.
    """
    if len(message) <= most_bytes:
        return True
    plain = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * most_texts:
        return False
    return sum(map(len, plain.split(b'"')[::2])) <= most_bytes


def _id_of_unread(ends: TooLong) -> RequestId | None:
    """The id of a request that is not parsed, if it stands first or last, as libraries write it.

    Without it, the client could not tell which request is refused, and would wait for its answer.
    """
    found: dict[bytes, bytes] = {}
    first = ends.start.lstrip().removeprefix(b"{").split(b",")[:-1]
    last = ends.end.rstrip().removesuffix(b"}").split(b",")[:0:-1]
    for pieces in (first, last):
        for piece in pieces:
            if (member := _MEMBER.fullmatch(piece)) is None:
                break
            found[member[1]] = member[2]
    if b"method" not in found or b"id" not in found:
        return None
    with contextlib.suppress(ValueError):
        id_: RequestId = json.loads(found[b"id"])
        return id_
    return None


def _has_id(line: bytes) -> bool:
    """Whether a message has an id, be it one that no request may have."""
    return b"id" in line and "id" in json.loads(line)


def examined(body: bytes) -> tuple[RequestId | None, bytes | None]:
    """The id of the request in a body over HTTP, and the answer if it is no valid message.

    The library would quote Pydantic, and never answer a request with an id that none may have,
    since it takes that for a notification.

    Returns:
        An id only of a valid request; an answer only to what is no valid message.
    """
    try:
        message = jsonrpc_message_adapter.validate_json(body, by_name=False)
    except ValidationError:
        refusal = _refusal(body)
    else:
        if isinstance(message, JSONRPCRequest):
            return message.id, None
        if not isinstance(message, JSONRPCNotification) or not _has_id(body):
            return None, None
        refusal = _NO_ID
    return None, refusal.model_dump_json(by_alias=True, exclude_unset=True).encode()


def _refusal(line: bytes) -> JSONRPCError:
    """The answer to an invalid message, with its id if it has one."""
    try:
        values = json.loads(line.decode())  # from bytes, it would read UTF-16 as well
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "a message must be JSON in UTF-8 (over stdio, on one line)")
    error = _error(INVALID_REQUEST, "this is no valid message of JSON-RPC 2.0")
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        error = _error(
            INVALID_REQUEST, "a string has half of a surrogate pair, such as \\ud83d; send it whole"
        )
    if isinstance(values, dict):
        answer = error.model_dump(exclude_unset=True) | {"id": values.get("id")}
        with contextlib.suppress(ValidationError):  # the id may be invalid, too
            return JSONRPCError.model_validate_json(json.dumps(answer))
    return error


def _line(message: SessionMessage) -> bytes:
    try:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:  # a file's name may be invalid Unicode
        values = message.message.model_dump(by_alias=True, exclude_unset=True)
        text = json.dumps(values, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"

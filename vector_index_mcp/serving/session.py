"""One session of MCP with a client that may be broken: whatever it sends, it costs little.

What is no message is answered by an error, and the session goes on. A client may have so many
requests under way; beyond that it is not read any further, until its own pipe is full. One that
takes no answers for minutes is given up. The other clients notice nothing of all that.
"""

import contextlib
import json
import logging
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
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from vector_index_mcp.serving.transport import lines_of

_log = logging.getLogger(__name__)

# Parsed values take 50 times their size, texts do not: a longer message must be made of texts.
_MOST_BYTES_OF_VALUES = 1_000_000
_MOST_TEXTS = 10_000  # in such a message
_MOST_UNDER_WAY = 16
_MOST_BYTES_UNDER_WAY = 1_000_000
_PATIENCE_SECONDS = 300.0  # with a client that takes no answers


def _error(code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=None, error=ErrorData(code=code, message=message))


_TOO_MANY = _error(
    INVALID_REQUEST,
    f"a message has {_MOST_BYTES_OF_VALUES} bytes at most besides texts, and {_MOST_TEXTS} texts",
)


async def serve(
    server: MCPServer[Any],
    receive: Callable[[], Awaitable[bytes]],
    send: Callable[[bytes], Awaitable[None]],
    longest_message_bytes: int,
) -> None:
    """Serve one session until its client ends it; `server` may serve many at once.

    Args:
        server: What answers.
        receive: Gives the client's next bytes; none when there are no more.
        send: Takes bytes for the client; those for one that is gone are dropped.
        longest_message_bytes: A longer one is refused.
    """
    low = server._lowlevel_server
    options = low.create_initialization_options(NotificationOptions())
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
    """The requests that are not answered yet: not too many at once, and not too large."""

    def __init__(self) -> None:
        self._sizes: defaultdict[RequestId, list[int]] = defaultdict(list)
        self._bytes = 0
        self._count = 0
        self._fewer = anyio.Event()

    async def admit(self, request: RequestId, size: int) -> None:
        """Wait until there is room for a request of `size` bytes; a single one always has it."""
        while self._count and not self._has_room_for(size):
            await self._fewer.wait()
        self._sizes[request].append(size)
        self._count += 1
        self._bytes += size

    def settle(self, request: RequestId) -> None:
        """Note that a request is answered, or never will be."""
        # A client may use an id twice at once: which of the two this was makes no difference.
        self._bytes -= self._sizes[request].pop()
        self._count -= 1
        if not self._sizes[request]:
            del self._sizes[request]
        self._fewer.set()
        self._fewer = anyio.Event()

    def _has_room_for(self, size: int) -> bool:
        return self._count < _MOST_UNDER_WAY and self._bytes + size <= _MOST_BYTES_UNDER_WAY


class _Answers(anyio.abc.ObjectSendStream[SessionMessage]):
    """What the server says, on its way to the client; its answers make room for requests."""

    def __init__(
        self, outgoing: anyio.abc.ObjectSendStream[SessionMessage], under_way: _UnderWay
    ) -> None:
        self.under_way = under_way
        self._outgoing = outgoing

    async def send(self, item: SessionMessage) -> None:
        """Hand over a message; waits until those before it are written."""
        await self._outgoing.send(item)
        message = item.message
        if isinstance(message, JSONRPCResponse | JSONRPCError) and message.id is not None:
            self.under_way.settle(message.id)

    async def refuse(self, answer: JSONRPCError) -> None:
        """Answer what is no request; nothing is under way for it."""
        await self._outgoing.send(SessionMessage(answer))

    async def aclose(self) -> None:
        """Let the writer end when it has written what is left."""
        await self._outgoing.aclose()


class _Requests(anyio.abc.ObjectReceiveStream[SessionMessage | Exception]):
    """What the client says, as messages."""

    def __init__(
        self, receive: Callable[[], Awaitable[bytes]], longest: int, answers: _Answers
    ) -> None:
        self._lines = lines_of(receive, longest)
        self._too_long = _error(INVALID_REQUEST, f"a message has {longest} bytes at most")
        self._answers = answers

    async def receive(self) -> SessionMessage:
        """The next message, once there is room for it.

        Raises:
            anyio.EndOfStream: If there are no more.
        """
        async for line in self._lines:
            if line is None or not _is_cheap(line):
                await self._answers.refuse(self._too_long if line is None else _TOO_MANY)
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                await self._answers.refuse(_refusal(line))
                continue
            if not isinstance(message, JSONRPCRequest):
                return SessionMessage(message)
            request, under_way = message.id, self._answers.under_way
            await under_way.admit(request, len(line))

            async def settle() -> None:
                under_way.settle(request)  # noqa: B023 - the loop ends with this message

            return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=settle))
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Nothing is held."""


def _is_cheap(line: bytes) -> bool:
    """Whether a message can be parsed in about its own size: it is short, or made of texts."""
    if len(line) <= _MOST_BYTES_OF_VALUES:
        return True
    plain = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    if plain.count(b'"') > 2 * _MOST_TEXTS:
        return False
    return sum(map(len, plain.split(b'"')[::2])) <= _MOST_BYTES_OF_VALUES


def _refusal(line: bytes) -> JSONRPCError:
    """The answer to what is no message, with its id if it has one."""
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return _error(PARSE_ERROR, "a message is one line of JSON in UTF-8")
    error = _error(INVALID_REQUEST, "this is no message of JSON-RPC 2.0")
    if isinstance(values, dict):
        answer = error.model_dump(exclude_unset=True) | {"id": values.get("id")}
        with contextlib.suppress(ValidationError):  # an id may be wrong, too
            return JSONRPCError.model_validate_json(json.dumps(answer))
    return error


def _line(message: SessionMessage) -> bytes:
    try:
        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:  # a file's name need not be valid Unicode
        values = message.message.model_dump(by_alias=True, exclude_unset=True)
        text = json.dumps(values, ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"

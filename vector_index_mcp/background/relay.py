"""The front end: finds the service or starts it, then carries messages between client and service.

An MCP client starts one for each session, so it must cost next to nothing: it imports only the
standard library. It ends when the client does. If the service ends first, the session goes on: what
was under way is answered with the reason, and the client's next request goes to a new service.
"""

import contextlib
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from vector_index_mcp.background import contact, greeting, launching, messages
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.background.messages import Message
from vector_index_mcp.errors import BackgroundError, VectorIndexError

_CHUNK_BYTES = 65_536
_LAST_ANSWERS_SECONDS = 10.0  # without an answer, after the client has closed its output
_ENDED = "the background service was stopped before it answered"
_LEFT = "the client left before the background service answered"
# A service that died may have done what it was asked, and clients may not ask again by themselves.
_AGAIN = "; ask again, but if you asked for a change, first check whether it was made"


def run(
    endpoint: Endpoint,
    host_arguments: Sequence[str],
    at_new_service: Callable[[], None] = lambda: None,
) -> int:
    """Carry messages between the standard streams and a service until the client ends.

    Args:
        endpoint: The endpoint of the service, whether it runs or not.
        host_arguments: The command line's arguments to start a service with.
        at_new_service: Called, in another thread, when a service has taken the place of one that
            ended.

    Returns:
        The exit status.

    Raises:
        BackgroundError: If no service can be started at first, with the reason.
        SettingsError: If a setting is wrong.
    """
    service = _Service(endpoint, host_arguments)
    _Session(service, at_new_service).run()
    return 0


class _Service:
    """A connection to a service for an MCP session."""

    def __init__(
        self, endpoint: Endpoint, host_arguments: Sequence[str], *, any_version: bool = False
    ) -> None:
        """Connect to the service; start it if there is none.

        Args:
            endpoint: The endpoint of the service.
            host_arguments: The arguments to start a service with.
            any_version: Whether a service of another version will do; else it is replaced.

        Raises:
            BackgroundError: If no service can be started, with the reason.
            SettingsError: If a setting is wrong.
        """
        self._endpoint = endpoint
        self._host_arguments = host_arguments
        self._connection, answer = contact.granted(
            endpoint, host_arguments, greeting.MCP, any_version=any_version
        )
        self._input = self._connection.makefile("rb", _CHUNK_BYTES)
        self._pid = answer.get("pid")
        self._last_heard = 0.0

    def next(self, handshake: Iterable[bytes]) -> "_Service":
        """A connection that takes the place of this one, which has ended.

        It may be to a service of another version: two front ends of different versions would end
        each other's services for ever.

        Args:
            handshake: The client's messages that began the session. It has their answers already.

        Raises:
            BackgroundError: If no service can be started, or it ends at once, with the reason.
            SettingsError: If a setting is wrong.
        """
        self._close()
        service = _Service(self._endpoint, self._host_arguments, any_version=True)
        service._connection.settimeout(greeting.ANSWER_SECONDS)
        for line in handshake:
            service.send(line)
            if (identity := messages.understood(line).identity) and not service._answers(identity):
                service._close()
                raise BackgroundError(service.reason_of_end())
        service._connection.settimeout(None)
        return service

    def _close(self) -> None:
        self._input.close()
        self._connection.close()

    def _answers(self, identity: str) -> bool:
        return any(messages.answered(line) == identity for line in self.lines())

    def send(self, data: bytes) -> None:
        """Send bytes, unless the service has ended, which `lines` notices."""
        with contextlib.suppress(OSError):
            self._connection.sendall(data)

    def lines(self) -> Iterator[bytes]:
        """The service's messages until it ends."""
        with contextlib.suppress(OSError):
            for line in self._input:
                self._last_heard = time.monotonic()
                if line.endswith(b"\n"):  # else it died while it wrote
                    yield line

    def leave(self) -> None:
        """Tell the service that no more comes; wait while it still answers what is under way."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._last_heard = time.monotonic()
            while (left := self._last_heard + _LAST_ANSWERS_SECONDS - time.monotonic()) > 0:
                time.sleep(left)
            # A timeout of the connection would not end a wait for an answer that has begun.
            self._connection.shutdown(socket.SHUT_RDWR)

    def reason_of_end(self) -> str:
        """Why the service has ended."""
        return contact.reason_of_end(self._endpoint, self._pid) or _ENDED


class _Session:
    """The session of a client, which may outlive the service that answers it.

    The main thread passes on what services say; another one what the client says, and connects to
    the next service when that is needed.
    """

    def __init__(self, service: _Service, at_new_service: Callable[[], None]) -> None:
        self._at_new_service = at_new_service
        self._handshake: dict[str, bytes] = {}
        self._services: queue.SimpleQueue[_Service | None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._changing = threading.Lock()  # of what follows
        self._last = service
        self._service: _Service | None = None
        self._under_way: dict[str, Message] = {}
        self._has_left = False

    def run(self) -> None:
        """Carry messages until the client ends."""
        self._use(self._last, Message())
        launching.in_background(self._listen_to_client)
        while service := self._services.get():
            for line in service.lines():
                if not self._pass_on(line):
                    return
            self._answer_what_is_left()

    def _use(self, service: _Service, message: Message) -> None:
        """Pass on what a service says from now on; `message` is the first one for it."""
        with self._changing:
            self._last = self._service = service
            self._note(message)
        self._services.put(service)

    def _note(self, message: Message) -> None:
        if message.identity:
            self._under_way[message.identity] = message
        self._under_way.pop(message.cancels, None)

    def _pass_on(self, line: bytes) -> bool:
        """Give a message of the service to the client; False if the client reads no more."""
        if identity := messages.answered(line):
            with self._changing:
                self._under_way.pop(identity, None)
        return self._write(line)

    def _answer_what_is_left(self) -> None:
        """Answer what was under way at a service that has ended."""
        with self._changing:
            under_way, self._under_way = self._under_way, {}
            service, self._service = self._last, None
            has_left = self._has_left
        if under_way:
            reason = _LEFT if has_left else service.reason_of_end()
            for message in under_way.values():
                self._write(messages.refusal(message, reason + _AGAIN))
        if has_left:
            self._services.put(None)

    def _listen_to_client(self) -> None:
        try:
            for line in messages.lines(_read):
                message = messages.understood(line)
                if message.method == messages.INITIALIZE:
                    self._handshake.clear()  # it begins the session anew
                if service := self._service_for(message):
                    service.send(line)
                if message.method in (messages.INITIALIZE, messages.INITIALIZED):
                    self._handshake[message.method] = line
        finally:
            with self._changing:
                self._has_left = True
                service = self._service
            if service is None:
                self._services.put(None)
            else:
                service.leave()

    def _service_for(self, message: Message) -> _Service | None:
        """The service to send a message to; None if it needs none, or none can be had."""
        with self._changing:
            if self._service:
                self._note(message)
                return self._service
        if not message.identity:  # it is about something that has ended with the service
            return None
        if message.method == messages.PING:
            self._write(messages.result(message, {}))
            return None
        try:
            service = self._last.next(self._handshake.values())
        except VectorIndexError as error:
            self._write(messages.refusal(message, str(error)))
            return None
        self._use(service, message)
        self._at_new_service()
        return service

    def _write(self, data: bytes) -> bool:
        """Write to the client; False if it reads no more."""
        view = memoryview(data)
        with self._writing:
            while view:
                try:
                    view = view[os.write(1, view) :]
                except OSError:
                    return False
        return True


def _read() -> bytes:
    try:
        return os.read(0, _CHUNK_BYTES)
    except OSError:
        return b""

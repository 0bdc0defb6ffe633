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
from collections.abc import Callable, Iterator, Sequence

from vector_index_mcp.background import contact, greeting, launching, messages
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.background.messages import Message
from vector_index_mcp.errors import BackgroundError, VectorIndexError

_CHUNK_BYTES = 65_536
_LAST_ANSWERS_SECONDS = 10.0  # for answers under way after the client has closed its output
_STOPPED = "the background service was stopped before it answered"
_AGAIN = "; the next call starts it again"


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
        BackgroundError: If no service can be started, or it ends by an error before it has
            answered anything, with the reason.
        SettingsError: If a setting is wrong.
    """
    service = _Service(endpoint, host_arguments)
    return _Session(service, at_new_service).run()


class _Service:
    """A connection to a service for an MCP session."""

    def __init__(
        self, endpoint: Endpoint, host_arguments: Sequence[str], former: "_Service | None" = None
    ) -> None:
        """Connect to the service; start it if there is none.

        Args:
            endpoint: The endpoint of the service.
            host_arguments: The arguments to start a service with.
            former: The connection whose place this takes, if there is one. Then a service of
                another version is welcome: two front ends of different versions would end each
                other's services for ever.

        Raises:
            BackgroundError: If no service can be started, with the reason.
            SettingsError: If a setting is wrong.
        """
        self._endpoint = endpoint
        self._host_arguments = host_arguments
        self._connection, answer = contact.granted(
            endpoint, host_arguments, greeting.MCP, any_version=former is not None
        )
        self._input = self._connection.makefile("rb", _CHUNK_BYTES)
        self._pid = answer.get("pid")

    def next(self, handshake: Sequence[bytes]) -> "_Service":
        """A connection that takes the place of this one, which has ended.

        Args:
            handshake: The client's messages that begin a session. It has their answers already.

        Raises:
            BackgroundError: If no service can be started, or it ends at once, with the reason.
            SettingsError: If a setting is wrong.
        """
        service = _Service(self._endpoint, self._host_arguments, self)
        service._connection.settimeout(greeting.ANSWER_SECONDS)
        for line in handshake:
            service.send(line)
            if (identity := messages.understood(line).identity) and not service._answers(identity):
                service._connection.close()
                raise BackgroundError(service.reason_of_end() or _STOPPED)
        service._connection.settimeout(None)
        return service

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
                if line.endswith(b"\n"):  # else it died while it wrote
                    yield line

    def leave(self) -> None:
        """Tell the service that no more comes; it may still answer what is under way."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self._connection.settimeout(_LAST_ANSWERS_SECONDS)

    def reason_of_end(self) -> str:
        """Why the service has ended; empty if it was meant to end."""
        return contact.reason_of_end(self._endpoint, self._pid)


class _Session:
    """The session of a client, which may outlive the service that answers it.

    The main thread passes on what services say; another one what the client says, and connects to
    the next service when that is needed.
    """

    def __init__(self, service: _Service, at_new_service: Callable[[], None]) -> None:
        self._last = service
        self._at_new_service = at_new_service
        self._services: queue.SimpleQueue[_Service | None] = queue.SimpleQueue()
        self._handshake: dict[str, bytes] = {}
        self._has_answers = False
        self._failure: VectorIndexError | None = None
        self._writing = threading.Lock()
        self._changing = threading.Lock()  # of what follows
        self._service: _Service | None = None
        self._under_way: dict[str, Message] = {}
        self._has_left = False

    def run(self) -> int:
        """Carry messages until the client ends; returns the exit status.

        Raises:
            BackgroundError: As `relay.run` does.
        """
        self._use(self._last)
        launching.in_background(self._listen_to_client)
        while service := self._services.get():
            for line in service.lines():
                if not self._pass_on(line):
                    return 0
            if self._is_over():
                return 0
        if self._failure is not None:
            raise self._failure
        return 0

    def _use(self, service: _Service) -> None:
        with self._changing:
            self._last = self._service = service
        self._services.put(service)

    def _pass_on(self, line: bytes) -> bool:
        """Give a message of the service to the client; False if the client reads no more."""
        if identity := messages.answered(line):
            self._has_answers = True
            with self._changing:
                self._under_way.pop(identity, None)
        return self._write(line)

    def _is_over(self) -> bool:
        """Answer what was under way at a service that has ended; whether the session ends, too.

        Raises:
            BackgroundError: If the service ended by an error before it had answered anything.
        """
        with self._changing:
            under_way, self._under_way = self._under_way, {}
            service, self._service = self._last, None
            has_left = self._has_left
        if under_way:
            reason = service.reason_of_end()
            for message in under_way.values():
                self._write(messages.refusal(message, (reason or _STOPPED) + _AGAIN))
            if reason and not self._has_answers:
                raise BackgroundError(reason)
        return has_left

    def _listen_to_client(self) -> None:
        try:
            for line in messages.lines(_read):
                if self._failure is not None:
                    break
                message = messages.understood(line)
                if message.method in (messages.INITIALIZE, messages.INITIALIZED):
                    self._handshake[message.method] = line
                if service := self._service_for(message):
                    service.send(line)
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
        while not (service := self._at_service(message)):
            if message.method == messages.PING:
                self._write(messages.result(message, {}))
                return None
            if not message.identity:  # it is about something that has ended with the service
                return None
            try:
                self._use(self._last.next(list(self._handshake.values())))
            except VectorIndexError as error:
                self._write(messages.refusal(message, str(error)))
                if not self._has_answers:
                    self._failure = error
                    self._services.put(None)
                return None
            self._at_new_service()
        return service

    def _at_service(self, message: Message) -> _Service | None:
        """The service, at which a request is under way from now on; None if it has ended."""
        with self._changing:
            if self._service and message.identity:
                self._under_way[message.identity] = message
            self._under_way.pop(message.cancels, None)
            return self._service

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

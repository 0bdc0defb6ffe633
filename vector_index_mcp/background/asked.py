"""What a client has asked: what began its session, and what a service has yet to answer.

Several threads of a front end use both. Imports the standard library only.
"""

import threading
import time
from dataclasses import dataclass, field

from vector_index_mcp.background import messages
from vector_index_mcp.background.connection import Connection
from vector_index_mcp.background.messages import Message


@dataclass(slots=True)
class Request:
    """A message of the client; one without an id needs no answer."""

    message: Message
    line: bytes
    service: Connection | None = None
    """The service that it was sent to last."""
    is_read: bool = False
    """Whether that service may have read it."""
    since: float = field(default_factory=time.monotonic)
    """When it came; a time of the monotonic clock."""
    is_repeated: bool = False
    is_held: bool = False
    """Whether it waits until another request needs a service."""

    @property
    def listens(self) -> bool:
        """Whether it asks for notifications, for as long as the session lasts."""
        return self.message.method == messages.LISTEN

    def repeat(self) -> None:
        """Note that the next service is sent it, too. It is sent once more, not for ever."""
        self.is_held, self.is_repeated = self.listens, not self.listens


class UnderWay:
    """The requests that a service has been sent and has not answered."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, Request] = {}
        self._given_up: set[str] = set()
        self._has_more = threading.Event()

    def add(self, request: Request) -> None:
        """Note a request that is about to be sent."""
        with self._lock:
            self._requests[request.message.identity] = request
        self._has_more.set()

    def wait_for_more(self) -> None:
        """Wait until a request has been added since the last call."""
        self._has_more.wait()
        self._has_more.clear()

    def cancel(self, identity: str) -> None:
        """Forget a request that the client has cancelled."""
        with self._lock:
            self._requests.pop(identity, None)

    def take(self, identity: str) -> Request | None:
        """Remove and return the request that a service has answered; None if it is unknown."""
        with self._lock:
            return self._requests.pop(identity, None)

    def take_all(self) -> dict[str, Request]:
        """Remove and return all requests, by their ids as JSON: their service has ended."""
        with self._lock:
            requests, self._requests = self._requests, {}
            self._given_up.clear()
            return requests

    def give_up(self, service: Connection) -> list[Request]:
        """Remove and return what waits for a service; its late answers are to be dropped."""
        with self._lock:
            waiting = [each for each in self._waiting() if each.service is service]
            for request in waiting:
                del self._requests[request.message.identity]
                self._given_up.add(request.message.identity)
            return waiting

    def pass_over(self, identity: str) -> bool:
        """Return True, once, if the answer comes too late because the client has had another."""
        with self._lock:
            is_late = identity in self._given_up
            self._given_up.discard(identity)
            return is_late

    @property
    def oldest(self) -> float | None:
        """When the oldest request came, by the monotonic clock; None if nothing waits."""
        with self._lock:
            return min((each.since for each in self._waiting()), default=None)

    @property
    def listeners(self) -> dict[str, bytes]:
        """The lines of the requests for notifications, by their ids as JSON."""
        with self._lock:
            return {key: each.line for key, each in self._requests.items() if each.listens}

    def _waiting(self) -> list[Request]:
        return [each for each in self._requests.values() if not each.listens]


class Handshake:
    """The messages with which the client began its session."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lines: dict[str, bytes] = {}

    def note(self, message: Message, line: bytes) -> None:
        """Note a message of the client if it belongs to the handshake."""
        with self._lock:
            if message.method == messages.INITIALIZE:
                self._lines.clear()  # it begins the session anew
            elif message.method == messages.INITIALIZED:
                self._lines[message.method] = line

    def agree(self, request: Request) -> None:
        """Note that a service has accepted the request that begins the session."""
        with self._lock:
            self._lines[messages.INITIALIZE] = request.line

    @property
    def lines(self) -> list[bytes]:
        """What begins the session with another service; nothing if none has agreed to it."""
        with self._lock:
            if messages.INITIALIZE not in self._lines:
                return []
            lines = map(self._lines.get, (messages.INITIALIZE, messages.INITIALIZED))
            return [line for line in lines if line]

    @property
    def end(self) -> bytes:
        """The client's `notifications/initialized`; empty if it has not sent it."""
        with self._lock:
            return self._lines.get(messages.INITIALIZED, b"")

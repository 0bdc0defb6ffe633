"""A front end's connection to a service, for the MCP session of one client.

Imports the standard library only.
"""

import contextlib
import socket
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from vector_index_mcp.background import contact, greeting, messages
from vector_index_mcp.background.endpoint import HAS_UNIX_SOCKETS, Endpoint
from vector_index_mcp.errors import BackgroundError

_CHUNK_BYTES = 65_536
_LAST_ANSWERS_SECONDS = 10.0  # without an answer, after the client has closed its output
_ENDED = "the background service was stopped before it answered"


class Connection:
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
        self.last_heard = time.monotonic()
        """When it said something last; a time of the monotonic clock."""
        self.is_left_unread = False
        """Whether it has ended before it read the last bytes that it was sent."""

    def next(self, handshake: Iterable[bytes]) -> "Connection":
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
        service = Connection(self._endpoint, self._host_arguments, any_version=True)
        for line in handshake:
            service.send(line)
            if identity := messages.understood(line).identity:
                service.answer(identity)
        return service

    def _close(self) -> None:
        self._input.close()
        self._connection.close()

    def asked(self, line: bytes) -> dict[str, Any]:
        """The answer to a question of ours, before the client uses this connection.

        Raises:
            BackgroundError: If there is none, with the reason.
        """
        self.send(line)
        return self.answer(messages.understood(line).identity)

    def answer(self, identity: str) -> dict[str, Any]:
        """The answer to the request with this id; what comes before it is dropped.

        Raises:
            BackgroundError: If there is none, with the reason.
        """
        self._connection.settimeout(greeting.ANSWER_SECONDS)
        for line in self.lines():
            values = messages.parsed(line)
            if messages.answered(values) == identity:
                self._connection.settimeout(None)
                return values
        self._close()
        raise BackgroundError(self.reason_of_end())

    def send(self, data: bytes) -> bool:
        """Send bytes; False if the service cannot have read all of them, and is sent no more."""
        try:
            self._connection.sendall(data)
        except OSError:
            with contextlib.suppress(OSError):  # half a message may be sent: nothing can follow it
                self._connection.shutdown(socket.SHUT_WR)
            return False
        return True

    def lines(self) -> Iterator[bytes]:
        """The service's messages until it ends."""
        try:
            for line in self._input:
                self.last_heard = time.monotonic()
                if line.endswith(b"\n"):  # else it died while it wrote
                    yield line
        except ConnectionResetError:
            # A Unix socket is reset only if unread bytes were left, a TCP socket by any sudden end.
            self.is_left_unread = HAS_UNIX_SOCKETS
        except OSError:
            return

    def shut(self) -> None:
        """Have whoever still sends on this connection give up."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def leave(self) -> None:
        """Tell the service that no more comes; wait while it still answers what is under way."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            self.last_heard = time.monotonic()
            while (left := self.last_heard + _LAST_ANSWERS_SECONDS - time.monotonic()) > 0:
                time.sleep(left)
            # A timeout of the connection would not end a wait for an answer that has begun.
            self._connection.shutdown(socket.SHUT_RDWR)

    def hangs(self, patience: float) -> bool:
        """Whether the service does not even answer a new connection within `patience` seconds."""
        if contact.hangs(self._endpoint, patience):
            return True
        self.last_heard = time.monotonic()
        return False

    def reason_of_silence(self) -> str:
        """What to tell a client whose service hangs."""
        return contact.reason_of_silence(self._endpoint)

    def reason_of_end(self) -> str:
        """Why the service has ended."""
        return contact.reason_of_end(self._endpoint, self._pid) or _ENDED

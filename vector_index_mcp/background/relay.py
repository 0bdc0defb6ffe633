"""The front end: finds the service or starts it, then carries messages between client and service.

An MCP client starts one for each session, so it must cost next to nothing: it imports only the
standard library. It ends when the client does. If the service ends first, the session goes on: the
client's next request goes to a new service. A request under way is sent once more if the former
service cannot have read it, or if it changes nothing; any other is answered with an error. So are
requests to a service that hangs, because many clients would wait for ever.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Sequence

from vector_index_mcp.background import launching, messages
from vector_index_mcp.background.asked import Handshake, Request, UnderWay
from vector_index_mcp.background.catalogue import Catalogue
from vector_index_mcp.background.connection import Connection
from vector_index_mcp.background.contact import PATIENCE_SECONDS, PERHAPS_DONE, SILENT_SECONDS
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.errors import SYSTEM_ERRORS, VectorIndexError, sentence

_CHUNK_BYTES = 65_536
# Of requests while there is no service; then no more are read.
_MOST_WAITING, _MOST_WAITING_BYTES = 256, 1_000_000
_LEFT = "the client left before the background service answered"
_AGAIN = "; ask again"


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
    service = Connection(endpoint, host_arguments)
    _Session(service, at_new_service).run()
    return 0


class _Session:
    """The session of a client, which may outlive the service that answers it.

    The main thread passes on what services say, another one what the client says, and a third one
    connects to the next service when a request needs one. Meanwhile, requests wait. A fourth one
    looks whether a service hangs.
    """

    def __init__(self, service: Connection, at_new_service: Callable[[], None]) -> None:
        self._at_new_service = at_new_service
        self._catalogue = Catalogue()
        self._services: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._renewals: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._writing = threading.Lock()
        self._under_way = UnderWay()
        self._handshake = Handshake()
        # Guards all fields below. Held while a service is sent something, which may take long.
        self._sending = threading.Condition()
        self._last = service
        self._service: Connection | None = service
        self._last_sent = ""
        self._waiting: dict[str, Request] = {}
        self._is_renewing = False
        self._has_left = False

    def run(self) -> None:
        """Carry messages until the client ends."""
        self._services.put(self._last)
        launching.in_background(self._renew_when_needed)
        launching.in_background(self._listen_to_client)
        launching.in_background(self._watch_over_silence)
        while service := self._services.get():
            for line in service.lines():
                if not self._pass_on(line):
                    return
            self._settle(service)

    # -- from the service -----------------------------------------------------------------------

    def _pass_on(self, line: bytes) -> bool:
        """Give a message of the service to the client; False if the client reads no more."""
        values = messages.parsed(line)
        identity = messages.answered(values)
        if self._under_way.pass_over(identity):
            return True
        if request := self._under_way.take(identity):
            if request.message.method == messages.INITIALIZE and "result" in values:
                self._handshake.agree(request)
            self._catalogue.note(request.message, request.line, values)
        return self._write(line)

    def _settle(self, service: Connection) -> None:
        """Answer what was under way at a service that has ended, or have the next one answer it."""
        service.shut()
        with self._sending:
            under_way = self._under_way.take_all()
            if service.is_left_unread and self._last_sent in under_way:
                under_way[self._last_sent].is_read = False
            self._service, has_left = None, self._has_left
            self._is_renewing = True  # this thread sees to it, once it knows the reason
            again = [] if has_left else [r for r in under_way.values() if self._may_repeat(r)]
            for request in again:
                request.repeat()
            self._waiting = {request.message.identity: request for request in again}
            self._sending.notify_all()
            refused = [each for key, each in under_way.items() if key not in self._waiting]
        for request in refused:
            if request.message.method == messages.PING:  # which needs no service
                self._write(messages.result(request.message, {}))
        refused = [each for each in refused if each.message.method != messages.PING]
        if refused:
            reason = _LEFT if has_left else service.reason_of_end()
            for request in refused:
                self._refuse(request, reason + self._what_to_do(request))
        with self._sending:
            self._is_renewing = False
            self._renew_if_needed()
            if self._has_left and not self._is_renewing:
                self._services.put(None)

    def _may_repeat(self, request: Request) -> bool:
        """Whether the next service may be sent it, too."""
        if request.is_repeated or request.message.method == messages.PING:
            return False
        return not request.is_read or not self._may_change(request)

    def _may_change(self, request: Request) -> bool:
        message = request.message
        return message.method == messages.CALL and not self._catalogue.only_reads(message.tool)

    def _what_to_do(self, request: Request) -> str:
        return PERHAPS_DONE if request.is_read and self._may_change(request) else _AGAIN

    def _refuse(self, request: Request, reason: str) -> None:
        self._write(messages.refusal(request.message, reason))

    # -- from the client ------------------------------------------------------------------------

    def _listen_to_client(self) -> None:
        try:
            for line in messages.lines(_read):
                self._take(Request(messages.understood(line), line))
        finally:
            with self._sending:
                self._has_left = True
                service, is_renewing = self._service, self._is_renewing
            if service:
                service.leave()
            elif not is_renewing:
                self._services.put(None)

    def _take(self, request: Request) -> None:
        """Send a message on, or answer it, or have it wait for a service."""
        message = request.message
        with self._sending:
            self._handshake.note(message, request.line)
            if service := self._service:
                self._send(service, request)
                if not request.is_read:  # what waits would grow while the client reads nothing
                    self._sending.wait_for(lambda: self._service is not service)
                return
            if not message.identity:  # it is about something that has ended with the service
                self._waiting.pop(message.cancels, None)
                return
            if message.method != messages.PING:
                self._waiting[message.identity] = request
                self._renew_if_needed()
                self._sending.wait_for(self._has_room)
                return
        self._write(messages.result(message, {}))

    def _has_room(self) -> bool:
        waiting = self._waiting.values()
        if len(waiting) > _MOST_WAITING:
            return False
        return sum(len(request.line) for request in waiting) <= _MOST_WAITING_BYTES

    def _send(self, service: Connection, request: Request) -> None:
        message, request.service = request.message, service
        if message.identity:
            self._under_way.add(request)
        self._under_way.cancel(message.cancels)
        request.is_read = service.send(request.line)
        if request.is_read:
            self._last_sent = message.identity

    # -- to a service that hangs ----------------------------------------------------------------

    def _watch_over_silence(self) -> None:
        """Answer what waits for a service that hangs, for as long as the front end runs."""
        while True:
            self._under_way.wait_for_more()
            while (service := self._service) and (left := self._patience_with(service)) is not None:
                if left > 0:
                    time.sleep(left)
                elif service.hangs(PATIENCE_SECONDS):
                    for request in self._under_way.give_up(service):
                        reason = service.reason_of_silence()
                        self._refuse(request, reason + self._what_to_do(request))

    def _patience_with(self, service: Connection) -> float | None:
        """The seconds until a service is silent for too long; None if nothing waits for it."""
        oldest = self._under_way.oldest
        if oldest is None:
            return None
        return max(oldest, service.last_heard) + SILENT_SECONDS - time.monotonic()

    # -- to the next service --------------------------------------------------------------------

    def _renew_if_needed(self) -> None:
        if not self._is_renewing and not all(each.is_held for each in self._waiting.values()):
            self._is_renewing = True
            self._renewals.put(None)

    def _renew_when_needed(self) -> None:
        while True:
            self._renewals.get()
            try:
                service, is_different = self._next()
            except (VectorIndexError, *SYSTEM_ERRORS) as error:
                self._give_up(sentence(error))
            else:
                self._use(service)
                if is_different:
                    self._tell_of_change()
                self._at_new_service()
                with self._sending:
                    has_left = self._has_left
                if has_left:
                    service.leave()

    def _next(self) -> tuple[Connection, bool]:
        """The next service, and whether it has other tools than the client knows."""
        service = self._last.next(self._handshake.lines)
        question = self._catalogue.question
        return service, bool(question) and self._catalogue.differs(service.asked(question))

    def _use(self, service: Connection) -> None:
        """Send what waits to a service, and from now on what the client says."""
        with self._sending:
            # Before anything is sent: it may take no more until its answers are read. With the
            # lock held: if it has ended already, `_settle` must find what is sent to it here.
            self._services.put(service)
            self._last = self._service = service
            self._is_renewing = False
            waiting, self._waiting = self._waiting, {}
            for request in waiting.values():
                self._send(service, request)
                if request.message.method == messages.INITIALIZE:
                    service.send(self._handshake.end)
            self._sending.notify_all()

    def _give_up(self, reason: str) -> None:
        """Answer what waits with the reason why it has no service."""
        with self._sending:
            self._is_renewing = False
            refused = [each for each in self._waiting.values() if not each.is_held]
            self._waiting = {k: each for k, each in self._waiting.items() if each.is_held}
            self._sending.notify_all()
            if self._has_left:
                self._services.put(None)
        for request in refused:
            self._refuse(request, reason)

    def _tell_of_change(self) -> None:
        for line in self._catalogue.notes_of_change(self._under_way.listeners):
            self._write(line)

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

"""The process of a service: one for each tool set and place, for any number of front ends.

It holds a lock that the system releases when it ends, and listens on a socket that only the user
can reach. Every connection gets an MCP session of its own over the same service. The process ends
when nobody has been connected for a while and no work is left, or sooner if its files are gone and
front ends no longer find it.
"""

import contextlib
import logging
import math
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
import anyio.abc
import filelock

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting, messages
from vector_index_mcp.background.births import birth_of
from vector_index_mcp.background.endpoint import (
    HAS_UNIX_SOCKETS,
    Endpoint,
    new_secret,
    short,
)
from vector_index_mcp.background.launching import BUSY
from vector_index_mcp.errors import SYSTEM_ERRORS, BackgroundError, sentence

Tell = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends progress to the command that has called. Never raises."""
Serve = Callable[[anyio.abc.ByteStream], Awaitable[None]]
"""Serves one client on its connection, until the connection ends."""

_log = logging.getLogger(__name__)

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""The exceptions that show that the other side of a connection is gone."""
_GREETING_SECONDS = 10.0  # in which a connection must send its greeting, or it is closed
_MOST_GREETINGS = 256  # connections without a greeting; more than real clients ever have at once
_MOST_CLIENTS = 128
_RETRY_SECONDS = 1.0  # until connections are accepted again after the process had no descriptor
_MOST_DESCRIPTORS = 4_096  # more than we need; by default, macOS allows a process 256
_IDLE_CHECK_SECONDS = 1.0
# Without clients, after which a service ends that can do nothing, since its folder is gone: agents
# make and delete a worktree for each task. Long enough to put a folder or a drive back.
_FAILING_SECONDS = 60.0
_SHUTDOWN_SECONDS = 4.0  # less than the 5 s that front ends wait


@dataclass(slots=True)
class Host:
    """Serves one tool set for one place."""

    endpoint: Endpoint
    idle_seconds: float
    """The time without clients after which the process ends, once it has no work."""
    serve_session: Serve
    """Serves MCP on a connection until its end."""
    serve_call: Callable[[dict[str, Any], Tell], Awaitable[dict[str, Any]]]
    """Answers the call of a command; returns the last line of the connection."""
    open_page: Callable[[bool], Awaitable[dict[str, Any]]]
    """Makes a link to the page; if the argument is True, also a file that opens it."""
    viewers: Callable[[], int]
    """Returns how many browsers have the page open."""
    is_busy: Callable[[], bool]
    """Returns whether there is work, so that the process must not end even without clients.

    Changes that it follows as they come are none: some files change all the time."""
    report: Callable[[], dict[str, Any]]
    """Describes the service for `ps`."""
    open_port: Callable[[dict[str, Any]], AbstractAsyncContextManager[dict[str, Any]]] | None = None
    """Listens for HTTP as a greeting asks, while the context lasts; None if that is impossible."""
    is_failing: Callable[[], bool] = lambda: False
    """Returns whether an error keeps the service from working."""
    wish: str = greeting.MCP
    """The wish in a greeting that `serve_session` fulfils."""
    clients: int = 0
    _secret: str = field(default_factory=new_secret)
    _started: float = field(default_factory=time.time)
    _last_seen: float = field(default_factory=time.monotonic)
    _is_recorded: bool = False
    """Whether the record is written, so that front ends can find this process."""
    _stopping: anyio.Event = field(default_factory=anyio.Event)
    _greetings: deque[anyio.CancelScope] = field(default_factory=deque)
    """The connections that have not sent their greeting yet, oldest first."""

    async def run(
        self, background: Callable[[], Coroutine[Any, Any, None]], on_ready: Callable[[str], None]
    ) -> None:
        """Serve until the process is idle, or is asked to end by a front end or a signal.

        Args:
            background: Runs the service for all sessions; it is cancelled at the end.
            on_ready: Called with `ready` once front ends can connect, or with BUSY if another
                process is this service already.
        """
        lock = filelock.FileLock(self.endpoint.lock, mode=0o600)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_ready(BUSY)
            return
        reason = ""
        try:
            await self._serve_all(background, on_ready)
        except (*SYSTEM_ERRORS, ExceptionGroup) as error:
            reason = sentence(error)
            raise
        finally:
            self._forget(reason)
            lock.release()

    async def _serve_all(
        self, background: Callable[[], Coroutine[Any, Any, None]], on_ready: Callable[[str], None]
    ) -> None:
        _raise_limit_of_descriptors()
        listener = await self._listen()
        _log.info("the service of %s listens, version %s", self.endpoint.place, __version__)
        on_ready("ready")
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(background)
            tasks.start_soon(self._welcome_all, listener)
            tasks.start_soon(self._stop_on_signal)
            tasks.start_soon(self._stop_when_idle)
            await self._stopping.wait()
            _log.info("the service of %s ends", self.endpoint.place)
            _end_at_the_latest_in(_SHUTDOWN_SECONDS, self._forget)
            tasks.cancel_scope.cancel()

    async def _listen(self) -> anyio.abc.Listener[anyio.abc.SocketStream]:
        record: dict[str, Any] = {
            "set": self.endpoint.tool_set,
            "project": self.endpoint.place,
            "pid": os.getpid(),
            "version": __version__,
            "birth": birth_of(os.getpid()),
            "started": self._started,
            "secret": self._secret,
        }
        listener: anyio.abc.Listener[anyio.abc.SocketStream]
        if HAS_UNIX_SOCKETS:
            # A socket here is left from a service that was killed, since we hold the lock.
            self.endpoint.socket_path.unlink(missing_ok=True)
            self.endpoint.write_record(record)  # before the socket: clients need the secret in it
            with short(self.endpoint.socket_path) as path:
                listener = await anyio.create_unix_listener(path, mode=0o600)
        else:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            record["port"] = listener.extra(anyio.abc.SocketAttribute.local_port)
            self.endpoint.write_record(record)
        self._is_recorded = True
        return listener

    @property
    def _is_lost(self) -> bool:
        """Whether new front ends cannot find this process, and start another service."""
        return self._is_recorded and self.endpoint.is_lost(self._secret)

    def _forget(self, reason: str = "") -> None:
        """Remove this service's socket and record, but never those of another one."""
        if not self._is_lost:
            self.endpoint.forget(reason)

    async def _welcome_all(self, listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> None:
        async with anyio.create_task_group() as connections:
            while True:
                try:
                    await listener.serve(self._welcome, connections)
                except anyio.BrokenResourceError as error:
                    _log.error("no connection can be accepted now: %s", error.__cause__)
                    await anyio.sleep(_RETRY_SECONDS)

    async def _welcome(self, stream: anyio.abc.ByteStream) -> None:
        """Serve one connection, from its greeting to its end. No client can make it raise."""
        async with stream:
            try:
                if (hello := await self._hello(stream)) is not None:
                    await self._serve(stream, hello)
            except _GONE:
                return

    async def _hello(self, stream: anyio.abc.ByteStream) -> dict[str, Any] | None:
        """Read the greeting; None if it does not arrive in time."""
        if len(self._greetings) >= _MOST_GREETINGS:  # give up the oldest, so that no client waits
            self._greetings.popleft().cancel()
        with anyio.move_on_after(_GREETING_SECONDS) as patience:
            self._greetings.append(patience)
            try:
                return messages.parsed(await _read_line(stream))
            finally:
                with contextlib.suppress(ValueError):  # given up and removed above
                    self._greetings.remove(patience)
        _log.warning("a connection sent no greeting in time and was closed")
        return None

    async def _serve(self, stream: anyio.abc.ByteStream, hello: dict[str, Any]) -> None:
        proof = greeting.proof_for(hello, self._secret)
        if proof is None:
            await stream.send(greeting.line({"refused": "the secret is wrong"}))
            return
        wants = hello.get("wants")
        own = {"version": __version__, "pid": os.getpid(), **proof}
        if wants == greeting.STOP:
            await stream.send(greeting.line(own))
            self._stopping.set()
            await anyio.sleep_forever()  # the connection closes when the process has ended
        elif wants == greeting.REPORT:
            own |= {"project": self.endpoint.place, "clients": self.clients + self.viewers()}
            own |= {"started": self._started, **self.report()}
            await stream.send(greeting.line(own))
        elif wants in (greeting.PAGE, greeting.PAGE_IN_A_FILE):  # no set: it may be unhashable
            page = await self._page(in_a_file=wants == greeting.PAGE_IN_A_FILE)
            await stream.send(greeting.line(own | page))
        elif wants == self.wish:
            await self._admit(stream, hello, own, self.serve_session)
        elif wants == greeting.CALL:
            await self._admit(stream, hello, own, self._answer)
        elif wants == greeting.HTTP and not greeting.is_served(hello):
            await stream.send(greeting.line(own))
        elif wants == greeting.HTTP and self.clients >= _MOST_CLIENTS:
            await self._refuse_crowd(stream, own)
        elif wants == greeting.HTTP and self.open_port is not None:
            await self._serve_client(stream, partial(self._serve_port, hello, own))
        else:
            unknown = f"it does not know this wish; end it with `{self.endpoint.stop_command}`"
            await stream.send(greeting.line(own | {"refused": unknown}))

    async def _page(self, *, in_a_file: bool) -> dict[str, Any]:
        try:
            return await self.open_page(in_a_file)
        except BackgroundError as error:
            return {"refused": str(error)}

    async def _admit(
        self, stream: anyio.abc.ByteStream, hello: dict[str, Any], own: dict[str, Any], serve: Serve
    ) -> None:
        if self.clients >= _MOST_CLIENTS:
            await self._refuse_crowd(stream, own)
            return
        await stream.send(greeting.line(own))
        if greeting.is_served(hello):  # else the front end will replace this service
            await self._serve_client(stream, serve)

    async def _answer(self, stream: anyio.abc.ByteStream) -> None:
        """Answer one call. It is done to its end even if the command that called is gone."""

        async def tell(progress: dict[str, Any]) -> None:
            with contextlib.suppress(*_GONE):
                await stream.send(greeting.line({"progress": progress}))

        request: dict[str, Any] = {}
        with anyio.move_on_after(_GREETING_SECONDS), contextlib.suppress(*_GONE):
            request = messages.parsed(await _read_call(stream))
        if request:
            answer = await self.serve_call(request, tell)
            with contextlib.suppress(*_GONE):
                await stream.send(greeting.line(answer))

    async def _refuse_crowd(self, stream: anyio.abc.ByteStream, own: dict[str, Any]) -> None:
        refusal = f"it has {self.clients} clients already; end some of them"
        await stream.send(greeting.line(own | {"refused": refusal}))

    async def _serve_port(
        self, hello: dict[str, Any], own: dict[str, Any], stream: anyio.abc.ByteStream
    ) -> None:
        """Listen for HTTP until the front end that wants it has left."""
        assert self.open_port is not None
        try:
            async with self.open_port(hello) as opened:
                await stream.send(greeting.line(own | opened))
                with contextlib.suppress(anyio.EndOfStream):
                    while True:
                        await stream.receive()
        except BackgroundError as error:
            await stream.send(greeting.line(own | {"refused": str(error)}))

    async def _serve_client(self, stream: anyio.abc.ByteStream, serve: Serve) -> None:
        self.clients += 1
        try:
            await serve(stream)
        except Exception:  # noqa: BLE001  # no error of one session may end the others
            _log.exception("a session ended by an error")
        finally:
            self.clients -= 1
            self._last_seen = time.monotonic()

    async def _stop_when_idle(self) -> None:
        hopeless_seconds = min(self.idle_seconds, _FAILING_SECONDS)
        failing_since = math.inf
        while True:
            await anyio.sleep(min(_IDLE_CHECK_SECONDS, self.idle_seconds / 2))
            now = time.monotonic()
            failing_since = min(failing_since, now) if self.is_failing() else math.inf
            if self.clients or self.viewers():
                self._last_seen = now
            elif now - max(self._last_seen, failing_since) >= hopeless_seconds:
                self._stopping.set()
                return
            elif self.is_busy():
                continue
            elif now - self._last_seen >= self.idle_seconds:
                self._stopping.set()
                return
            elif self._is_lost:
                _log.warning("the files of this service in %s are gone", self.endpoint.folder)
                self._stopping.set()
                return

    async def _stop_on_signal(self) -> None:
        if sys.platform == "win32":
            return
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                self._stopping.set()
                return


def _raise_limit_of_descriptors() -> None:
    if sys.platform == "win32":
        return
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, _MOST_DESCRIPTORS)
    if limit != resource.RLIM_INFINITY and limit < wanted:
        with contextlib.suppress(OSError, ValueError):  # then go on with the limit as it is
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _end_at_the_latest_in(seconds: float, last: Callable[[], None]) -> None:
    """After `seconds`, call `last` and end the process, whatever still runs; indexes survive it."""

    def end() -> None:
        last()
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


async def _read_line(stream: anyio.abc.ByteStream) -> bytes:
    """Read the greeting's line, and no byte more."""
    data = bytearray()
    while not data.endswith(b"\n"):
        if len(data) > greeting.LONGEST_LINE_BYTES:
            raise anyio.EndOfStream
        data += await stream.receive(1)
    return bytes(data)


async def _read_call(stream: anyio.abc.ByteStream) -> bytes:
    """Read the line of a call, which is the last one that a command sends."""
    data = bytearray()
    while not data.endswith(b"\n"):
        if len(data) > greeting.LONGEST_CALL_BYTES:
            raise anyio.EndOfStream
        data += await stream.receive()
    return bytes(data)

"""The service's process: one per tool set and place, for any number of front ends.

It holds a lock that dies with it, listens on a socket that only the user can reach, gives every
connection an MCP session of its own over the same service, and ends when nobody has been connected
for a while and nothing is left to do.
"""

import contextlib
import logging
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
from vector_index_mcp.background import greeting
from vector_index_mcp.background.endpoint import (
    HAS_UNIX_SOCKETS,
    Endpoint,
    birth_of,
    new_secret,
    short,
)
from vector_index_mcp.errors import SYSTEM_ERRORS, BackgroundError, sentence

Tell = Callable[[dict[str, Any]], Awaitable[None]]
"""Tells whoever has called how far the answer is. Never fails."""
Serve = Callable[[anyio.abc.ByteStream], Awaitable[None]]
"""Serves one client on its connection, until that ends."""

_log = logging.getLogger(__name__)

_GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
"""What tells that the other side of a connection is no more."""
_GREETING_SECONDS = 10.0  # a connection that has not said what it wants by then is closed
_MOST_GREETINGS = 256  # at once: more than clients that all come at the same moment
_MOST_CLIENTS = 128
_RETRY_SECONDS = 1.0  # to accept connections, when the process has no descriptor left for one
_MOST_DESCRIPTORS = 4_096  # more than we need; macOS gives a process 256 unless asked
_IDLE_CHECK_SECONDS = 1.0
_SHUTDOWN_SECONDS = 4.0  # five are promised


@dataclass(slots=True)
class Host:
    """The process that serves one tool set for one place.

    `serve_session` serves MCP on a stream until its end; `serve_call` answers the call of a command
    with the last line of the connection; `open_page` makes a link to the page, and
    if it is asked to a file that leads there; `viewers` counts who has it open; `is_busy` says
    whether work is left that nobody waits for; `report` describes the service for `ps`; `open_port`
    listens for HTTP as a greeting says it, as long as its context lasts; `wish` is what asks for a
    session.
    """

    endpoint: Endpoint
    idle_seconds: float
    serve_session: Serve
    serve_call: Callable[[dict[str, Any], Tell], Awaitable[dict[str, Any]]]
    open_page: Callable[[bool], Awaitable[dict[str, Any]]]
    viewers: Callable[[], int]
    is_busy: Callable[[], bool]
    report: Callable[[], dict[str, Any]]
    open_port: Callable[[dict[str, Any]], AbstractAsyncContextManager[dict[str, Any]]] | None = None
    wish: str = greeting.MCP
    clients: int = 0
    _secret: str = field(default_factory=new_secret)
    _started: float = field(default_factory=time.time)
    _last_seen: float = field(default_factory=time.monotonic)
    _stopping: anyio.Event = field(default_factory=anyio.Event)
    _greetings: deque[anyio.CancelScope] = field(default_factory=deque)
    """Of connections that have not said what they want, oldest first."""

    async def run(
        self, background: Callable[[], Coroutine[Any, Any, None]], on_ready: Callable[[str], None]
    ) -> None:
        """Serve until idle, stopped or ended by a signal.

        Args:
            background: What runs for all sessions; cancelled at the end.
            on_ready: Called with `ready` once front ends can connect, or `busy` if another process
                serves it already.
        """
        lock = filelock.FileLock(self.endpoint.lock, mode=0o600)
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            on_ready("busy")
            return
        reason = ""
        try:
            await self._serve_all(background, on_ready)
        except (*SYSTEM_ERRORS, ExceptionGroup) as error:
            reason = sentence(error)
            raise
        finally:
            self.endpoint.forget(reason)
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
            _end_at_the_latest_in(_SHUTDOWN_SECONDS, self.endpoint.forget)
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
            # What lies there is of one that was killed: we hold the lock.
            self.endpoint.socket_path.unlink(missing_ok=True)
            self.endpoint.write_record(record)  # first: who can connect needs the secret
            with short(self.endpoint.socket_path) as path:
                listener = await anyio.create_unix_listener(path, mode=0o600)
        else:
            listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
            record["port"] = listener.extra(anyio.abc.SocketAttribute.local_port)
            self.endpoint.write_record(record)
        return listener

    async def _welcome_all(self, listener: anyio.abc.Listener[anyio.abc.SocketStream]) -> None:
        async with anyio.create_task_group() as connections:
            while True:
                try:
                    await listener.serve(self._welcome, connections)
                except anyio.BrokenResourceError as error:
                    _log.error("no connection can be accepted now: %s", error.__cause__)
                    await anyio.sleep(_RETRY_SECONDS)

    async def _welcome(self, stream: anyio.abc.ByteStream) -> None:
        """One connection, from its greeting to its end. Never raises for what a client does."""
        async with stream:
            try:
                if (hello := await self._hello(stream)) is not None:
                    await self._serve(stream, hello)
            except _GONE:
                return

    async def _hello(self, stream: anyio.abc.ByteStream) -> dict[str, Any] | None:
        """What the other side says first; None if that takes it too long."""
        if len(self._greetings) >= _MOST_GREETINGS:  # so that those in a hurry need not wait
            self._greetings.popleft().cancel()
        with anyio.move_on_after(_GREETING_SECONDS) as patience:
            self._greetings.append(patience)
            try:
                return greeting.parse(await _read_line(stream))
            finally:
                with contextlib.suppress(ValueError):  # it was the oldest of too many
                    self._greetings.remove(patience)
        _log.warning("a connection said nothing and was closed")
        return None

    async def _serve(self, stream: anyio.abc.ByteStream, hello: dict[str, Any]) -> None:
        if hello.get("secret") != self._secret:
            await stream.send(greeting.line({"refused": "the secret is wrong"}))
            return
        wants = hello.get("wants")
        own = {"version": __version__, "pid": os.getpid()}
        if wants == greeting.STOP:
            await stream.send(greeting.line(own))
            self._stopping.set()
            await anyio.sleep_forever()  # the end of the connection says that we have ended
        elif wants == greeting.REPORT:
            own |= {"project": self.endpoint.place, "clients": self.clients + self.viewers()}
            own |= {"started": self._started, **self.report()}
            await stream.send(greeting.line(own))
        elif wants in (greeting.PAGE, greeting.PAGE_IN_A_FILE):  # it may be no word at all
            page = await self._page(in_a_file=wants == greeting.PAGE_IN_A_FILE)
            await stream.send(greeting.line(own | page))
        elif wants == self.wish:
            await self._admit(stream, hello, own, self.serve_session)
        elif wants == greeting.CALL:
            await self._admit(stream, hello, own, self._answer)
        elif wants == greeting.HTTP and hello.get("version") != __version__:
            await stream.send(greeting.line(own))
        elif wants == greeting.HTTP and self.clients >= _MOST_CLIENTS:
            await self._refuse_crowd(stream)
        elif wants == greeting.HTTP and self.open_port is not None:
            await self._serve_client(stream, partial(self._serve_port, hello, own))
        else:
            await stream.send(greeting.line({"refused": "this is no wish that it knows"}))

    async def _page(self, *, in_a_file: bool) -> dict[str, Any]:
        try:
            return await self.open_page(in_a_file)
        except BackgroundError as error:
            return {"refused": str(error)}

    async def _admit(
        self, stream: anyio.abc.ByteStream, hello: dict[str, Any], own: dict[str, Any], serve: Serve
    ) -> None:
        if self.clients >= _MOST_CLIENTS:
            await self._refuse_crowd(stream)
            return
        await stream.send(greeting.line(own))
        if hello.get("version") == __version__:  # another one is about to replace us
            await self._serve_client(stream, serve)

    async def _answer(self, stream: anyio.abc.ByteStream) -> None:
        """One call, to its end: who has called may be gone, but what was begun is done."""

        async def tell(progress: dict[str, Any]) -> None:
            with contextlib.suppress(*_GONE):
                await stream.send(greeting.line({"progress": progress}))

        request: dict[str, Any] = {}
        with anyio.move_on_after(_GREETING_SECONDS), contextlib.suppress(*_GONE):
            request = greeting.parse(await _read_call(stream))
        if request:
            answer = await self.serve_call(request, tell)
            with contextlib.suppress(*_GONE):
                await stream.send(greeting.line(answer))

    async def _refuse_crowd(self, stream: anyio.abc.ByteStream) -> None:
        refusal = f"it has {self.clients} clients already; end some of them"
        await stream.send(greeting.line({"refused": refusal}))

    async def _serve_port(
        self, hello: dict[str, Any], own: dict[str, Any], stream: anyio.abc.ByteStream
    ) -> None:
        """Listen for HTTP until the front end that wants it has left."""
        assert self.open_port is not None
        try:
            async with self.open_port(hello) as told:
                await stream.send(greeting.line(own | told))
                with contextlib.suppress(anyio.EndOfStream):
                    while True:
                        await stream.receive()
        except BackgroundError as error:
            await stream.send(greeting.line({"refused": str(error)}))

    async def _serve_client(self, stream: anyio.abc.ByteStream, serve: Serve) -> None:
        self.clients += 1
        try:
            await serve(stream)
        except Exception:  # noqa: BLE001  # whatever it is, the other clients go on
            _log.exception("a session ended by an error")
        finally:
            self.clients -= 1
            self._last_seen = time.monotonic()

    async def _stop_when_idle(self) -> None:
        while True:
            await anyio.sleep(min(_IDLE_CHECK_SECONDS, self.idle_seconds / 2))
            if self.clients or self.viewers() or self.is_busy():
                self._last_seen = time.monotonic()
            elif time.monotonic() - self._last_seen >= self.idle_seconds:
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
        with contextlib.suppress(OSError, ValueError):  # what we have must do
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _end_at_the_latest_in(seconds: float, last: Callable[[], None]) -> None:
    """Cut off what does not end by itself, after `last`: the index survives it like a kill."""

    def end() -> None:
        last()
        os._exit(0)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()


async def _read_line(stream: anyio.abc.ByteStream) -> bytes:
    """The greeting's line, and not a byte more."""
    data = bytearray()
    while not data.endswith(b"\n"):
        if len(data) > greeting.LONGEST_LINE_BYTES:
            raise anyio.EndOfStream
        data += await stream.receive(1)
    return bytes(data)


async def _read_call(stream: anyio.abc.ByteStream) -> bytes:
    """The line of a call, which is the last thing that a front end says."""
    data = bytearray()
    while not data.endswith(b"\n"):
        if len(data) > greeting.LONGEST_CALL_BYTES:
            raise anyio.EndOfStream
        data += await stream.receive()
    return bytes(data)

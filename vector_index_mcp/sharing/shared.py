"""One worker and the guests that use it."""

import contextlib
import itertools
import logging
import time
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.engine.worker_process import ENDED, LONGEST_HEADER_BYTES, Worker
from vector_index_mcp.sharing import frames
from vector_index_mcp.sharing.guest import GONE, Guest
from vector_index_mcp.sharing.turns import Turns

_log = logging.getLogger(__name__)

_BYTES_OF_A_NUMBER = 4
_DYING_SECONDS = 0.5  # for a process that says nothing more to be gone


class Shared:
    """A worker from its start to its end."""

    def __init__(self, process: Worker) -> None:
        self.last_use = time.monotonic()
        self.idle_seconds = 0.0
        """The longest of those that its guests have asked for."""
        self._process = process
        self._guests: list[Guest] = []
        self._turns: Turns[Guest, frames.Request] = Turns()
        self._at_work: dict[int, tuple[Guest, frames.Request]] = {}
        self._numbers = itertools.count(1)
        self._told: list[bytes] = []
        """The events that whoever comes later has missed."""
        self._moved = anyio.Event()
        self._is_loaded = False
        self.has_ended = False
        """Whether nobody is to come any more."""

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    @property
    def guests(self) -> int:
        """How many use it."""
        return len(self._guests)

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return self._turns.waiting

    @property
    def at_work(self) -> int:
        """How many it has and has not answered."""
        return self._turns.at_work

    @property
    def is_busy(self) -> bool:
        """Whether it is loading, or anything waits for it."""
        is_loading = bool(self._guests) and not self._is_loaded
        return is_loading or bool(self.waiting or self.at_work)

    def admit(self, guest: Guest, idle_seconds: float) -> None:
        """Let a guest use it from now on, and tell it all that it has missed."""
        self._guests.append(guest)
        self.idle_seconds = max(self.idle_seconds, idle_seconds)
        self.last_use = time.monotonic()
        guest.tell(frames.line({"pid": self.pid}))
        for frame in self._told:
            guest.tell(frame)
        self._tell_sharers()

    def leave(self, guest: Guest) -> None:
        """A guest is gone: what it has asked for is not computed any more."""
        if guest in self._guests:
            self._guests.remove(guest)
            self._turns.drop(guest)
            self._tell_sharers()

    def _tell_sharers(self) -> None:
        for guest in self._guests:
            guest.tell(frames.line({"event": "sharers", "count": len(self._guests)}))

    def ask(self, guest: Guest, request: frames.Request) -> None:
        """Have something computed when its turn has come."""
        self.last_use = time.monotonic()
        self._turns.add(guest, request, urgent=request.urgent)
        self._moved.set()

    def kill(self) -> None:
        """End it; its guests are told."""
        self.has_ended = True
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def rest(self) -> None:
        """End it to make room; its guests will come again when they need it."""
        for guest in self._guests:
            guest.tell(frames.line({"event": "resting"}))
        self.kill()

    async def run(self) -> None:
        """Hand requests and answers to and fro until it has ended."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._feed)
                await self._deliver()
                with anyio.move_on_after(_DYING_SECONDS):  # a kill would hide of what
                    await self._process.wait()
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end()

    async def _end(self) -> None:
        self.kill()
        status = await self._process.wait()
        await self._process.aclose()
        _log.info("the worker %d has ended (status %d)", self.pid, status)
        for guest in self._guests:
            guest.tell(frames.line({"event": ENDED, "status": status}))
            guest.leave()

    async def _feed(self) -> None:
        assert self._process.stdin is not None
        while True:
            turn = self._turns.next()
            if turn is None:
                await self._moved.wait()
                self._moved = anyio.Event()
                continue
            guest, request, _ = turn
            number = next(self._numbers)
            self._at_work[number] = guest, request
            try:
                await self._process.stdin.send(request.line(number))
            except GONE:  # `_deliver` sees that as well
                return

    async def _deliver(self) -> None:
        """Hand out events and answers until it ends, or says what is no frame."""
        assert self._process.stdout is not None
        source = BufferedByteReceiveStream(self._process.stdout)
        while True:
            try:
                header = frames.parse(await source.receive_until(b"\n", LONGEST_HEADER_BYTES))
                if "event" in header:
                    self._note(header)
                    continue
                numbers = header.get("rows", 0) * header.get("dimension", 0)
                size = _BYTES_OF_A_NUMBER * numbers
                payload = await source.receive_exactly(size) if size else b""
                self._answer(header, payload)
            except (anyio.IncompleteRead, anyio.DelimiterNotFound, *GONE):
                return
            except (ValueError, KeyError, TypeError):
                _log.warning("the worker %d says what makes no sense", self.pid)
                return

    def _note(self, event: dict[str, Any]) -> None:
        self._is_loaded |= event["event"] == "ready"
        # Whoever comes later, to look again, must not meet one that has found no model.
        self.has_ended |= event["event"] == "unavailable"
        frame = frames.line(event)
        self._told.append(frame)
        for guest in self._guests:
            guest.tell(frame)

    def _answer(self, header: dict[str, Any], payload: bytes) -> None:
        guest, request = self._at_work.pop(header["id"])
        self._turns.done(urgent=request.urgent)
        self._moved.set()
        self.last_use = time.monotonic()
        if guest in self._guests:
            frame = frames.line({**header, "id": request.number}) + payload
            guest.tell(frame, request.size)

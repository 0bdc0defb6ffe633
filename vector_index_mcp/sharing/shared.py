"""One worker and the guests that use it."""

import contextlib
import itertools
import logging
import time
from typing import Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.engine.models.worker_process import ENDED, LONGEST_HEADER_BYTES, Worker
from vector_index_mcp.sharing import frames
from vector_index_mcp.sharing.guest import GONE, Guest
from vector_index_mcp.sharing.turns import Turns

_log = logging.getLogger(__name__)

_BYTES_OF_A_NUMBER = 4
_DYING_SECONDS = 0.5  # for a process to end after its last output


class Shared:
    """A worker from its start to its end."""

    def __init__(self, process: Worker) -> None:
        self.last_use = time.monotonic()
        self.idle_seconds = 0.0
        """How long it may stay unused: the longest time that a guest asked for."""
        self._process = process
        self._guests: list[Guest] = []
        self._turns: Turns[Guest, frames.Request] = Turns()
        self._at_work: dict[int, tuple[Guest, frames.Request]] = {}
        self._numbers = itertools.count(1)
        self._events: list[bytes] = []
        """The worker's events so far, for guests that come later."""
        self._moved = anyio.Event()
        self._is_loaded = False
        self.has_ended = False
        """Whether it must not get any more guests."""

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._process.pid

    @property
    def guests(self) -> int:
        """How many services use it."""
        return len(self._guests)

    @property
    def waiting(self) -> int:
        """How many requests wait for their turn."""
        return self._turns.waiting

    @property
    def at_work(self) -> int:
        """How many requests the worker has and has not answered yet."""
        return self._turns.at_work

    @property
    def is_busy(self) -> bool:
        """Whether it is loading, or a request waits for it."""
        is_loading = bool(self._guests) and not self._is_loaded
        return is_loading or bool(self.waiting or self.at_work)

    def admit(self, guest: Guest, idle_seconds: float) -> None:
        """Let a guest use the worker, and send it the events that it has missed."""
        self._guests.append(guest)
        self.idle_seconds = max(self.idle_seconds, idle_seconds)
        self.last_use = time.monotonic()
        guest.send(frames.line({"pid": self.pid}))
        for frame in self._events:
            guest.send(frame)
        self._send_sharers()

    def leave(self, guest: Guest) -> None:
        """Remove a guest that is gone, and drop its waiting requests."""
        if guest in self._guests:
            self._guests.remove(guest)
            self._turns.drop(guest)
            self._send_sharers()

    def _send_sharers(self) -> None:
        for guest in self._guests:
            guest.send(frames.line({"event": "sharers", "count": len(self._guests)}))

    def ask(self, guest: Guest, request: frames.Request) -> None:
        """Queue a request of a guest."""
        self.last_use = time.monotonic()
        self._turns.add(guest, request, request.kind)
        self._moved.set()

    def kill(self) -> None:
        """Kill the worker; its guests get the event `ended`."""
        self.has_ended = True
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def rest(self) -> None:
        """Kill the worker to free memory; its guests reconnect when they need one again."""
        for guest in self._guests:
            guest.send(frames.line({"event": "resting"}))
        self.kill()

    async def run(self) -> None:
        """Pass requests to the worker and answers to the guests, until the worker has ended."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._feed)
                await self._deliver()
                # Let it end by itself: a kill would hide its exit status.
                with anyio.move_on_after(_DYING_SECONDS):
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
            guest.send(frames.line({"event": ENDED, "status": status}))
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
            except GONE:  # `_deliver` notices that, too
                return

    async def _deliver(self) -> None:
        """Pass events and answers to the guests until the worker ends or sends an invalid frame."""
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
                _log.warning("the worker %d has sent an invalid frame, and is ended", self.pid)
                return

    def _note(self, event: dict[str, Any]) -> None:
        self._is_loaded |= event["event"] == "ready"
        # A worker without a model gets no more guests: they want a new one that looks again.
        self.has_ended |= event["event"] == "unavailable"
        frame = frames.line(event)
        self._events.append(frame)
        for guest in self._guests:
            guest.send(frame)

    def _answer(self, header: dict[str, Any], payload: bytes) -> None:
        guest, request = self._at_work.pop(header["id"])
        self._turns.done(request.kind)
        self._moved.set()
        self.last_use = time.monotonic()
        if guest in self._guests:
            frame = frames.line({**header, "id": request.number}) + payload
            guest.send(frame, request.size)

"""Runs calls that may hang in threads that block neither the caller nor the end of the process.

If a drive is gone, a system call may take minutes or never return. anyio's threads are no good for
that: they cannot be left alone, and the interpreter waits for them at its end.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeAlias, TypeVar

import anyio

from vector_index_mcp.errors import sentence

T = TypeVar("T")
DRIVE_SECONDS = 3.0
"""How long a drive may take to answer. A disk that stands still takes longer to start."""
_MayGoOn: TypeAlias = Callable[[], Awaitable[bool]] | None


class AbandonedError(Exception):
    """Raised in a thread whose work nobody waits for any more."""


class NoThreadError(TimeoutError):
    """Raised if the system starts no thread: whether the drive answers is not known."""


class Work(Generic[T]):
    """A call in a thread; both the caller and the thread use this object."""

    def __init__(self, do: "Callable[[Work[T]], T]", name: str) -> None:
        self.moved = time.monotonic()
        """When the work was last seen to make progress."""
        self.is_abandoned = False
        self.is_over = False
        """Whether the call has ended."""
        self.ended = anyio.Event()
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._result: list[T] = []
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start the thread.

        Raises:
            NoThreadError: If the system starts no thread.
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            raise NoThreadError(sentence(error)) from error

    def step(self) -> None:
        """Report progress; called in the thread.

        Raises:
            AbandonedError: If nobody waits for the work any more.
        """
        self.moved = time.monotonic()
        if self.is_abandoned:
            raise AbandonedError

    def result(self) -> T:
        """Return the result or raise the error, once the work has ended."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._do(self))
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._error = error
        self.is_over = True
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self.ended.set)


class Detached:
    """A few threads for calls that may hang."""

    def __init__(self, most: int, name: str, *, ending_seconds: float = 0.0) -> None:
        """Prepare for at most `most` calls at a time; if so many hang, no new call is begun.

        Args:
            most: How many calls may be under way.
            name: The name of the threads.
            ending_seconds: How long a call that is abandoned may take to tidy up.
        """
        self._most = most
        self._name = name
        self._ending_seconds = ending_seconds
        self._limit: anyio.CapacityLimiter | None = None
        self._begun: list[Work[Any]] = []

    @property
    def is_busy(self) -> bool:
        """Whether any call is under way, be it that nobody waits for it any more."""
        return bool(self._under_way())

    def _under_way(self) -> list[Work[Any]]:
        return [work for work in self._begun if not work.is_over]

    async def run(
        self,
        do: Callable[[Work[T]], T],
        patience: float,
        may_go_on: _MayGoOn = None,
    ) -> T:
        """Run `do` in a thread and return its result. If cancelled, abandon the thread.

        Args:
            do: Calls `Work.step` whenever it makes progress.
            patience: How many seconds it may take from one step to the next.
            may_go_on: Decides each time when it has taken longer whether it hangs; None: it does.

        Raises:
            TimeoutError: If it takes longer, or too many other calls hang.
            NoThreadError: If the system starts no thread.
        """
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(self._most)
        async with self._limit:
            await self._room(patience, may_go_on)
            work: Work[T] = Work(do, self._name)
            work.start()
            self._begun.append(work)
            try:
                await _ended(work, patience, may_go_on)
            finally:
                await self._leave(work)
            return work.result()

    async def _room(self, patience: float, may_go_on: _MayGoOn) -> None:
        """Make sure that another call may begin.

        Raises:
            TimeoutError: If too many abandoned calls hang.
        """
        while len(left := self._under_way()) >= self._most:
            await _one_ended(left, patience, may_go_on)  # they need not hang, but may be cancelled

    async def _leave(self, work: Work[T]) -> None:
        if not work.is_over:
            work.is_abandoned = True
            with anyio.CancelScope(shield=True), anyio.move_on_after(self._ending_seconds):
                await work.ended.wait()
        self._begun = self._under_way()


async def _one_ended(works: Sequence[Work[Any]], patience: float, may_go_on: _MayGoOn) -> None:
    """Wait until one of `works` has ended.

    Raises:
        TimeoutError: If all hang.
    """

    async def wait(work: Work[Any]) -> None:
        with suppress(TimeoutError):
            await _ended(work, patience, may_go_on)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for work in works:
            tasks.start_soon(wait, work)
    if not any(work.is_over for work in works):
        raise TimeoutError


async def _ended(work: Work[T], patience: float, may_go_on: _MayGoOn) -> None:
    # Not `is_over`: what the thread has sent to the event loop before comes first.
    while not work.ended.is_set():
        left = work.moved + patience - time.monotonic()
        if left > 0:
            with anyio.move_on_after(left):
                await work.ended.wait()
        elif work.is_over or (may_go_on is not None and await may_go_on()):
            work.moved = time.monotonic()
        else:
            raise TimeoutError

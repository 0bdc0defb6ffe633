"""Runs calls that may hang in threads that block neither the caller nor the end of the process.

If a drive is gone, a system call may take minutes or never return. anyio's threads are no good for
that, because the interpreter waits for them at its end.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")
_ENDING_SECONDS = 0.5  # for an abandoned thread to remove an unfinished file


class AbandonedError(Exception):
    """Raised in a thread whose work nobody waits for any more."""


class Work(Generic[T]):
    """A call in a thread; both the caller and the thread use this object."""

    def __init__(self, do: "Callable[[Work[T]], T]") -> None:
        self.steps = 0
        """Grows while the work makes progress."""
        self.is_abandoned = False
        self.ended = anyio.Event()
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._result: list[T] = []
        self._error: BaseException | None = None

    def start(self) -> None:
        """Start the thread.

        Raises:
            RuntimeError: If the system starts no thread.
        """
        self._thread.start()

    def step(self) -> None:
        """Report progress; called in the thread.

        Raises:
            AbandonedError: If nobody waits for the work any more.
        """
        self.steps += 1
        if self.is_abandoned:
            raise AbandonedError

    @property
    def is_stuck(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

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
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self.ended.set)


class Apart:
    """A few threads for calls that may hang."""

    def __init__(self, most: int) -> None:
        """Prepare for at most `most` calls at a time; if so many hang, no new call is begun."""
        self._most = most
        self._limit: anyio.CapacityLimiter | None = None
        self._left: list[Work[object]] = []

    async def run(self, do: Callable[[Work[T]], T], patience: float) -> T:
        """Run `do` in a thread and return its result. If cancelled, abandon the thread.

        Args:
            do: Calls `Work.step` whenever it makes progress.
            patience: How many seconds it may take from one step to the next.

        Raises:
            TimeoutError: If it takes longer, or too many other calls hang.
            RuntimeError: If the system starts no thread.
        """
        if self._limit is None:
            self._limit = anyio.CapacityLimiter(self._most)
        async with self._limit:
            self._left = [each for each in self._left if each.is_stuck]
            if len(self._left) >= self._most:
                raise TimeoutError
            work: Work[T] = Work(do)
            work.start()
            try:
                await _ended(work, patience)
            finally:
                await self._leave(work)
            return work.result()

    async def _leave(self, work: Work[T]) -> None:
        if work.ended.is_set():
            return
        work.is_abandoned = True
        with anyio.CancelScope(shield=True), anyio.move_on_after(_ENDING_SECONDS):
            await work.ended.wait()
            return
        self._left.append(work)  # type: ignore[arg-type]


async def _ended(work: Work[T], patience: float) -> None:
    while True:
        before = work.steps
        with anyio.move_on_after(patience):
            await work.ended.wait()
            return
        if work.steps == before:
            raise TimeoutError

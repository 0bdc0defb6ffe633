"""Does what may hang in threads that keep nobody: neither who asks nor the end of the process.

On a drive that is gone a system call may take minutes or for ever. No thread of anyio may do that:
the interpreter waits for those at its end.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")
_ENDING_SECONDS = 0.5  # for a thread that is told to stop to remove what it has begun


class AbandonedError(Exception):
    """Raised in a thread whose work nobody waits for any more."""


class Work(Generic[T]):
    """Something that is done in a thread, as both sides see it."""

    def __init__(self, do: "Callable[[Work[T]], T]") -> None:
        self.steps = 0
        """Grows while it gets on."""
        self.is_abandoned = False
        self.ended = anyio.Event()
        self._do = do
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._result: list[T] = []
        self._error: BaseException | None = None

    def start(self) -> None:
        """Begin.

        Raises:
            RuntimeError: If the system gives us no thread.
        """
        self._thread.start()

    def step(self) -> None:
        """Say, in the thread, that the work gets on.

        Raises:
            AbandonedError: If nobody waits for it.
        """
        self.steps += 1
        if self.is_abandoned:
            raise AbandonedError

    @property
    def is_stuck(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def result(self) -> T:
        """What came of it, once it has ended."""
        if self._error is not None:
            raise self._error
        return self._result[0]

    def _run(self) -> None:
        try:
            self._result.append(self._do(self))
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            self._error = error
        with suppress(RuntimeError):  # the loop may be closed by now
            self._loop.call_soon_threadsafe(self.ended.set)


class Apart:
    """Threads for what may hang, a few at the same time."""

    def __init__(self, most: int) -> None:
        """Prepare; `most` is also how many may hang before nothing is begun any more."""
        self._most = most
        self._limit: anyio.CapacityLimiter | None = None
        self._left: list[Work[object]] = []

    async def run(self, do: Callable[[Work[T]], T], patience: float) -> T:
        """What `do` returns. If we are cancelled, it is told to stop, and left alone.

        Args:
            do: Calls `Work.step` whenever it gets on.
            patience: So many seconds it may take from step to step.

        Raises:
            TimeoutError: If it takes longer, or too many others hang.
            RuntimeError: If the system gives us no thread.
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

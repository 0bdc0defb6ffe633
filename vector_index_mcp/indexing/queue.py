"""The keys at which something has just happened: by events, or by hits that a search found stale.

A key waits until it is quiet. What a scan finds is in a `worklist`, which these keys overtake.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Iterable

import anyio

from vector_index_mcp.files.debounce import Debouncer

# A file that is written into and stays open, like a log, does not hold up those that are saved, and
# is looked at seldom: after a second of quiet or 30 s, with the usual 0.2 s and 2 s for others.
_UNFINISHED_QUIETS, _UNFINISHED_LONGESTS = 5, 15


class DirtyQueue:
    """The queue of one event loop. Only what ends in `from_thread` may be called elsewhere."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._debouncer = Debouncer(quiet, longest)
        self._unfinished = Debouncer(_UNFINISHED_QUIETS * quiet, _UNFINISHED_LONGESTS * longest)
        self._wake = anyio.Event()
        self._loop = asyncio.get_running_loop()

    def touch(self, paths: Iterable[str]) -> None:
        """Note that something happened at `paths`."""
        paths = list(paths)
        self._unfinished.forget(paths)
        self._debouncer.touch(paths, time.monotonic())
        self._wake.set()

    def touch_unfinished(self, paths: Iterable[str]) -> None:
        """Note that somebody is writing into the files at `paths`, and has not closed them."""
        new = (path for path in paths if path not in self._debouncer)
        self._unfinished.touch(new, time.monotonic())
        self._wake.set()

    def touch_unless_queued(self, paths: Iterable[str]) -> None:
        """Like `touch`, but paths that wait already wait no longer for it."""
        if new := [path for path in paths if path not in self._debouncer]:
            self.touch(new)

    def touch_from_thread(self, paths: list[str]) -> None:
        """Like `touch`, from any thread; too late is no error."""
        self._soon(self.touch, paths)

    def touch_unfinished_from_thread(self, paths: list[str]) -> None:
        """Like `touch_unfinished`, from any thread."""
        self._soon(self.touch_unfinished, paths)

    def _soon(self, touch: Callable[[Iterable[str]], None], paths: list[str]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended
            self._loop.call_soon_threadsafe(touch, paths)

    @property
    def touched(self) -> list[str]:
        """The paths that events named and that have not been taken yet."""
        return [*self._debouncer, *self._unfinished]

    def wake(self) -> None:
        """Make `wait` return, because there is other work."""
        self._wake.set()

    async def wait(self) -> None:
        """Wait until there may be something to take, or until woken."""
        dues = (self._debouncer.due, self._unfinished.due)
        due = min((due for due in dues if due is not None), default=math.inf)
        delay = max(0.0, due - time.monotonic())
        with anyio.move_on_after(delay):
            await self._wake.wait()
        self._wake = anyio.Event()

    def take_touched(self) -> list[str]:
        """The paths events named, once they are quiet."""
        now = time.monotonic()
        return [*self._debouncer.take(now), *self._unfinished.take(now)]

    @property
    def has_touched(self) -> bool:
        """Whether paths wait that events named, quiet or not."""
        return len(self._debouncer) > 0

    def __len__(self) -> int:
        return len(self._debouncer) + len(self._unfinished)

"""What waits to be indexed: changes that have just happened, and the rest of a scan.

Every cause of work ends here as a set of paths: events, scans, overflows, hits found stale. A
change overtakes the rest of a scan.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable
from itertools import islice

import anyio

from vector_index_mcp.files.debounce import Debouncer
from vector_index_mcp.files.scan import Changes

# A file that is written into and stays open, like a log, does not hold up those that are saved, and
# is looked at seldom: after a second of quiet or 30 s, with the usual 0.2 s and 2 s for others.
_UNFINISHED_QUIETS, _UNFINISHED_LONGESTS = 5, 15


class DirtyQueue:
    """The queue of one event loop. Only what ends in `from_thread` may be called elsewhere."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._debouncer = Debouncer(quiet, longest)
        self._unfinished = Debouncer(_UNFINISHED_QUIETS * quiet, _UNFINISHED_LONGESTS * longest)
        self._dirty: dict[str, None] = {}
        self._gone: dict[str, None] = {}
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

    def add(self, changes: Changes) -> None:
        """Queue what a scan found."""
        self._dirty.update(dict.fromkeys(changes.dirty))
        self._gone.update(dict.fromkeys(changes.gone))
        self._wake.set()

    def wake(self) -> None:
        """Make `wait` return, because there is other work."""
        self._wake.set()

    async def wait(self) -> None:
        """Wait until there may be something to take, or until woken."""
        if self.has_scanned:
            return
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

    def take_scanned(self, limit: int) -> Changes:
        """The next part of what scans found: at most `limit` files to read."""
        dirty = list(islice(self._dirty, limit))
        for path in dirty:
            del self._dirty[path]
        gone, self._gone = list(self._gone), {}
        return Changes(dirty, gone)

    def settle(self, changes: Changes) -> None:
        """Forget what a scan found of files that have been looked at since."""
        for path in (*changes.dirty, *changes.gone):
            self._dirty.pop(path, None)
            self._gone.pop(path, None)

    def forget_scanned(self) -> None:
        """Forget what scans found."""
        self._dirty.clear()
        self._gone.clear()

    @property
    def has_touched(self) -> bool:
        """Whether paths wait that events named, quiet or not."""
        return len(self._debouncer) > 0

    @property
    def scanned(self) -> Collection[str]:
        """The files to read that scans found and that still wait."""
        return self._dirty

    @property
    def has_scanned(self) -> bool:
        """Whether a scan's findings are still waiting."""
        return bool(self._dirty or self._gone)

    def __len__(self) -> int:
        waiting = len(self._debouncer) + len(self._unfinished)
        return waiting + len(self._dirty) + len(self._gone)

"""What waits to be indexed: changes that have just happened, and the rest of a scan.

Every cause of work ends here as a set of paths: events, scans, overflows, hits found stale. A
change overtakes the rest of a scan.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Collection, Iterable
from itertools import islice

import anyio

from vector_index_mcp.files.debounce import Debouncer
from vector_index_mcp.files.scan import Changes


class DirtyQueue:
    """The queue of one event loop. Only `touch_from_thread` may be called from elsewhere."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._debouncer = Debouncer(quiet, longest)
        self._dirty: dict[str, None] = {}
        self._gone: dict[str, None] = {}
        self._wake = anyio.Event()
        self._loop = asyncio.get_running_loop()

    def touch(self, paths: Iterable[str]) -> None:
        """Note that something happened at `paths`."""
        self._debouncer.touch(paths, time.monotonic())
        self._wake.set()

    def touch_unless_queued(self, paths: Iterable[str]) -> None:
        """Like `touch`, but paths that wait already wait no longer for it."""
        if new := [path for path in paths if path not in self._debouncer]:
            self.touch(new)

    def touch_from_thread(self, paths: list[str]) -> None:
        """Like `touch`, from any thread; too late is no error."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended
            self._loop.call_soon_threadsafe(self.touch, paths)

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
        due = self._debouncer.due
        delay = math.inf if due is None else max(0.0, due - time.monotonic())
        with anyio.move_on_after(delay):
            await self._wake.wait()
        self._wake = anyio.Event()

    def take_touched(self) -> list[str]:
        """The paths events named, once they are quiet."""
        return self._debouncer.take(time.monotonic())

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
        return len(self._debouncer) + len(self._dirty) + len(self._gone)

"""The queue of dirty keys, which come from events and from hits that a search found stale.

A key waits until nothing has happened to it for a while. Files that scans find wait in a `worklist`
instead; the keys here are taken before those.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable

import anyio

from vector_index_mcp.files.debounce import Debouncer

# Factors for files that are written and stay open, like logs. They wait in a debouncer of their
# own, so that they do not delay saved files, and for longer: by default for 1 s of quiet, at most
# 30 s, where saved files wait for 0.2 s, at most 2 s.
_UNFINISHED_QUIETS, _UNFINISHED_LONGESTS = 5, 15


class DirtyQueue:
    """The queue of one event loop. Other threads may call only the methods `…_from_thread`."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._debouncer = Debouncer(quiet, longest)
        self._unfinished = Debouncer(_UNFINISHED_QUIETS * quiet, _UNFINISHED_LONGESTS * longest)
        self._touches: dict[str, int] = {}  # the number of each waiting path's last touch
        self.touch_count = 0
        """How many times paths were touched."""
        self._settled: set[str] = set()
        self._wake = anyio.Event()
        self._loop = asyncio.get_running_loop()

    def touch(self, paths: Iterable[str]) -> None:
        """Note that something happened at `paths`."""
        paths = list(paths)
        self._note_touch(paths)
        self._let_settle(paths)

    def touch_unfinished(self, paths: Iterable[str]) -> None:
        """Note that the files at `paths` were written, and are still open."""
        paths = list(paths)
        self._note_touch(paths)
        new = [path for path in paths if path not in self._debouncer]
        if not new:
            return
        self._unfinished.touch(new, time.monotonic())
        self._wake.set()

    def touch_unless_queued(self, paths: Iterable[str]) -> None:
        """Like `touch`, but does not make paths wait longer that wait already."""
        paths = list(paths)
        self._note_touch(paths)
        self._let_settle([path for path in paths if path not in self._debouncer])

    def _let_settle(self, paths: Collection[str]) -> None:
        if not paths:  # nobody has to wake for that
            return
        self._unfinished.forget(paths)
        self._debouncer.touch(paths, time.monotonic())
        self._wake.set()

    def _note_touch(self, paths: Iterable[str]) -> None:
        self.touch_count += 1
        self._touches.update(dict.fromkeys(paths, self.touch_count))
        self._settled.difference_update(paths)

    def touch_from_thread(self, paths: list[str]) -> None:
        """Like `touch`, from any thread. Does nothing if the event loop has ended."""
        self._soon(self.touch, paths)

    def touch_unfinished_from_thread(self, paths: list[str]) -> None:
        """Like `touch_unfinished`, from any thread. Does nothing if the event loop has ended."""
        self._soon(self.touch_unfinished, paths)

    def _soon(self, touch: Callable[[Iterable[str]], None], paths: list[str]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the service has ended
            self._loop.call_soon_threadsafe(touch, paths)

    @property
    def touched(self) -> list[str]:
        """The paths that have been touched and not taken yet."""
        return [*self._debouncer, *self._unfinished]

    def note_settled(self, paths: Iterable[str], touch_count: int) -> None:
        """Note which touched paths a look has found up to date, in place of the last look.

        Args:
            paths: The paths.
            touch_count: The queue's `touch_count` before the look. What was touched later may have
                changed after it.
        """
        self._settled = {path for path in paths if 0 < self._touches.get(path, 0) <= touch_count}

    @property
    def settled_count(self) -> int:
        """How many touched paths were up to date at the last look, and not touched since."""
        return len(self._settled)

    def wake(self) -> None:
        """Make `wait` return, because there is other work than touched paths."""
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
        """Take the touched paths that have not changed for a while, or waited long enough."""
        now = time.monotonic()
        taken = [*self._debouncer.take(now), *self._unfinished.take(now)]
        for path in taken:
            del self._touches[path]
        self._settled.difference_update(taken)
        return taken

    @property
    def saved_count(self) -> int:
        """How many touched paths were not up to date at the last look and no process keeps open."""
        return sum(path not in self._settled for path in self._debouncer)

    @property
    def has_saved(self) -> bool:
        """Whether touched paths wait, quiet or not, that no process keeps open."""
        return len(self._debouncer) > 0

    def __len__(self) -> int:
        return len(self._debouncer) + len(self._unfinished)

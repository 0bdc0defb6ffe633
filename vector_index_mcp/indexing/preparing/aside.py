"""Saved files that are set aside because they take long, and what has come of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from vector_index_mcp.files.scan import Stamp
from vector_index_mcp.indexing.preparing.file import Prepared, Task


@dataclass(frozen=True, slots=True)
class Late:
    """A file that was set aside, with its stamp at that time."""

    task: Task
    stamp: Stamp


class Aside:
    """The files that are set aside, first those that have waited longest."""

    def __init__(self) -> None:
        self._waiting: dict[str, Late] = {}
        self._prepared: dict[str, tuple[Late, Prepared]] = {}  # and nobody has asked for it again
        self._wanted = anyio.Event()

    @property
    def waiting_count(self) -> int:
        """How many files are not prepared yet."""
        return len(self._waiting)

    @property
    def has_prepared(self) -> bool:
        """Whether there is a result that nobody has taken."""
        return bool(self._prepared)

    def put(self, task: Task, stamp: Stamp) -> None:
        """Set a file aside; one that has not changed since it was is not begun anew."""
        known = self._waiting.get(task.key)
        if known is None or known.stamp != stamp:
            self._waiting[task.key] = Late(task, stamp)
            self._wanted.set()

    async def next(self) -> Late:
        """The file to prepare next, once there is one."""
        while not self._waiting:
            await self._wanted.wait()
            self._wanted = anyio.Event()
        return next(iter(self._waiting.values()))

    def note(self, late: Late, prepared: Prepared) -> None:
        """Keep what has come of a file, unless it was set aside anew or dropped meanwhile."""
        key = late.task.key
        if self._waiting.get(key) is late:
            del self._waiting[key]
            self._prepared[key] = late, prepared

    def take(self, task: Task) -> tuple[Late, Prepared] | None:
        """Take what has come of a file, if it was prepared for what the index knows of it now."""
        found = self._prepared.get(task.key)
        if found is None or found[0].task.known != task.known:
            return None
        return self._prepared.pop(task.key)

    def take_all(self) -> list[str]:
        """Take all files; what has come of those that are prepared stays until `take`."""
        keys = [*self._waiting, *self._prepared]
        self._waiting.clear()
        return keys

    def drop(self, keys: Iterable[str]) -> None:
        """Wait for these files no longer, because they are prepared."""
        for key in keys:
            self._waiting.pop(key, None)

    def forget_prepared(self) -> None:
        """Drop what nobody has taken."""
        self._prepared = {}

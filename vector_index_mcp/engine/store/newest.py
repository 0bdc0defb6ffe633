"""Reads which version of a local table is the newest, to notice commits of other processes."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from vector_index_mcp.processes import detached
from vector_index_mcp.processes.detached import Detached

_State: TypeAlias = tuple[str, int, int] | None


def state_of(table: Path) -> _State:
    """Return the name, inode and mtime of the newest version's file; None if there is no table.

    Only the newest version counts: a maintenance may still be deleting older ones. lance counts
    versions down from 2^64 - 1, so the newest has the first name.
    """
    try:
        with os.scandir(table / "_versions") as files:
            newest = min((f for f in files if f.name.endswith(".manifest")), key=lambda f: f.name)
        status = newest.stat()
    except (OSError, ValueError):
        return None
    return newest.name, status.st_ino, status.st_mtime_ns


class Newest:
    """The newest versions of some local tables, as this process left them."""

    def __init__(self, tables: Sequence[Path]) -> None:
        """Prepare; `note` looks for the first time."""
        self._tables = tables
        self._left: tuple[_State, ...] | None = None  # None if they are unknown
        self._threads = Detached(1, "versions")

    @property
    def is_as_left(self) -> bool:
        """Whether they are those that were noted, or none were. Blocks."""
        now = self._now()
        if self._left is None:
            self._left = now
        return self._left == now

    async def note(self) -> None:
        """Note them as they are now; if the drive does not answer, they are unknown."""
        if not self._tables:
            return
        self._left = None
        with suppress(TimeoutError):
            self._left = await self._threads.run(lambda _: self._now(), detached.DRIVE_SECONDS)

    def _now(self) -> tuple[_State, ...]:
        return tuple(map(state_of, self._tables))

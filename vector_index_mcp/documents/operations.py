"""Runs long operations that change the index one after another, and lists them meanwhile."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation that runs or waits."""

    name: str
    """A description: `add docs`, `update`, …"""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """For how long the operation has waited and run."""
        return time.monotonic() - self.began


class Operations:
    """The operations of one index, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.listed: list[Operation] = []
        """The operation that runs, and after it those that wait."""
        self._turn = anyio.Lock()

    @asynccontextmanager
    async def doing(self, name: str) -> AsyncIterator[None]:
        """Wait until the operations before this one have ended; this one lasts as the context."""
        operation = Operation(name)
        self.listed.append(operation)
        try:
            async with self._turn:
                yield
        finally:
            self.listed.remove(operation)

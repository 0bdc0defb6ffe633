"""What takes long and changes the index: one thing after another, and visible meanwhile."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio


@dataclass(frozen=True, slots=True)
class Operation:
    """One of them."""

    name: str
    """What it does: `add docs`, `update`, …"""
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """How long it has waited and worked so far."""
        return time.monotonic() - self.began


class Operations:
    """The operations of one index, in the order in which they were asked for."""

    def __init__(self) -> None:
        self.listed: list[Operation] = []
        """The one under way, and behind it those that wait."""
        self._turn = anyio.Lock()

    @asynccontextmanager
    async def doing(self, name: str) -> AsyncIterator[None]:
        """The time of one operation, once those before it have ended."""
        operation = Operation(name)
        self.listed.append(operation)
        try:
            async with self._turn:
                yield
        finally:
            self.listed.remove(operation)

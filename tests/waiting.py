"""Waiting for what sets no event: a disk, another process, a service behind its tools."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

PATIENCE_SECONDS = 60.0  # many times what anything takes, for machines that do much else
# Between two looks. Most of what tests wait for takes some tenths of a second, and a look may cost
# as much as the work that is waited for: a tool's call takes some milliseconds of a processor.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _GROWTH = 0.01, 0.1, 1.4


async def eventually(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until `condition` returns, or its coroutine does, something true; returns that."""
    pause = _FIRST_PAUSE_SECONDS
    with anyio.fail_after(seconds):
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await anyio.sleep(pause)
            pause = min(pause * _GROWTH, _LONGEST_PAUSE_SECONDS)


def held_at(work: Callable[..., Awaitable[Any]], opened: anyio.Event) -> Callable[..., Any]:
    """Return `work`, which now waits for `opened` before it begins."""

    async def held(*arguments: Any, **options: Any) -> Any:
        await opened.wait()
        return await work(*arguments, **options)

    return held

"""Waiting for what sets no event: a disk, another process, a service behind its tools."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

PATIENCE_SECONDS = 60.0  # many times what anything takes, for machines that do much else
_LOOK_SECONDS = 0.01


async def eventually(condition: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
    """Wait until `condition` returns, or its coroutine does, something true; returns that."""
    with anyio.fail_after(seconds):
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return value
            await anyio.sleep(_LOOK_SECONDS)


def held_at(work: Callable[..., Awaitable[Any]], opened: anyio.Event) -> Callable[..., Any]:
    """Return `work`, which now waits for `opened` before it begins."""

    async def held(*arguments: Any, **options: Any) -> Any:
        await opened.wait()
        return await work(*arguments, **options)

    return held

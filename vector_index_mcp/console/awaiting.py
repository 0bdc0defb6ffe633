"""Runs what is asynchronous to its end, for commands."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from vector_index_mcp.errors import first_of

Result = TypeVar("Result")


def awaited(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Run `ask` to its end and return its result.

    An error of `ask` is raised without the exception groups that task groups wrap it in.
    """
    import anyio  # takes 0.04 s, which a command that asks a service saves

    try:
        return anyio.run(ask)
    except ExceptionGroup as group:
        raise first_of(group) from None

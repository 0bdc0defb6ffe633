"""The commands of a terminal about one index: index, search, status and verify."""

import argparse
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.settings import Settings

Result = TypeVar("Result")


def run(parsed: argparse.Namespace, project: Path, settings: Settings) -> int:
    """Run the command that was parsed; returns the exit status.

    The project's background service is asked if there is one; otherwise the index is opened here.
    What reads the whole index opens it here in any case.
    """
    if parsed.command == "verify":
        return _verify(parsed, project, settings)
    if parsed.command == "status" and parsed.skipped:
        return _here(parsed, project, settings)
    if parsed.command == "status" and parsed.watch:
        from vector_index_mcp.console import monitor

        return awaited(partial(monitor.run, project))
    if contact.ask(endpoint_of(project), greeting.REPORT) is not None:
        from vector_index_mcp.console import remote

        ask = partial(remote.run, parsed, contact.connected(project, ()))
        return awaited(ask)
    return _here(parsed, project, settings)


def _verify(parsed: argparse.Namespace, project: Path, settings: Settings) -> int:
    status = _here(parsed, project, settings)
    if status == 0 or not parsed.repair:
        return status
    run(argparse.Namespace(command="index", force=True), project, settings)
    return _here(parsed, project, settings)


def _here(parsed: argparse.Namespace, project: Path, settings: Settings) -> int:
    from vector_index_mcp.console import local  # imports LanceDB, half a second

    return awaited(partial(local.run, parsed, project, settings))


def awaited(ask: Callable[[], Awaitable[Result]]) -> Result:
    """Run `ask` to its end; its error comes without the groups that task groups put around it."""
    try:
        return anyio.run(ask)
    except ExceptionGroup as group:
        raise _unwrapped(group) from None


def _unwrapped(error: Exception) -> Exception:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        [error] = error.exceptions
    return error

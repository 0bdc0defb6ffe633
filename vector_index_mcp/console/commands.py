"""The commands of a terminal about one index: index, search, status and verify.

The project's background service answers if there is one; otherwise the index is opened here. What
reads the whole index opens it here in any case.
"""

import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.console.searching import Search
from vector_index_mcp.serving.sets import CODEBASE
from vector_index_mcp.settings import Settings

Result = TypeVar("Result")

# The imports stand in the functions: `local` imports LanceDB, half a second, and `remote` MCP.


def index(project: Path, settings: Settings, *, force: bool) -> int:
    """Bring the index up to date; returns the exit status.

    Args:
        project: The project's folder.
        settings: How the index is opened if no service runs.
        force: Read every file again.
    """
    if connection := _connection(project):
        from vector_index_mcp.console import remote

        return awaited(partial(remote.index, connection, force=force))
    from vector_index_mcp.console import local

    return awaited(partial(local.index, project, settings, force=force))


def search(project: Path, settings: Settings, wanted: Search) -> int:
    """Search and print what is found; returns the exit status."""
    if connection := _connection(project):
        from vector_index_mcp.console import remote

        return awaited(partial(remote.search, connection, wanted))
    from vector_index_mcp.console import local

    return awaited(partial(local.search, project, settings, wanted))


def status(project: Path, settings: Settings, *, as_json: bool) -> int:
    """Print what the index holds; returns the exit status."""
    if connection := _connection(project):
        from vector_index_mcp.console import remote

        return awaited(partial(remote.show_status, connection, as_json=as_json))
    from vector_index_mcp.console import local

    return awaited(partial(local.status, project, settings, as_json=as_json))


def watch(project: Path) -> int:
    """Print the status of the project's service until Ctrl+C; returns the exit status."""
    from vector_index_mcp.console import monitor

    return awaited(partial(monitor.run, project))


def skipped(project: Path, settings: Settings) -> int:
    """Print which files are not indexed, and why; returns the exit status."""
    from vector_index_mcp.console import local

    return awaited(partial(local.skipped, project, settings))


def verify(project: Path, settings: Settings, *, repair: bool) -> int:
    """Compare the index with the files; returns the exit status.

    Args:
        project: The project's folder.
        settings: How the index is opened.
        repair: If the index is not true, build it anew and compare again.
    """
    from vector_index_mcp.console import local

    compare = partial(local.verify, project, settings)
    found = awaited(compare)
    if found == 0 or not repair:
        return found
    index(project, settings, force=True)
    return awaited(compare)


def _connection(project: Path) -> socket.socket | None:
    """A session with the project's background service; None if none runs."""
    if contact.ask(endpoint_of(CODEBASE, project), greeting.REPORT) is None:
        return None
    return contact.connected(endpoint_of(CODEBASE, project), ())


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

"""The commands of a terminal about one index: index, search and status."""

import argparse
from functools import partial
from pathlib import Path

import anyio

from vector_index_mcp import output, progress
from vector_index_mcp.background import greeting, relay
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.service import Codebase, Role
from vector_index_mcp.server import load_codebase
from vector_index_mcp.settings import Settings


def run(parsed: argparse.Namespace, project: Path, settings: Settings) -> int:
    """Run the command that was parsed; returns the exit status.

    The project's background service is asked if there is one; otherwise the index is opened here.
    """
    if relay.ask(endpoint_of(project), greeting.REPORT) is not None:
        from vector_index_mcp import remote

        ask = partial(remote.run, parsed, relay.connected(project, ()))
    else:
        ask = partial(_run_here, parsed, load_codebase(project, settings))
    try:
        return anyio.run(ask)
    except ExceptionGroup as group:
        raise _unwrapped(group) from None


async def _run_here(parsed: argparse.Namespace, codebase: Codebase) -> int:
    if parsed.command == "index":
        return await _index(codebase, parsed.force)
    if parsed.command == "search":
        result = await _search(codebase, parsed.query, parsed.top_k)
        return output.of_search(result, as_json=parsed.json)
    async with codebase.running(Role.READER):
        return output.of_status(await wire.index_status(codebase), as_json=parsed.json)


async def _index(codebase: Codebase, force: bool) -> int:
    async with codebase.running(Role.VISITOR):
        indexing = await codebase.trigger(force_reindex=force)
        with progress.shown() as bar:
            await progress.follow_text(bar, indexing)
            await progress.follow_vectors(bar, codebase)
        status = await wire.index_status(codebase)
    return output.of_index(wire.run_report(indexing), status)


async def _search(codebase: Codebase, query: str, top_k: int) -> wire.SearchResult:
    async with codebase.running(Role.VISITOR):
        if indexing := await codebase.catching_up():
            with progress.shown() as bar:
                await progress.follow_text(bar, indexing)
        return wire.search_result(await codebase.search(query, top_k, wait_for_model=True))


def _unwrapped(error: Exception) -> Exception:
    """The error inside the groups that the service's task groups have put around it."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        [error] = error.exceptions
    return error

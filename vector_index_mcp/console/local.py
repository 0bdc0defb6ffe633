"""A command about one index, with the index opened here: no service of the project runs."""

import argparse
from pathlib import Path

import anyio

from vector_index_mcp.codebase import wire
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.console import output, progress
from vector_index_mcp.indexing.keeper import Role
from vector_index_mcp.indexing.ledger import FAILED, SKIPPED
from vector_index_mcp.indexing.verify import Report
from vector_index_mcp.serving.loading import open_codebase
from vector_index_mcp.settings import Settings

_CHANGES_ARE_INDEXED_SECONDS = 3.0


async def run(parsed: argparse.Namespace, project: Path, settings: Settings) -> int:
    """Run the command that was parsed; returns the exit status."""
    is_about_to_index = parsed.command == "index"
    codebase = await open_codebase(project, settings, is_about_to_index=is_about_to_index)
    if is_about_to_index:
        return await _index(codebase, parsed.force)
    if parsed.command == "search":
        result = await _search(codebase, parsed)
        return output.of_search(result, parsed)
    if parsed.command == "verify":
        return output.of_verify(await _verify(codebase))
    async with codebase.running(Role.READER):
        if parsed.skipped:
            async with codebase.index.reading() as (_, ledger):
                return output.of_skipped([*ledger.with_state(SKIPPED), *ledger.with_state(FAILED)])
        return output.of_status(await wire.index_status(codebase), as_json=parsed.json)


async def _index(codebase: Codebase, force: bool) -> int:
    async with codebase.running(Role.VISITOR):
        indexing = await codebase.index.trigger(force_reindex=force)
        with progress.shown() as bar:
            await progress.follow_text(bar, indexing)
            await progress.follow_vectors(bar, codebase.index)
        status = await wire.index_status(codebase)
    return output.of_index(wire.run_report(indexing), status)


async def _verify(codebase: Codebase) -> Report:
    async with codebase.running(Role.READER):
        report = await codebase.index.verify()
        if report.faults:
            # What has just been saved is on its way; what is wrong stays so.
            await anyio.sleep(_CHANGES_ARE_INDEXED_SECONDS)
            again = await codebase.index.verify()
            again.faults = {
                key: fault for key, fault in again.faults.items() if key in report.faults
            }
            return again
        return report


async def _search(codebase: Codebase, parsed: argparse.Namespace) -> wire.SearchResult:
    async with codebase.running(Role.VISITOR):
        if indexing := await codebase.index.catching_up():
            with progress.shown() as bar:
                await progress.follow_text(bar, indexing)
        answer = await codebase.search(
            parsed.query,
            parsed.top_k,
            path=parsed.glob,
            language=parsed.language,
            wait_for_model=True,
        )
    return wire.search_result(answer, parsed.max_tokens)

"""Commands about one index, which this process opens itself instead of asking a service."""

import shlex
import time
from pathlib import Path

import anyio

from vector_index_mcp.codebase import rendering, wire
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.console import output, progress
from vector_index_mcp.console.searching import Search
from vector_index_mcp.console.terminal import write
from vector_index_mcp.errors import Problem, SettingsError, StoreError, counted
from vector_index_mcp.indexing import following
from vector_index_mcp.indexing.opening.locks import lock_of
from vector_index_mcp.indexing.opening.writers import WriterNote
from vector_index_mcp.indexing.place import index_uri
from vector_index_mcp.indexing.reasons import FAILED, SKIPPED
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.state import State
from vector_index_mcp.indexing.vectors.given import share_vectors
from vector_index_mcp.indexing.verify import Report
from vector_index_mcp.indexing.writing.run import Run
from vector_index_mcp.serving.folders import state_folder, team_place
from vector_index_mcp.serving.loading import open_codebase
from vector_index_mcp.settings import Settings

_CHANGES_ARE_INDEXED_SECONDS = 3.0
_MAKES_VECTORS = "`vector-index-mcp index` makes vectors, and so does a service."


async def index(project: Path, settings: Settings, began: float, *, force: bool) -> int:
    """Bring the index up to date; returns the exit status.

    Args:
        project: The project's folder.
        settings: The settings to open the index with.
        began: When the command began, by the monotonic clock.
        force: Read every file again.
    """
    with progress.shown() as bar:
        place = index_uri(project, settings.lancedb_uri)
        await following.follow_writer(bar, WriterNote(lock_of(place, state_folder())))
    codebase = await open_codebase(project, settings, is_about_to_index=True)
    async with codebase.running(Role.DEPUTY):
        with progress.shown() as bar:
            await following.follow_fetch(bar, codebase.index)
            indexing = await codebase.index.trigger(force_reindex=force)
            opening = _run_before(codebase)
            await following.follow_text(bar, indexing)
            await following.follow_vectors(bar, codebase.index)
        if opening is not None and not force:
            indexing.continue_from(opening)
        current = await wire.index_status(codebase)
    report, seconds = wire.run_report(indexing), time.monotonic() - began
    return output.of_index(report, current, seconds, is_followed=False)


def _run_before(codebase: Codebase) -> Run | None:
    """The run that had ended before a request began; None if the request has joined it."""
    indexer = codebase.index.indexer
    return None if indexer is None else indexer.runs.last


async def search(project: Path, settings: Settings, wanted: Search) -> int:
    """Bring the text of the index up to date and search it; returns the exit status."""
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.VISITOR):
        with progress.shown() as bar:
            await following.follow_fetch(bar, codebase.index)
            if indexing := await codebase.index.catching_up():
                await following.follow_text(bar, indexing)
            answer = await codebase.search(
                wanted.query,
                wanted.most,
                path=wanted.glob,
                language=wanted.language,
                kind=wanted.kind,
                similar_to=wanted.similar_to,
                regex=wanted.regex,
                wait_for_model=True,
                on_loading=following.loading_shown(bar),
            )
        is_lacking = codebase.index.progress.waits_for_vectors
    most_tokens = wanted.max_tokens * len(wanted.offsets)
    result = rendering.search_result(answer, most_tokens, explain=wanted.explain)
    is_text = not result.is_pattern
    if is_text and is_lacking and result.mode == "lexical":  # a search is too short to make any
        result.note = " ".join(filter(None, (result.note, _MAKES_VECTORS)))
    return output.of_search(result, wanted)


async def status(project: Path, settings: Settings, *, as_json: bool) -> int:
    """Print what the index holds; returns the exit status, which is 1 if no index can be read.

    Raises:
        StoreError: If there is no index and the status is not printed as JSON.
    """
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.READER):
        current = await wire.index_status(codebase)
        is_there = not current.error_message or await _is_there(codebase)
    if not is_there and not as_json:
        raise _not_indexed(project)
    found = output.of_status(current, as_json=as_json)
    return found if is_there else 1


async def _is_there(codebase: Codebase) -> bool:
    """Whether there is an index; one that cannot be read counts."""
    try:
        async with codebase.index.reading():
            return True
    except StoreError as error:
        return error.problem is not Problem.INDEX_MISSING


def _not_indexed(project: Path) -> StoreError:
    return StoreError(
        f"{project} is not indexed; `vector-index-mcp index {shlex.quote(str(project))}` indexes "
        "it, and so does an MCP client that connects"
    )


async def skipped(project: Path, settings: Settings) -> int:
    """Print which files are not indexed, and why; returns the exit status."""
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.READER):
        if not await _is_there(codebase):
            raise _not_indexed(project)
        async with codebase.index.reading() as (_, ledger):
            return output.of_skipped([*ledger.with_state(SKIPPED), *ledger.with_state(FAILED)])


async def share(project: Path, settings: Settings) -> int:
    """Give the vectors of the index to the team's store; returns the exit status."""
    place = team_place(settings)
    if place is None:
        raise SettingsError(
            "set VECTOR_INDEX_SHARED_CACHE to the folder or bucket that your team shares"
        )
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.READER):
        if not await _is_there(codebase):
            raise _not_indexed(project)
        async with codebase.index.reading() as (index, _):
            given = await share_vectors(index, place)
    write(
        f"{counted(given.written, 'vector')} written to {place.uri}, in "
        f"{counted(given.packs, 'pack')} ({given.bytes_written / 1e6:,.1f} MB, "
        f"{counted(given.requests, 'request')}); {given.known:,} "
        f"{'was' if given.known == 1 else 'were'} there already"
    )
    return 0


async def verify(project: Path, settings: Settings) -> Report:
    """Compare the index with the files.

    Raises:
        ProjectError: If the project cannot be read.
        StoreError: If there is no index, or none that can be read.
    """
    codebase = await open_codebase(project, settings)
    async with codebase.running(Role.READER):
        if not await _is_there(codebase):
            raise _not_indexed(project)
        report = await codebase.index.verify()
        if report.faults and codebase.index.progress.state is State.WATCHING:
            report = await _lasting_faults(codebase, report)
    return report


async def _lasting_faults(codebase: Codebase, before: Report) -> Report:
    """Compare again after a few seconds; return a report with only the faults of both.

    A service may still be indexing a file that was just saved. A real fault stays.
    """
    await anyio.sleep(_CHANGES_ARE_INDEXED_SECONDS)
    again = await codebase.index.verify()
    again.faults = {key: fault for key, fault in again.faults.items() if key in before.faults}
    return again

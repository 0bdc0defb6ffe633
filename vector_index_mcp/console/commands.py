"""The commands about one index: index, search, status, verify and share.

The project's background service answers if one runs; otherwise this process opens the index itself.
Commands that read the whole index always open it in this process.
"""

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase.hits import SearchResult
from vector_index_mcp.console import progress
from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.console.searching import Search, in_options
from vector_index_mcp.console.terminal import write
from vector_index_mcp.errors import (
    NoServiceError,
    Problem,
    StoreError,
    VectorIndexError,
)
from vector_index_mcp.foreign import visible
from vector_index_mcp.serving.names import CODEBASE
from vector_index_mcp.settings import Settings

_STARTED = (
    "started a background service, which keeps the index up to date for the next search; it ends "
    "by itself when nobody uses it, or by `vector-index-mcp stop PATH`"
)

# Functions import what they need: `local` imports LanceDB, which takes half a second.


def index(project: Path, settings: Settings, *, force: bool) -> int:
    """Bring the index up to date; returns the exit status.

    Args:
        project: The project's folder.
        settings: The settings to open the index with if no service runs.
        force: Read every file again.
    """
    began = time.monotonic()
    answer = _answer_of_service(project, "index", {"force_reindex": force})
    if answer is None:
        from vector_index_mcp.console import local

        return awaited(partial(local.index, project, settings, began, force=force))
    from vector_index_mcp.codebase.wire import IndexStatus, RunReport
    from vector_index_mcp.console import output

    run, now = RunReport(**answer["run"]), IndexStatus.model_validate(answer["status"])
    return output.of_index(run, now, time.monotonic() - began, is_followed=True)


def search(project: Path, settings: Settings, wanted: Search, host_arguments: Sequence[str]) -> int:
    """Search and print what is found; returns the exit status.

    Args:
        project: The project's folder.
        settings: The settings to open the index with if no service can be started.
        wanted: The query and the options of the search.
        host_arguments: The arguments to start a service with if none runs. The next search then
            need not load the model, and finds an index that is up to date.
    """
    try:
        return _search(project, settings, wanted, host_arguments)
    except VectorIndexError as error:
        raise type(error)(in_options(str(error)), error.problem) from error


def _search(
    project: Path, settings: Settings, wanted: Search, host_arguments: Sequence[str]
) -> int:
    starts = None if wanted.starts_none else host_arguments
    is_new = starts is not None and endpoint_of(CODEBASE, project).keeper is None
    try:
        answer = _answer_of_service(project, "search", wanted.arguments, starts)
        if is_new:
            write(_STARTED, sys.stderr)
    except NoServiceError as error:
        write(f"{visible(str(error))}; searching without one", sys.stderr)
        answer = None
    if answer is None:
        from vector_index_mcp.console import local

        return awaited(partial(local.search, project, settings, wanted))
    from vector_index_mcp.console import output

    result = SearchResult.model_validate(answer)
    for offset in wanted.offsets[1:]:
        if len(result.results) < offset or not result.is_pattern:
            break
        page = _answer_of_service(project, "search", {**wanted.arguments, "offset": offset}, starts)
        result.results += SearchResult.model_validate(page).results if page else []
    return output.of_search(result, wanted)


def status(project: Path, settings: Settings, *, as_json: bool) -> int:
    """Print what the index holds; returns the exit status."""
    answer = _answer_of_service(project, "status", {})
    if answer is None:
        if lack := endpoint_of(CODEBASE, project).lack_of_space:
            write(visible(lack), sys.stderr)
        from vector_index_mcp.console import local

        return awaited(partial(local.status, project, settings, as_json=as_json))
    from vector_index_mcp.codebase.wire import IndexStatus
    from vector_index_mcp.console import output

    return output.of_status(IndexStatus.model_validate(answer), as_json=as_json)


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
        settings: The settings to open the index with.
        repair: If the index differs from the files or is damaged, rebuild it and compare again.
    """
    from vector_index_mcp.console import local, output

    compare = partial(local.verify, project, settings)
    try:
        report = awaited(compare)
    except StoreError as error:
        if not repair or error.problem is not Problem.INDEX_DAMAGED:
            raise
        write(visible(str(error)), sys.stderr)
    else:
        status = output.of_verify(report)
        if not (repair and report.faults):
            return status
    index(project, settings, force=True)
    return output.of_verify(awaited(compare))


def share(project: Path, settings: Settings) -> int:
    """Give the vectors of the index to the team's store; returns the exit status.

    Raises:
        SettingsError: If no such store is set.
        StoreError: If there is no index, or the store cannot be used.
    """
    from vector_index_mcp.console import local

    return awaited(partial(local.share, project, settings))


def _answer_of_service(
    project: Path,
    call: str,
    given: dict[str, Any],
    host_arguments: Sequence[str] | None = None,
) -> Any | None:
    """Call the project's service and return its answer.

    Args:
        project: The project's folder.
        call: The name of the call.
        given: The arguments of the call.
        host_arguments: The arguments to start a service with if none runs; None: start none.

    Returns:
        The answer; None if no service runs and none is to be started.
    """
    with progress.shown() as show:

        def report(message: dict[str, Any]) -> None:
            show(
                str(message.get("what")), int(message.get("done", 0)), int(message.get("total", 0))
            )

        endpoint, patience = endpoint_of(CODEBASE, project), contact.JOINING_SECONDS
        return contact.call(
            endpoint, call, given, report, host_arguments, patience=patience, may_repeat=True
        )

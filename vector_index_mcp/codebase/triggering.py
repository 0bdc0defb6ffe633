"""Brings the index up to date because somebody asks for it, and says how far it is."""

from typing import TYPE_CHECKING

import anyio

from vector_index_mcp.codebase import wire
from vector_index_mcp.errors import VectorIndexError, counted, listed
from vector_index_mcp.indexing.writing.run import Run
from vector_index_mcp.protocol import Report

if TYPE_CHECKING:  # these import LanceDB, for which `tools` must not wait
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.indexing.status import Progress, Status

PATIENCE_SECONDS = 45.0
"""How long to wait for the end. By default, clients give up on a call after 60 s."""
_MOST_NAMED = 3  # get_status names more


async def triggered(
    codebase: "Codebase", report: Report, *, force_reindex: bool
) -> wire.TriggerResult:
    """Compare the project with the index, and wait until text and vectors are up to date.

    Args:
        codebase: It must be running.
        report: Reports progress.
        force_reindex: Whether to rebuild the index.

    Returns:
        How far it is when all is done, or after `PATIENCE_SECONDS`. The work goes on.

    Raises:
        VectorIndexError: If the run fails.
    """
    run = await codebase.index.trigger(force_reindex=force_reindex)
    with anyio.move_on_after(PATIENCE_SECONDS):
        await _follow(report, codebase.index, run)
    now = await codebase.index.status()
    return _result(now, run, await codebase.pending())


async def _follow(report: Report, index: "LiveIndex", run: Run) -> None:
    """Report progress until the run has ended and no chunk waits for a vector any more."""
    while not run.finished.is_set():
        progressed = run.progressed
        if run.files_to_do:
            message = f"{run.files_done:,} of {counted(run.files_to_do, 'file')} indexed"
            await report(run.files_done, run.files_to_do, message)
        await progressed.wait()
    steps = run.files_to_do + 1  # one more, for the end of the run
    reported = -1
    while (now := index.progress).is_embedding:
        if now.embedded > reported:  # MCP requires progress to grow, and loading takes a while
            reported = now.embedded
            message = f"{now.embedded:,} of {counted(now.chunks, 'chunk')} embedded"
            await report(steps + now.embedded, steps + now.chunks, message)
        await index.embedding_progressed()


def _result(now: "Status", run: Run, pending: int) -> wire.TriggerResult:
    if run.error:
        raise VectorIndexError(run.error)
    lack = _lack(now.progress, run, pending)
    return wire.TriggerResult(
        message=lack or _done(now),
        complete=not lack,
        run=wire.run_report(run),
        indexed_file_count=now.indexed,
        indexed_chunk_count=now.chunks,
        embedded_chunk_count=now.embedded,
    )


def _done(now: "Status") -> str:
    """Say that nothing is left to do, and which files the index lacks all the same."""
    if not now.failed:
        return "The index is complete and up to date."
    named = listed([f"{each.key} ({each.reason})" for each in now.failed], _MOST_NAMED)
    return f"The index is up to date, but lacks what cannot be indexed: {named}."


def _lack(progress: "Progress", run: Run, pending: int) -> str:
    """Say what the index still lacks; empty for nothing."""
    if not run.finished.is_set():
        return "Indexing goes on in the background; get_status shows its progress."
    if progress.error:
        return f"The index is not up to date: {progress.error}."
    if pending:
        paths = counted(pending, "path")
        return f"Files changed meanwhile and still have to be indexed: {paths}."
    if not progress.lacks_vectors:
        return ""
    reason = progress.vectors_failure or progress.embedder_reason
    limit = (
        f"Not all of it can be found by meaning: {reason}."
        if reason
        else "Embedding goes on in the background."
    )
    return f"All text is indexed and can be found by words. {limit}"

"""Finds out why an index may not match its folders now."""

from dataclasses import dataclass

import anyio.to_thread

from vector_index_mcp.indexing.reasons import FAILED
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.indexing.settled import note_settled
from vector_index_mcp.indexing.state import State
from vector_index_mcp.indexing.writing.run import Run


@dataclass(frozen=True, slots=True)
class Backlog:
    """The reasons why an index may not match its folders now."""

    run: Run | None = None
    """The run under way."""
    pending: int = 0
    """How many changed paths are not indexed yet."""
    error: str = ""
    """Why the index cannot be brought up to date; empty if it can."""
    is_kept: bool = True
    """Whether any process follows the changes."""
    unreadable: int = 0
    """How many folders cannot be read."""
    failed: int = 0
    """How many files could not be indexed."""
    disobeyed: int = 0
    """How many ignore files are too large to be obeyed, or unreadable."""
    left_out: int = 0
    """How many files are over the limit of files."""
    polling: str = ""
    """Why changes are not noticed at once; empty if they are."""


async def backlog_of(index: LiveIndex) -> Backlog:
    """The reasons why an index may not match its folders now."""
    indexer, freshness, state = index.indexer, index.freshness, index.state
    if indexer is None:
        problem = state.error or index.refusal
        return Backlog(
            error=problem or await anyio.to_thread.run_sync(index.note.lack),
            is_kept=state.current in {State.WATCHING, State.SCANNING},
        )
    await note_settled(indexer, index.looks)
    return Backlog(
        run=indexer.runs.current,
        pending=indexer.outdated_path_count,
        error=state.error or "",
        unreadable=len(indexer.outlook.unreadable),
        failed=indexer.live.ledger.count(FAILED),
        disobeyed=len(indexer.outlook.disobeyed),
        left_out=indexer.outlook.left_out,
        polling=freshness.noticing.problem if freshness is not None else "",
    )

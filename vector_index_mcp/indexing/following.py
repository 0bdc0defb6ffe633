"""Shows the progress of an index that is being brought up to date."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # imports LanceDB, which a command that asks a running service does not need
    from vector_index_mcp.indexing.service import LiveIndex

_MEGABYTE = 1_000_000
_LOOK_SECONDS = 0.05
Show = Callable[[str, int, int], None]
"""Shows one step's progress, given (name of the step, units done, units in all)."""


async def follow_fetch(show: Show, index: "LiveIndex") -> None:
    """Show how much of the shared index is fetched, until the index is open or cannot be."""
    while not index.is_open:
        if index.fetch is not None:
            fetched, total = index.fetch.bytes_done, index.fetch.total
            show("fetching the shared index, MB", fetched // _MEGABYTE, total // _MEGABYTE)
        await anyio.sleep(_LOOK_SECONDS)


async def follow_text(show: Show, run: Run) -> None:
    """Show `run` until it is finished."""
    while not run.finished.is_set():
        progressed = run.progressed
        show("indexing files", run.files_done, run.files_to_do)
        await progressed.wait()
    show("indexing files", run.files_done, run.files_to_do)


async def follow_vectors(show: Show, index: "LiveIndex") -> None:
    """Show the embedding until every chunk has its vector, or no further chunk can get one."""
    while True:
        now = index.progress
        show("embedding chunks", now.embedded, now.chunks)
        if not now.waits_for_vectors:
            return
        await index.embedding_progressed()

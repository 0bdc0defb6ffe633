"""How far an index is that is being brought up to date, for whoever waits."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio

from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # a command that asks a running service needs no LanceDB
    from vector_index_mcp.indexing.service import LiveIndex

_MEGABYTE = 1_000_000
_LOOK_SECONDS = 0.05
Show = Callable[[str, int, int], None]
"""Shows how much of what is done: (what, done, total)."""


async def follow_fetch(show: Show, index: "LiveIndex") -> None:
    """Show how far the shared index is fetched, until it is known whether it can be opened."""
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
    """Show the embedding until every chunk has its vector, or no more will get one."""
    while True:
        now = index.progress
        show("embedding chunks", now.embedded, now.chunks)
        if not now.waits_for_vectors:
            return
        await index.embedding_progressed()

"""Shows the progress of an index that is being brought up to date."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread

from vector_index_mcp.errors import BusyError, StoreError, first_of
from vector_index_mcp.indexing.opening.writers import WriterNote
from vector_index_mcp.indexing.writing.run import Run

if TYPE_CHECKING:  # imports LanceDB, which a command that asks a running service does not need
    from vector_index_mcp.indexing.service import LiveIndex

_MEGABYTE = 1_000_000
_LOOK_SECONDS = 0.05
_NO_FEWER_SECONDS = 240.0  # 256 vectors are stored at once, which takes a slow machine 2 minutes
Show = Callable[[str, int, int], None]
"""Shows one step's progress, given (name of the step, units done, units in all).

Both numbers are 0 if nobody knows how far the step is.
"""
Tell: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends the progress of a call: the step (`what`), units `done` of it, and units in `total`."""


@asynccontextmanager
async def passed_on(tell: Tell) -> AsyncIterator[Show]:
    """A function that sends progress through `tell`; it drops reports if `tell` is slow.

    An error in the context, or of `tell`, is raised as it is.
    """
    send, received = anyio.create_memory_object_stream[dict[str, Any]](1)

    def show(what: str, done: int, total: int) -> None:
        with suppress(anyio.WouldBlock):
            send.send_nowait({"what": what, "done": done, "total": total})

    async def pass_on() -> None:
        async for progress in received:
            await tell(progress)

    try:
        async with received, anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on)
            with send:  # closing the stream ends `pass_on`
                yield show
    except ExceptionGroup as group:
        raise first_of(group) from None


def loading_shown(show: Show) -> Callable[[], None]:
    """What a search is given to call when it waits for the model (`asking.OnLoading`)."""
    return lambda: show("waiting until the embedding model is loaded", 0, 0)


async def follow_writer(show: Show, note: WriterNote) -> None:
    """Show that another command brings the index up to date, until it has ended.

    Raises:
        BusyError: If that command is stopped.
    """
    while (writer := await anyio.to_thread.run_sync(note.read)) is not None and writer.is_passing:
        if stop := writer.stop:
            raise BusyError(stop)
        show(f"waiting for process {writer.pid}, which indexes the same folder", 0, 0)
        await anyio.sleep(_LOOK_SECONDS)


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


async def settle(index: "LiveIndex") -> None:
    """Compare all folders with the index, and wait until it is up to date.

    Raises:
        BusyError: If another process is the index's writer.
        StoreError: If the index cannot be opened or written.
    """
    run = await index.trigger(force_reindex=False)
    await run.finished.wait()
    # Without folders there is nothing to write; the status tells which are out of reach.
    if run.error and await index.looks.absence(index.folders) is None:
        raise StoreError(run.error)


async def follow_vectors(
    show: Show, index: "LiveIndex", patience: float = _NO_FEWER_SECONDS
) -> None:
    """Show the embedding until every chunk has its vector, or no further chunk can get one.

    Args:
        show: Shows it.
        index: The index.
        patience: For how many seconds chunks may lack vectors without becoming fewer, as they do
            where files change all the time. Then a command follows changes no longer, so that it
            ends, and in a service, which goes on, this returns.
    """
    fewest, since = float("inf"), anyio.current_time()
    has_begun = False
    while True:
        now = index.progress
        has_begun |= now.embedded < now.chunks
        if has_begun:
            show("embedding chunks", now.embedded, now.chunks)
        if not now.is_embedding:
            return
        lacking = now.chunks - now.embedded
        # If none is lacking, all may be dropped in a moment, after a look at the model.
        if not lacking or lacking < fewest or now.embedder_state != "ready":
            fewest, since = lacking or float("inf"), anyio.current_time()
        elif anyio.current_time() - since > patience:
            if not await index.stop_watching():
                return
            since = float("inf")
        await index.embedding_progressed()

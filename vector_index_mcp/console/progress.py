"""The progress of a command on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # a command that asks a running service needs no LanceDB
    from vector_index_mcp.indexing.service import LiveIndex

Show = Callable[[str, int, int], None]
"""Shows how much of what is done: (what, done, total)."""

_SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def shown() -> Iterator[Show]:
    """A function that shows progress, until the context ends."""
    if sys.stderr.isatty():
        yield from _bar()
    else:
        yield _lines()


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


def _bar() -> Iterator[Show]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        tasks = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bar.add_task(what)
            bar.update(tasks[what], completed=done, total=total)

        yield show


def _lines() -> Show:
    last_shown, last_line = 0.0, ""

    def show(what: str, done: int, total: int) -> None:
        nonlocal last_shown, last_line
        line = f"{what}: {done} of {total}\n"
        is_too_soon = done < total and time.monotonic() - last_shown < _SECONDS_BETWEEN_LINES
        if not total or line == last_line or is_too_soon:
            return
        last_shown, last_line = time.monotonic(), line
        sys.stderr.write(line)
        sys.stderr.flush()

    return show

"""The progress of a command on stderr: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vector_index_mcp.indexing.following import Show

_SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def shown() -> Iterator[Show]:
    """A function that shows progress, until the context ends."""
    if sys.stderr.isatty():
        yield from _bar()
    else:
        yield _lines()


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

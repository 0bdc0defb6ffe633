"""Shows the progress of a command on stderr: a bar on a terminal, elsewhere occasional lines."""

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # importing rich takes 0.1 s, longer than most commands run
    from rich.progress import Progress

    from vector_index_mcp.indexing.following import Show

_SECONDS_BETWEEN_LINES = 2.0


@contextmanager
def shown() -> Iterator["Show"]:
    """Yield a function that shows progress until the context ends."""
    if not sys.stderr.isatty():
        yield _lines()
        return
    with ExitStack() as stack:
        yield _bar(stack)


def _bar(stack: ExitStack) -> "Show":
    """Return a function that shows a bar; the bar appears with the first progress."""
    bar: Progress | None = None
    tasks: dict[str, Any] = {}

    def show(what: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            bar = stack.enter_context(_drawn())
            stack.callback(_drop_uncounted, bar)
        if what not in tasks:
            tasks[what] = bar.add_task(what, total=None, count="")
        count = f"{done:,}/{total:,}" if total else ""
        bar.update(tasks[what], completed=done, total=total or None, count=count)

    return show


def _drop_uncounted(bar: "Progress") -> None:
    """Leave no step on the screen of which nobody knows how far it came."""
    for task in bar.tasks:
        if task.total is None:
            bar.remove_task(task.id)


def _drawn() -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[count]}"))
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True))


def _lines() -> "Show":
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

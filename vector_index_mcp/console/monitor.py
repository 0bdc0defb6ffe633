"""`status --watch`: shows the status of a project's background service until Ctrl+C.

The command starts no service. While none runs, it waits for one.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from rich.console import Console
from rich.live import Live

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.codebase.wire import IndexStatus
from vector_index_mcp.console import view
from vector_index_mcp.console.output import visible_status
from vector_index_mcp.console.terminal import prepared, write
from vector_index_mcp.errors import NoServiceError, ServiceEndedError
from vector_index_mcp.foreign import visible
from vector_index_mcp.serving.names import CODEBASE

Show = Callable[[IndexStatus | str], None]
"""Shows a status, or a sentence that says why there is none."""

_IDLE_SECONDS = 1.0  # between two requests; each costs the service some 5 ms
_BUSY_SECONDS = 0.5


async def run(project: Path) -> int:
    """Show the status of the service of `project` until the user interrupts it."""
    endpoint = endpoint_of(CODEBASE, project)
    with _shown(project) as show:
        while True:
            status = await anyio.to_thread.run_sync(_status, endpoint)
            show(status)
            await anyio.sleep(_BUSY_SECONDS if _is_busy(status) else _IDLE_SECONDS)


def _status(endpoint: Endpoint) -> IndexStatus | str:
    """Return the status that the service reports, or why it reports none."""
    try:
        if (answer := contact.call(endpoint, "status", {}, lambda _: None)) is not None:
            return visible_status(IndexStatus.model_validate(answer))
    except ServiceEndedError:
        pass
    except NoServiceError as error:
        return visible(str(error))
    if silence := contact.silence(endpoint, contact.JOINING_SECONDS):
        return visible(silence)
    lack = visible(endpoint.lack_of_space)
    return f"{view.NO_SERVICE}: {lack}" if lack else view.NO_SERVICE


def _is_busy(status: IndexStatus | str) -> bool:
    if isinstance(status, str):
        return False
    return status.current_run is not None or status.pending_path_count > 0


@contextmanager
def _shown(project: Path) -> Iterator[Show]:
    console = Console(file=prepared(sys.stdout), highlight=False)
    if console.is_terminal and not console.is_dumb_terminal:
        yield from _picture(visible(str(project)), console)
    else:
        yield _lines()


def _picture(project: str, console: Console) -> Iterator[Show]:
    rate = view.Rate()
    with Live(console=console, screen=True, auto_refresh=False) as live:

        def show(status: IndexStatus | str) -> None:
            embedded = 0 if isinstance(status, str) else status.embedded_chunk_count
            rate.note(time.monotonic(), embedded)
            live.update(view.Picture(project, status, rate.per_second), refresh=True)

        yield show


def _lines() -> Show:
    before: IndexStatus | None = None
    shown = ""

    def show(status: IndexStatus | str) -> None:
        nonlocal before, shown
        if isinstance(status, str):
            before, summary = None, status
        else:
            for line in view.change_lines(before, status):
                write(line)
            before, summary = status, view.summary(status)
        if summary != shown:
            write(summary)
            shown = summary

    return show

"""`status --watch`: shows the status of the documents' service until Ctrl+C.

The command starts no service. While none runs, it waits for one.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.console.colours import Colours
from vector_index_mcp.console.documents import reports
from vector_index_mcp.console.terminal import prepared, write
from vector_index_mcp.errors import NoServiceError, ServiceEndedError
from vector_index_mcp.foreign import visible

_Show = Callable[[str], None]

_IDLE_SECONDS, _BUSY_SECONDS = 1.0, 0.5  # between two requests
_NO_SERVICE = "no service is running"
_TO_START_ONE = "the next MCP client starts one"


def run(endpoint: Endpoint, colours: Colours) -> int:
    """Show the status of the service until the user interrupts it.

    Raises:
        BackgroundError: If the running service is of another version.
    """
    with _shown() as show:
        while True:
            state = _state(endpoint)
            show(_absence(endpoint) if state is None else _report(state, colours))
            time.sleep(_BUSY_SECONDS if state and state["work"] else _IDLE_SECONDS)


def _absence(endpoint: Endpoint) -> str:
    if silence := contact.silence(endpoint, contact.JOINING_SECONDS):
        return f"{visible(silence)}\n"
    return f"{_NO_SERVICE}; {visible(endpoint.lack_of_space) or _TO_START_ONE}\n"


def _report(state: Mapping[str, Any], colours: Colours) -> str:
    return f"{reports.of_state(state, time.time(), colours)}\n{reports.of_work(state)}"


def _state(endpoint: Endpoint) -> Mapping[str, Any] | None:
    try:
        found: Mapping[str, Any] | None = contact.call(endpoint, "status", {}, lambda _: None)
    except (NoServiceError, ServiceEndedError):
        return None
    return found


@contextmanager
def _shown() -> Iterator[_Show]:
    """Yield a function that shows a text: in place on a terminal, elsewhere its changed lines."""
    console = Console(file=prepared(sys.stdout), highlight=False)
    if not console.is_terminal or console.is_dumb_terminal:
        yield _lines()
        return
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)


def _lines() -> _Show:
    shown: set[str] = set()

    def show(text: str) -> None:
        nonlocal shown
        lines = text.splitlines()
        if new := [line for line in lines if line and line not in shown]:
            write("\n".join(new))
        shown = {*lines}

    return show

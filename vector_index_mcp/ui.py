"""The command `ui`: a link to the page of a project's background service, and a browser for it."""

import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from vector_index_mcp.background import greeting, relay
from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.errors import BackgroundError

# Without any of them a Unix has text browsers at best, which would take the terminal.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def run(project: Path, host_arguments: Sequence[str], *, opens_browser: bool) -> int:
    """Print a link that works once, and open it if there is where to; returns the exit status.

    Raises:
        BackgroundError: If there is no service, and none can be started.
    """
    with relay.connected(project, host_arguments):  # a client meanwhile, so that it does not end
        answer = relay.ask(endpoint_of(project), greeting.PAGE)
    if answer is None:
        raise BackgroundError("the background service has just ended; try again")
    sys.stdout.write(f"{answer['url']}\n")
    sys.stdout.flush()
    if opens_browser and _has_screen() and webbrowser.open(answer["url"]):
        sys.stderr.write("opened in your browser; the link works once, for a few minutes\n")
    else:
        sys.stderr.write("open this link in a browser; it works once, for a few minutes\n")
    return 0


def _has_screen() -> bool:
    return sys.platform in {"win32", "darwin"} or any(map(os.environ.get, _SCREENS))

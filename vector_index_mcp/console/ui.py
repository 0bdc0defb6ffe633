"""The command `ui`: prints a link to the page of a background service, and opens a browser.

The link is a secret for a few minutes. It is printed in the user's own terminal. The browser gets
it in a file, since every user of the machine can read the arguments of the browser's process.
"""

import os
import platform
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.errors import BackgroundError

# If none is set, a Unix has at most text browsers, which would take over the terminal.
_SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
# VS Code sets this in a terminal whose window may be on another machine. The browser there cannot
# read our file; a click on the printed link works.
_ELSEWHERE = "VSCODE_IPC_HOOK_CLI"


def run(endpoint: Endpoint, host_arguments: Sequence[str], *, opens_browser: bool) -> int:
    """Print a link that works once, and open it if there is a screen; returns the exit status.

    Raises:
        BackgroundError: If no service runs and none can be started.
    """
    is_opened = opens_browser and _has_screen()
    request = greeting.PAGE_IN_A_FILE if is_opened else greeting.PAGE
    connection, _ = contact.granted(endpoint, host_arguments, greeting.MCP)
    with connection:  # a service with a client does not end
        answer = contact.ask(endpoint, request)
    if answer is None:
        raise BackgroundError("the background service has just ended; try again")
    sys.stdout.write(f"{answer['url']}\n")
    sys.stdout.flush()
    file = answer.get("file")
    if file and webbrowser.open(Path(file).as_uri()):
        sys.stderr.write(
            "opening in your browser; if no page comes up, open this link there: "
            "it works once, for a few minutes\n"
        )
    else:
        sys.stderr.write("open this link in a browser; it works once, for a few minutes\n")
    return 0


def _has_screen() -> bool:
    """Whether a browser on this machine can open our file."""
    # On WSL ("microsoft" in the release) the browser runs on Windows, which cannot open it either.
    if os.environ.get(_ELSEWHERE) or "microsoft" in platform.release().lower():
        return False
    return sys.platform in {"win32", "darwin"} or any(map(os.environ.get, _SCREENS))

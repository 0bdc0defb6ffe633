"""Where the notes of a user lie."""

import os
from collections.abc import Mapping
from pathlib import Path

from vector_index_mcp.errors import SettingsError

VARIABLE = "KNOWLEDGE_MCP_HOME"
LEVEL_VARIABLE = "KNOWLEDGE_MCP_LOG_LEVEL"
_USUAL = "~/.knowledge-mcp"


def home_of(given: str, environment: Mapping[str, str], here: Path) -> Path:
    """The folder of the notes, absolute and resolved; it need not be there yet.

    Args:
        given: On the command line; empty if nothing was.
        environment: In which the variable may stand.
        here: Where relative paths start.

    Raises:
        SettingsError: If the home folder is needed and not known.
    """
    wanted = given or environment.get(VARIABLE, "") or _USUAL
    try:
        path = Path(wanted).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"your home folder is not known; set {VARIABLE}") from error
    return Path(os.path.realpath(here / path))

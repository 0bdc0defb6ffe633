"""The folder in which a user's notes lie."""

import os
from collections.abc import Mapping
from pathlib import Path

from vector_index_mcp.errors import SettingsError

VARIABLE = "KNOWLEDGE_MCP_HOME"
LEVEL_VARIABLE = "KNOWLEDGE_MCP_LOG_LEVEL"
_USUAL = "~/.knowledge-mcp"


def home_of(given: str, environment: Mapping[str, str], here: Path) -> Path:
    """Return the folder of the notes, absolute and resolved; it need not exist yet.

    Args:
        given: The folder given on the command line; empty if there was none.
        environment: The environment variables, of which `VARIABLE` may name the folder.
        here: The folder that relative paths are relative to.

    Raises:
        SettingsError: If the path begins with `~` and the home folder is not known.
    """
    wanted = given or environment.get(VARIABLE, "") or _USUAL
    try:
        path = Path(wanted).expanduser()
    except RuntimeError as error:
        whose = wanted.partition("/")[0]
        raise SettingsError(
            f"the home folder {whose!r} is not known; set {VARIABLE} to a full path"
        ) from error
    return Path(os.path.realpath(here / path))

"""Reads paths as people type them."""

import os
from pathlib import Path

from vector_index_mcp.errors import SettingsError


def resolved(written: str) -> Path:
    """Return the real path of a path that a person typed: with `~` and links resolved.

    Raises:
        SettingsError: If it begins with `~` and the name of nobody, or of somebody without a home.
    """
    try:
        return Path(os.path.realpath(Path(written).expanduser()))
    except (RuntimeError, ValueError):
        raise SettingsError(f"{written!r} leads nowhere; give the full path") from None

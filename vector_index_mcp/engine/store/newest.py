"""Whether somebody else has committed to a table on this machine."""

import os
from pathlib import Path


def state_of(table: Path) -> tuple[str, int, int] | None:
    """What differs between any two versions of a local table; None if there is no table.

    The newest version's file: older ones may still be going away after a maintenance. lance counts
    them down from 2^64 - 1, so that the newest has the first name.
    """
    try:
        with os.scandir(table / "_versions") as files:
            newest = min((f for f in files if f.name.endswith(".manifest")), key=lambda f: f.name)
        status = newest.stat()
    except (OSError, ValueError):
        return None
    return newest.name, status.st_ino, status.st_mtime_ns

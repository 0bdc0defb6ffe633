"""Reads which version of a local table is the newest, to notice commits of other processes."""

import os
from pathlib import Path


def state_of(table: Path) -> tuple[str, int, int] | None:
    """Return the name, inode and mtime of the newest version's file; None if there is no table.

    Only the newest version counts: a maintenance may still be deleting older ones. lance counts
    versions down from 2^64 - 1, so the newest has the first name.
    """
    try:
        with os.scandir(table / "_versions") as files:
            newest = min((f for f in files if f.name.endswith(".manifest")), key=lambda f: f.name)
        status = newest.stat()
    except (OSError, ValueError):
        return None
    return newest.name, status.st_ino, status.st_mtime_ns

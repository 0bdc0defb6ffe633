"""File locks by which processes take turns; the system frees the lock of one that dies."""

import os
from pathlib import Path

import filelock

from vector_index_mcp.files import beneath

_OPEN_FOLDERS = Path("/proc/self/fd")  # Linux


def lock_in(folder: beneath.Folder, name: str, poll_seconds: float) -> filelock.BaseFileLock:
    """Return the lock in a file of an open folder, which the caller keeps open; not held yet.

    By its path, the library would make the folder anew if it has just been moved away.
    """
    here = _OPEN_FOLDERS / str(folder.at)
    place = here if folder.at is not None and os.path.isdir(here) else folder.path
    return filelock.FileLock(place / name, mode=0o600, poll_interval=poll_seconds)

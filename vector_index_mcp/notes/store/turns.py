"""File locks by which processes take turns; the system frees the lock of one that dies."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import filelock

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import WORK, Disk, reported

_LOCK = "lock"
_OTHERS_SECONDS = 60.0  # how long to wait for another process's lock
_LOOK_SECONDS = 0.005
_OPEN_FOLDERS = Path("/proc/self/fd")  # Linux


def lock_in(folder: beneath.Folder, name: str, poll_seconds: float) -> filelock.BaseFileLock:
    """Return the lock in a file of an open folder, which the caller keeps open; not held yet.

    By its path, the library would make the folder anew if it has just been moved away.
    """
    here = _OPEN_FOLDERS / str(folder.at)
    place = here if folder.at is not None and os.path.isdir(here) else folder.path
    return filelock.FileLock(place / name, mode=0o600, poll_interval=poll_seconds)


@contextmanager
def turn_at(disk: Disk) -> Iterator[None]:
    """Keep other processes from writing the store while the context lasts.

    Raises:
        Refusal: If another one writes for too long, or the lock cannot be made.
    """
    with ExitStack() as opened:
        with reported(WORK):
            # This makes `.git` as well, since a new store is made under the lock.
            work = opened.enter_context(beneath.opened(disk.root, WORK, is_made=True))
            lock = lock_in(work, _LOCK, _LOOK_SECONDS)
            try:
                opened.enter_context(lock.acquire(timeout=_OTHERS_SECONDS))
            except filelock.Timeout as error:
                raise Refusal(
                    Code.FILE_SYSTEM_ERROR,
                    f"another process has been writing to the notes for {_OTHERS_SECONDS:.0f} s; "
                    "try again",
                ) from error
        yield

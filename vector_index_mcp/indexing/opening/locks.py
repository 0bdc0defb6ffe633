"""File locks, which the system releases when the process that holds them ends."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from vector_index_mcp.errors import BusyError, StorageError

LOCKS = "locks"
# To look at a lock is to hold it for less than a millisecond: see `is_held`.
_LOOK_SECONDS = 0.05


def lock_of(uri: str, state_folder: Path) -> Path:
    """The path of the outer lock: the one that an index's writer holds in the state folder."""
    return state_folder / LOCKS / f"{name_of(uri)}.lock"


@contextmanager
def held(lock: Path, seconds: float = 0) -> Iterator[None]:
    """Hold a lock while the context lasts.

    Args:
        lock: The lock's file. It is made if it is missing, and replaced if it is a link.
        seconds: How long to wait for the lock.

    Raises:
        BusyError: If another process holds it.
        OSError: If the file cannot be made.
    """
    make_sound(lock)
    try:
        with new_lock(lock).acquire(timeout=seconds):
            yield
    except filelock.Timeout:
        raise BusyError("another process uses it; end that, and try again") from None


def name_of(place: str) -> str:
    """A file name for a path or a URI."""
    return hashlib.sha256(os.fsencode(place)).hexdigest()[:16]


def new_lock(path: Path) -> filelock.BaseFileLock:
    """The lock in the file `path`, not held yet."""
    return filelock.FileLock(path, is_singleton=False, thread_local=False)


def try_acquire(lock: filelock.BaseFileLock) -> bool:
    """Acquire a lock; False if another process holds it, and not only to look at it.

    Raises:
        OSError: If it cannot be made.
    """
    try:
        lock.acquire(timeout=_LOOK_SECONDS, poll_interval=_LOOK_SECONDS)
    except filelock.Timeout:
        return False
    return True


def try_acquire_in_state(lock: filelock.BaseFileLock) -> bool:
    """Like `try_acquire`, for a lock in the state folder, which is made if it is missing.

    Raises:
        StorageError: If the lock cannot be made.
    """
    folder = Path(lock.lock_file).parent
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(exist_ok=True)
        return try_acquire(lock)
    except OSError as error:
        raise unusable_state(folder, "written", error) from error


def unusable_state(folder: Path, how: str, error: OSError) -> StorageError:
    """The error for a folder in the state folder that cannot be "read" or "written"."""
    return StorageError(
        f"the folder {folder}, which is for locks and records of indexes, cannot be {how} "
        f"({error.strerror}); set XDG_STATE_HOME to a folder you may write"
    )


def make_sound(lock: Path) -> None:
    """Remove a lock's file if it is a link of any kind, which another index may share."""
    try:
        status = lock.lstat()
    except FileNotFoundError:
        return
    if lock.is_symlink() or status.st_nlink > 1:
        lock.unlink()


def is_held(path: Path) -> bool:
    """Whether a process holds the lock at `path`."""
    if path.is_symlink() or not path.is_file():
        return False
    lock = new_lock(path)
    try:
        with lock.acquire(timeout=0):
            return False
    except filelock.Timeout:
        return True
    except OSError:
        return False

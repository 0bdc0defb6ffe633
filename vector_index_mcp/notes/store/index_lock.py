"""The lock of git's index, which git itself and we take before the index changes."""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

import filelock

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk
from vector_index_mcp.notes.store.turns import lock_in

_LOCK = "index.lock"
_TURNS = "staging.lock"  # of the processes of ours
_OURS, _PART = "index.held", "new.part"
_OTHERS_SECONDS = 10.0
# A person's git mostly holds the index for a few milliseconds; `git commit -a` does so for as long
# as its editor is open, and then refuses to commit, since the branch has moved.
_SECONDS, _LOOK_SECONDS = 1.0, 0.005
_LONG_SECONDS = 10.0  # no change waits for a lock of this age: a killed git may have left it


class IndexIsLocked(Refusal):
    """Somebody else holds the lock of the index."""

    def __init__(self, words: str) -> None:
        super().__init__(Code.GIT_ERROR, words)


@dataclass(frozen=True, slots=True)
class Held:
    """The folders that are open while we hold the lock of the index."""

    work: beneath.Folder
    git: beneath.Folder

    def write(self, name: str, data: bytes) -> None:
        """Write a file in the work folder, in one step."""
        with os.fdopen(self.work.open(_PART, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(data)
        self.work.replace(_PART, name)


class IndexLock:
    """The lock of one repository's index, for one thread. The methods block."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.held: Held | None = None
        """The folders to work in while we hold the lock."""

    @contextlib.contextmanager
    def holding(self, seconds: float | None = None) -> Iterator[Held]:
        """Hold the lock while the context lasts; nested use does nothing.

        Args:
            seconds: How long to wait for somebody else who holds it; by default a second.

        Raises:
            IndexIsLocked: If somebody else holds it for longer.
            OSError: If it cannot be made.
        """
        if self.held is not None:
            yield self.held
            return
        with contextlib.ExitStack() as opened:
            self.held = self._taken(opened, _SECONDS if seconds is None else seconds)
            try:
                yield self.held
            finally:
                with contextlib.suppress(OSError):
                    self.held.git.remove(_LOCK)
                self.held = None

    def _taken(self, opened: contextlib.ExitStack, seconds: float) -> Held:
        work = opened.enter_context(beneath.opened(self._disk.root, WORK))
        folder = opened.enter_context(beneath.opened(self._disk.root, GIT))
        ours = lock_in(work, _TURNS, _LOOK_SECONDS)
        try:
            opened.enter_context(ours.acquire(timeout=_OTHERS_SECONDS))
        except filelock.Timeout as error:
            raise IndexIsLocked("another process is updating the git index of the notes") from error
        if self.has_left_one():
            folder.remove(_LOCK)
        is_old = self._age() > _LONG_SECONDS
        last = time.monotonic() + (0.0 if is_old else seconds)
        while not _is_locked_by_us(work, folder):
            if time.monotonic() >= last:
                raise IndexIsLocked("another git process holds .git/index.lock")
            time.sleep(_LOOK_SECONDS)
        return Held(work, folder)

    def _age(self) -> float:
        """Return for how long somebody has held the lock, in seconds; 0 if nobody does."""
        status = self._disk.status(f"{GIT}/{_LOCK}")
        return 0.0 if status is None else time.time() - status.st_mtime

    @property
    def is_of_somebody_else(self) -> bool:
        """Whether a process that is none of ours holds the lock."""
        return self._disk.status(f"{GIT}/{_LOCK}") is not None and not self.has_left_one()

    def has_left_one(self) -> bool:
        """Whether a process of ours has made the index's lock: this one, or one that was killed."""
        ours, lock = self._disk.status(f"{WORK}/{_OURS}"), self._disk.status(f"{GIT}/{_LOCK}")
        return ours is not None and lock is not None and os.path.samestat(ours, lock)


def _is_locked_by_us(work: beneath.Folder, git_folder: beneath.Folder) -> bool:
    """Make the lock of the index; return False if somebody else holds it.

    It is a second name of a file of ours: if we are killed now, the next one knows it by that.
    """
    os.close(work.open(_OURS, os.O_WRONLY | os.O_CREAT))
    try:
        work.link(_OURS, git_folder, _LOCK)
    except FileExistsError:
        return False
    except OSError:  # no hard links: if we are killed now, nobody can tell whose lock is left
        try:
            os.close(git_folder.open(_LOCK, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
    return True

"""Brings git's index up to date after commits, and packs objects, in a thread.

The writer does the first itself (`git_index`), unless a person's git holds the index for long. Then
this thread does it as soon as that ends.
"""

import logging
import threading

from vector_index_mcp.notes.refusal import as_refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.git_index import GitIndex
from vector_index_mcp.notes.store.index_lock import IndexIsLocked
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.upkeep import tidy

_log = logging.getLogger(__name__)

# Between two looks at a lock of somebody else: at first, and after a minute.
_LOCKED_SECONDS, _LOCKED_FOR_LONG_SECONDS, _MOST_QUICK_LOOKS = 0.1, 1.0, 600
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 5.0, 60.0  # after an attempt that failed
_MOST_DOUBLINGS = 4


class Staging:
    """Does this for one repository. Its thread works from `start` to `stop`."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._index = GitIndex(disk, repository)
        self._disk = disk
        self._repository = repository
        self._wanted = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._updating = False
        self._failures = self._looks = 0
        """How many attempts in a row have failed, and how many while somebody held the lock."""

    @property
    def is_busy(self) -> bool:
        """Whether an update is due or under way."""
        return self._wanted.is_set() or self._updating

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="notes staging", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Make a last attempt to update the index, then stop the thread."""
        self._stopping.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Report that the branch has moved. Returns at once."""
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._updating = True
            self._wanted.clear()  # before the next line, or a call of `stop` might be lost
            is_last = self._stopping.is_set()
            pause = self._attempt()
            self._updating = False
            if is_last:  # else a commit may have come while this one was handled
                return
            # Meanwhile we are not busy: who holds the lock may do so for ever.
            if pause and not self._stopping.wait(pause):
                self._wanted.set()

    def _attempt(self) -> float:
        """Do the work; return after how many seconds to try again, 0 if it is done."""
        try:
            self._index.refresh()
            tidy(self._disk, self._repository)
        except IndexIsLocked:
            self._looks += 1
            return _LOCKED_SECONDS if self._looks < _MOST_QUICK_LOOKS else _LOCKED_FOR_LONG_SECONDS
        except Exception as error:  # noqa: BLE001 - the thread goes on, and tries again
            refusal = as_refusal(error, "updating the git index of the notes")
            _log.info("the git index of the notes is not up to date yet: %s", refusal)
            pause = _FIRST_PAUSE_SECONDS * (1 << self._failures)
            self._failures = min(self._failures + 1, _MOST_DOUBLINGS)
            return min(pause, _LONGEST_PAUSE_SECONDS)
        self._failures = self._looks = 0
        return 0.0

"""Which process writes an index: a note beside the lock that it holds, for a lock names nobody."""

import contextlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.errors import BusyError, Problem
from vector_index_mcp.indexing.opening.locks import is_held, make_sound
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.processes.stopping import is_stopped, is_there

WRITER = ".writer"
"""What the name of a note has after its lock's name."""
_BYTES = 200  # of each note: who reads one while it is replaced finds the old or the new one


@dataclass(frozen=True, slots=True)
class Writer:
    """A process that writes an index, and what it noted last."""

    pid: int
    is_passing: bool
    """Whether it ends by itself when the index is up to date."""
    watches: bool
    """Whether it follows changes."""
    is_behind: bool
    """Whether it still compares the folders with the index, or indexes many files."""

    @property
    def stop(self) -> str:
        """Why it does nothing now: a signal has stopped it. Empty if none has."""
        if not is_stopped(self.pid):
            return ""
        return (
            f"process {self.pid}, which writes this index, is stopped, so changes are not indexed; "
            f"`kill -CONT {self.pid}` lets it go on, and `kill -KILL {self.pid}` lets others write"
        )

    @property
    def lack(self) -> str:
        """Why the index may not match the files now; empty if changes are indexed at once."""
        if self.is_behind:
            return f"process {self.pid}, which writes this index, is not done yet"
        if not self.watches:
            return f"process {self.pid}, which writes this index, follows no changes until it ends"
        return ""


def busy(writer: Writer | None, who: str) -> BusyError:
    """Return the error for who would write an index that another process writes.

    Args:
        writer: The process that writes it; None if it is not known.
        who: Who writes it, such as another machine; empty if nothing is known.
    """
    keeps = f"{who or 'another process'} keeps this index and follows every change by itself"
    if writer is None and not who:
        keeps = "another process, which is not known, writes this index"
    return BusyError((writer.lack if writer is not None else "") or keeps, Problem.INDEX_KEPT)


def note_at(lock: Path) -> Path:
    """The path of the note of who holds `lock`."""
    return lock.with_name(lock.name + WRITER)


class WriterNote:
    """The note of who holds one lock."""

    def __init__(self, lock: Path) -> None:
        """Prepare; this does not access the disk.

        Args:
            lock: The outer lock of an index.
        """
        self._lock = lock
        self._path = note_at(lock)

    def write(self, role: Role, *, is_behind: bool) -> None:
        """Note that this process, which has `role`, holds the lock. Never raises.

        Without a note the index is kept all the same; only others cannot say by whom.
        """
        note = {
            "pid": os.getpid(),
            "is_passing": role is not Role.KEEPER,
            "watches": role.watches,
            "is_behind": is_behind,
        }
        with contextlib.suppress(OSError):
            make_sound(self._path)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, json.dumps(note).ljust(_BYTES).encode())
            finally:
                os.close(descriptor)

    def lack(self) -> str:
        """See `Writer.lack`; empty as well if nobody holds the lock, or nobody knows who does."""
        return writer.lack if (writer := self.read()) is not None else ""

    def read(self) -> Writer | None:
        """The process that holds the lock; None if nobody does, or nobody knows which one."""
        try:
            with self._path.open("rb") as file:
                note = json.loads(file.read(_BYTES))
            flags = (bool(note[name]) for name in ("is_passing", "watches", "is_behind"))
            writer = Writer(int(note["pid"]), *flags)
        except (OSError, ValueError, KeyError, TypeError):
            return None
        # The lock last: to look at it is to hold it, and who tries to take it meanwhile fails.
        return writer if is_there(writer.pid) and is_held(self._lock) else None

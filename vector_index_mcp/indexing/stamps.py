"""The size, times and digest of an index's files when its last writer ended.

Except for a hint at the newest version, LanceDB never changes a file that it has written. So these
stamps show whether anything changed while no process wrote the index: by damage, a restored backup,
or files from a git pull.
"""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.engine.store import entries

HINT = f"/_versions/{entries.HINT}"
_HASHED_AT_ONCE_BYTES = 1 << 20
# Opening must not wait if the file is a pipe.
_READING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True, slots=True)
class Stamp:
    """The state of one file of an index when its last writer ended."""

    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str
    """SHA-256 of its content; empty if there was no time for it."""

    def is_like(self, path: str, status: os.stat_result) -> bool:
        """Whether the file at `path` still has the same content. Hashes it only if necessary."""
        if (status.st_size, status.st_mtime_ns, status.st_ctime_ns) == self._moment:
            return True
        return status.st_size == self.size and bool(self.digest) and digest_of(path) == self.digest

    @property
    def _moment(self) -> tuple[int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns


def stamps_in(record: dict[str, Any]) -> dict[str, Stamp]:
    """The stamps in a record, by the file's name; empty if the record is invalid."""
    files = record.get("files")
    try:
        return {str(name): Stamp(*values) for name, values in dict(files or {}).items()}
    except (TypeError, ValueError):
        return {}


def files_below(folder: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """The name, path and status of everything below the tables in `folder`, except folders."""
    for entry in entries.files_below(folder, passed_over=OSError):
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # it was removed meanwhile
            continue
        yield entry.path[len(str(folder)) + 1 :], entry.path, status


def digest_of(path: str) -> str:
    """The SHA-256 of a file; empty if it cannot be read, or is a link, a pipe or a device."""
    found = hashlib.sha256()
    try:
        with open(os.open(path, _READING), "rb") as file:  # noqa: PTH123 - from a descriptor
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # a device may have no end
                return ""
            while data := file.read(_HASHED_AT_ONCE_BYTES):
                found.update(data)
    except OSError:
        return ""
    return found.hexdigest()

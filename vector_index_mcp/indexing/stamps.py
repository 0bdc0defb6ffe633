"""What the files of an index were like when its last writer ended.

LanceDB never changes a file it has written, but for a hint at the newest version; so this shows
whether anything was changed while no process wrote the index: damage, a restored backup, files that
a pull brought.
"""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vector_index_mcp.engine.store.index import is_table

HINT = "/_versions/latest_version_hint.json"  # the only file that LanceDB writes anew
_HASHED_AT_ONCE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Stamp:
    """A file of an index at the end of its last writer."""

    size: int
    mtime_ns: int
    ctime_ns: int
    digest: str
    """SHA-256 of its content; empty if there was no time for it."""

    def is_like(self, path: str, status: os.stat_result) -> bool:
        """Whether `path` still has the content that this was."""
        if (status.st_size, status.st_mtime_ns, status.st_ctime_ns) == self._moment:
            return True
        return status.st_size == self.size and bool(self.digest) and digest_of(path) == self.digest

    @property
    def _moment(self) -> tuple[int, int, int]:
        return self.size, self.mtime_ns, self.ctime_ns


def stamps_in(record: dict[str, Any]) -> dict[str, Stamp]:
    """What a record says of files, by name; nothing if it makes no sense."""
    files = record.get("files")
    try:
        return {str(name): Stamp(*values) for name, values in dict(files or {}).items()}
    except (TypeError, ValueError):
        return {}


def files_below(folder: Path) -> Iterator[tuple[str, str, os.stat_result]]:
    """Everything in the tables in `folder` that is no folder: name, path and status."""
    pending = [str(folder)]
    while pending:
        here = pending.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    name = entry.path[len(str(folder)) + 1 :]
                    if not is_table(name.partition(os.sep)[0]):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        yield name, entry.path, entry.stat(follow_symlinks=False)
        except OSError:  # it has gone meanwhile
            continue


def digest_of(path: str) -> str:
    """The SHA-256 of a file; empty if it cannot be read."""
    found = hashlib.sha256()
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - there are thousands
            while data := file.read(_HASHED_AT_ONCE_BYTES):
                found.update(data)
    except OSError:
        return ""
    return found.hexdigest()

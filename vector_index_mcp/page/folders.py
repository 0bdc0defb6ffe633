"""The map of a project: what a folder contains, and how much of that is indexed. Pure.

The map of a folder has two levels: the contents of the folder, and those of its subfolders. Parts
that are too small to be seen are merged into one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.reasons import INDEXED

_LEVELS = 2
_MOST_PARTS = 60  # parts of one folder; more cannot be distinguished on a screen


@dataclass(slots=True)
class Part:
    """A file, or a folder with everything below it."""

    name: str
    kind: str
    """`folder`, `file`, or `rest` for the merged small parts."""
    chunks: int = 0
    vectors: int = 0
    """The number of chunks with a vector."""
    files: int = 0
    """The number of indexed files."""
    missing: Counter[str] = field(default_factory=Counter)
    """How many files are skipped, or could not be indexed, by reason."""
    parts: dict[str, "Part"] = field(default_factory=dict)

    def count(self, record: FileRecord, unembedded: int) -> None:
        """Add a file to the counts.

        Args:
            record: The record of the file.
            unembedded: How many of its chunks have no vector.
        """
        if record.state == INDEXED:
            self.files += 1
            self.chunks += record.chunk_count
            self.vectors += record.chunk_count - unembedded
        else:
            self.missing[record.reason] += 1

    @property
    def weight(self) -> int:
        """Its size on the map: its chunks, and one for every file that is not indexed."""
        return self.chunks + self.missing.total()

    def values(self) -> dict[str, Any]:
        """Return the part as values of JSON, with the largest parts first."""
        ordered = sorted(self.parts.values(), key=lambda part: (-part.weight, part.name))
        return {
            "name": self.name,
            "kind": self.kind,
            "chunks": self.chunks,
            "vectors": self.vectors,
            "files": self.files,
            "missing": dict(self.missing.most_common()),
            "parts": [part.values() for part in _with_rest(ordered)],
        }


def look_into(folder: str, records: Iterable[tuple[FileRecord, int]]) -> Part:
    """Return the map of a folder.

    Args:
        folder: Its path below the project, with slashes; empty for the project. The map is empty
            if the folder has no file that is indexed or skipped.
        records: The records of all files, with how many of their chunks have no vector.
    """
    prefix = f"{folder}/" if folder else ""
    top = Part(folder.rpartition("/")[2], "folder")
    for record, unembedded in records:
        if not record.key.startswith(prefix):
            continue
        part = top
        part.count(record, unembedded)
        names = record.key[len(prefix) :].split("/")
        for depth, name in enumerate(names[:_LEVELS], start=1):
            kind = "file" if depth == len(names) else "folder"
            part = part.parts.setdefault(name, Part(name, kind))
            part.count(record, unembedded)
    return top


def _with_rest(ordered: list[Part]) -> list[Part]:
    """Return the largest parts, with the others merged into one."""
    if len(ordered) <= _MOST_PARTS:
        return ordered
    small = ordered[_MOST_PARTS - 1 :]
    rest = Part(f"{len(small)} more", "rest")
    for part in small:
        rest.chunks += part.chunks
        rest.vectors += part.vectors
        rest.files += part.files
        rest.missing.update(part.missing)
    return [*ordered[: _MOST_PARTS - 1], rest]

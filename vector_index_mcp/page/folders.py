"""The map of a project: what lies in a folder, and how much of it is indexed. Pure.

The map of a folder has two levels: what lies in the folder, and what lies in the folders in it. The
parts that are too small to be seen are put together as one.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.indexing.ledger import INDEXED

_LEVELS = 2
_MOST_PARTS = 60  # of one folder; more cannot be told apart on a screen


@dataclass(slots=True)
class Part:
    """A file, or a folder with everything below it."""

    name: str
    kind: str
    """`folder`, `file`, or `rest` for the small ones together."""
    chunks: int = 0
    vectors: int = 0
    """Chunks that have one."""
    files: int = 0
    """Indexed ones."""
    missing: Counter[str] = field(default_factory=Counter)
    """How many files are skipped, or could not be indexed, by reason."""
    parts: dict[str, "Part"] = field(default_factory=dict)

    def count(self, record: FileRecord, unembedded: int) -> None:
        """Count a file in."""
        if record.state == INDEXED:
            self.files += 1
            self.chunks += record.chunk_count
            self.vectors += record.chunk_count - unembedded
        else:
            self.missing[record.reason] += 1

    @property
    def weight(self) -> int:
        """How much room it takes: its chunks, and one for every file that is not indexed."""
        return self.chunks + self.missing.total()

    def values(self) -> dict[str, Any]:
        """What the browser gets, the largest parts first."""
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
    """The folder at the path `folder` (POSIX, relative; empty for the project itself).

    Args:
        folder: Where to look. A folder that holds nothing indexed or skipped is empty.
        records: Every file's record, with how many of its chunks have no vector.
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
    """The largest parts, and the others as one."""
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

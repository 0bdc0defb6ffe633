"""The manifests below the folder of all datasets, and when what they describe has changed."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.datasets import manifest
from vector_index_mcp.datasets.limits import DEEPEST, MOST_DATASETS, MOST_ENTRIES
from vector_index_mcp.datasets.refusal import BadDatasetError

Stamp = tuple[tuple[str, int, int, int], ...]
"""Of some files: name, size, time and number of each."""


@dataclass(frozen=True, slots=True)
class Found:
    """A manifest, and how its dataset is on disk."""

    path: Path
    stamp: Stamp


def find(root: Path) -> list[Found]:
    """All manifests below `root`, in the order of their paths; none if there is no such folder.

    Links to folders are followed, each folder is looked at once. A manifest's stamp covers all
    files in its folder and the folders in it, since that is where its index lies.
    """
    found = sorted(_manifests(root))
    return [Found(path, stamp_of(path.parent)) for path in found[:MOST_DATASETS]]


def file_in(place: Path) -> Path:
    """The file of the index that a manifest names by its path, or by that of its folder.

    Raises:
        BadDatasetError: If there is none.
    """
    if place.is_file():
        return place
    found = [*sorted(place.glob("*.index")), *sorted(place.glob("*.faiss"))]
    files = [file for file in found if file.is_file()]
    if not files:
        raise BadDatasetError(f"there is no index (*.index, *.faiss) in {place}")
    return files[0]


def stamp_of(folder: Path, depth: int = 2) -> Stamp:
    """What differs when a file in `folder` is changed, or in one of the folders in it."""
    return tuple(sorted(_stamps(folder, "", depth)))


def _stamps(folder: Path, above: str, depth: int) -> Iterator[tuple[str, int, int, int]]:
    for name, status in _entries(folder):
        path = f"{above}{name}"
        if stat.S_ISREG(status.st_mode):
            yield path, status.st_size, status.st_mtime_ns, status.st_ino
        elif depth > 1 and stat.S_ISDIR(status.st_mode):
            yield from _stamps(folder / name, f"{path}/", depth - 1)


def _manifests(root: Path) -> Iterator[Path]:
    pending, seen, looked = [(root, 0)], set[tuple[int, int]](), 0
    while pending:
        folder, depth = pending.pop()
        for name, status in _entries(folder):
            looked += 1
            if looked > MOST_ENTRIES:
                return
            if name == manifest.NAME and stat.S_ISREG(status.st_mode):
                yield folder / name
            elif stat.S_ISDIR(status.st_mode) and depth < DEEPEST and not name.startswith("."):
                key = status.st_dev, status.st_ino
                if key not in seen:
                    seen.add(key)
                    pending.append((folder / name, depth + 1))


def _entries(folder: Path) -> list[tuple[str, os.stat_result]]:
    """What lies in a folder, in order; nothing of one that cannot be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat()))
                except OSError:  # a link that leads nowhere
                    continue
    except OSError:
        return []
    return sorted(found, key=lambda each: each[0])

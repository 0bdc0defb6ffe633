"""The manifests below the folder of all datasets, and when what they name has changed."""

import os
import stat
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.datasets.limits import DEEPEST, MOST_DATASETS, MOST_ENTRIES

MANIFEST = "manifest.json"
_DEPTH_OF_A_TABLE = 3
Stamp = tuple[tuple[str, int, int, int, int], ...]
"""Of some files: name, size, when content and when anything about it has changed, and number."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The manifests that were found."""

    paths: tuple[Path, ...]
    is_whole: bool
    """Whether everything was looked at."""


def find(root: Path) -> Walk:
    """All manifests below `root`, in the order of their paths; none if there is no such folder.

    What lies near is found first. A link is followed directly below `root` alone: people link
    datasets there, and one that somebody has sent may hold a link to anywhere.
    """
    found: list[Path] = []
    pending, looked = deque([(root, 0)]), 0
    seen = {_number_of(root)}
    while pending:
        folder, depth = pending.popleft()
        for name, status, is_link in _entries(folder):
            looked += 1
            if looked > MOST_ENTRIES or len(found) > MOST_DATASETS:
                return Walk(tuple(sorted(found)), is_whole=False)
            if name == MANIFEST and stat.S_ISREG(status.st_mode):
                found.append(folder / name)
            is_folder = stat.S_ISDIR(status.st_mode) and not (is_link and depth)
            number = status.st_dev, status.st_ino
            if is_folder and depth < DEEPEST and not name.startswith(".") and number not in seen:
                seen.add(number)
                pending.append((folder / name, depth + 1))
    return Walk(tuple(sorted(found)), is_whole=True)


def stamp_of(paths: Iterable[Path]) -> Stamp:
    """What differs when one of some files is changed; for a folder, any file in it and below."""
    return tuple(entry for path in paths for entry in _stamps(path, _DEPTH_OF_A_TABLE))


def _stamps(path: Path, depth: int) -> list[tuple[str, int, int, int, int]]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return [(str(path), -1, -1, -1, -1)]
    if not stat.S_ISDIR(status.st_mode):
        # In a folder, which is a table, no file is ever changed; and we give its files second
        # names (`snapshot`), which counts as a change of theirs.
        changed = status.st_ctime_ns if depth == _DEPTH_OF_A_TABLE else 0
        return [(str(path), status.st_size, status.st_mtime_ns, changed, status.st_ino)]
    if not depth:
        return []
    names = [name for name, _, __ in _entries(path)]
    return [entry for name in names for entry in _stamps(path / name, depth - 1)]


def _number_of(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_dev, status.st_ino


def _entries(folder: Path) -> list[tuple[str, os.stat_result, bool]]:
    """What lies in a folder, in order, and whether it is a link; nothing if it cannot be read."""
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(), entry.is_symlink()))
                except OSError:  # a link that leads nowhere
                    continue
                if len(found) > MOST_ENTRIES:
                    break
    except OSError:
        return []
    return sorted(found, key=lambda each: each[0])

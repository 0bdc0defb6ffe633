"""Finds the manifests below the folder of all datasets, and notices when their files change."""

import contextlib
import itertools
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.datasets.limits import DEEPEST, MOST_DATASETS, MOST_ENTRIES

MANIFEST = "manifest.json"
_DEPTH_OF_A_TABLE = 3
Stamp = tuple[tuple[str, int, int, int, int], ...]
"""For each of some files: path, size, mtime and ctime in nanoseconds, and inode number."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The manifests that were found."""

    paths: tuple[Path, ...]
    is_whole: bool
    """Whether the search looked at everything; False if it reached a limit."""


def lack_of(root: Path) -> str:
    """The sentence for a folder of all datasets that does not exist."""
    return f"there is no folder {root}; datasets are served as soon as it holds some"


def find(root: Path) -> Walk:
    """Find all manifests below `root`, sorted by path; none if there is no such folder.

    The search goes level by level. It follows links directly below `root` only: people link
    datasets there, but a dataset from somebody else may contain a link to anywhere.
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
            # One that is no plain file is found as well, so that its error is listed.
            if name == MANIFEST and not stat.S_ISDIR(status.st_mode):
                found.append(folder / name)
            is_folder = stat.S_ISDIR(status.st_mode) and not (is_link and depth)
            number = status.st_dev, status.st_ino
            if is_folder and depth < DEEPEST and not name.startswith(".") and number not in seen:
                seen.add(number)
                pending.append((folder / name, depth + 1))
    return Walk(tuple(sorted(found)), is_whole=True)


def stamp_of(paths: Iterable[Path]) -> Stamp:
    """Return a value that changes when one of the files changes; for a folder, any file below.

    Of a folder with more files than a table may have, only the first ones count: it is looked at
    twice a second.
    """
    return tuple(
        entry
        for path in paths
        for entry in itertools.islice(_stamps(path, _DEPTH_OF_A_TABLE), MOST_ENTRIES)
    )


def leads_of(paths: Iterable[Path]) -> Stamp:
    """Return a value that changes when one of the paths leads elsewhere, such as a switched link.

    For a folder, also when a name in it comes or goes.
    """
    return tuple(map(_lead_of, paths))


def _lead_of(path: Path) -> tuple[str, int, int, int, int]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return str(path), -1, -1, -1, -1
    changed = status.st_mtime_ns if stat.S_ISDIR(status.st_mode) else 0
    return str(path), 0, changed, status.st_dev, status.st_ino


def _stamps(path: Path, depth: int) -> Iterator[tuple[str, int, int, int, int]]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        yield str(path), -1, -1, -1, -1
        return
    if not stat.S_ISDIR(status.st_mode):
        # Files in a folder, which is a table, never change; and we hard-link them (`snapshot`),
        # which changes their ctime. So their ctime does not count.
        changed = status.st_ctime_ns if depth == _DEPTH_OF_A_TABLE else 0
        yield str(path), status.st_size, status.st_mtime_ns, changed, status.st_ino
    elif depth:
        for name, _, __ in _entries(path):
            yield from _stamps(path / name, depth - 1)


def _number_of(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_dev, status.st_ino


def _status_of(entry: "os.DirEntry[str]") -> os.stat_result:
    try:
        return entry.stat()
    except OSError:  # a link that leads nowhere
        return entry.stat(follow_symlinks=False)


def _entries(folder: Path) -> list[tuple[str, os.stat_result, bool]]:
    """Return name, state and whether it is a link for each entry of a folder, sorted.

    The list is empty if the folder cannot be read.
    """
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in itertools.islice(entries, MOST_ENTRIES + 1):
                with contextlib.suppress(OSError):
                    found.append((entry.name, _status_of(entry), entry.is_symlink()))
    except OSError:
        return []
    return sorted(found, key=lambda each: each[0])

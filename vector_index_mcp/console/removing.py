"""Removes files and folders of ours, except what other processes use meanwhile.

Each function returns what it could not remove, and why.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from vector_index_mcp.errors import BusyError
from vector_index_mcp.files.removal import Left, left_by, remove_at, remove_file_at
from vector_index_mcp.indexing.opening.locks import held
from vector_index_mcp.indexing.opening.ownership import Records
from vector_index_mcp.indexing.opening.removal import remove_index


def remove_tree(path: Path, records: Records, state: Path) -> list[Left]:
    """Remove a folder of ours: first the indexes in it, each while no other process writes it."""
    folders = [known.folder for known in records.all() if known.folder is not None]
    inside = [folder for folder in folders if folder.is_relative_to(path)]
    left = [each for folder in inside for each in remove_index(folder, records, state)]
    return left or remove_at(path)


def remove_records(paths: Sequence[Path], records: Records) -> list[Left]:
    """Remove the records of indexes that no longer exist; keep those of the others."""
    needed = set()
    for known in records.all():
        try:
            is_there = known.folder is not None and records.of(known.folder) is not None
        except OSError:  # the index cannot be reached now, so it may exist
            is_there = True
        if is_there:
            needed.add(known.number)
    return remove_files(path for path in paths if path.name.partition(".")[0] not in needed)


def remove_files(paths: Iterable[Path]) -> list[Left]:
    """Remove each of these files."""
    return [each for path in paths for each in remove_file_at(path)]


def remove_with_locks(folder: Path, paths: Iterable[Path]) -> list[Left]:
    """Remove locks, and the files that are named like them, unless a process holds the lock."""
    by_lock: dict[Path, list[Path]] = {}
    for path in paths:
        by_lock.setdefault(folder / f"{path.name.partition('.')[0]}.lock", []).append(path)
    return [each for lock, paths in by_lock.items() for each in _remove_locked(lock, paths)]


def _remove_locked(lock: Path, paths: Sequence[Path]) -> list[Left]:
    """Remove files, the lock itself last, unless another process holds the lock."""
    try:
        with held(lock):
            first = [path for path in paths if path != lock]
            return remove_files([*first, lock])
    except BusyError as error:
        return [Left(str(lock), str(error))]
    except OSError as error:
        # If nothing is there any more, another process has removed it, with the lock's folder.
        return [left_by(lock, error)] if any(map(os.path.lexists, paths)) else []

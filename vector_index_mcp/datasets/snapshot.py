"""Makes a snapshot of a table in another folder, which later changes of the table do not affect.

LanceDB writes new files and never changes one, so hard links make a copy that takes no space.
"""

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from vector_index_mcp.datasets.refusal import BadDatasetError

_MOST_FILES = 20_000
_DEEPEST = 8


def link(source: Path, target: Path) -> bool:
    """Hard-link every file of a table into `target`; return False if that cannot be done here.

    Only plain files are linked: a foreign table may contain a link to anywhere.

    Raises:
        BadDatasetError: If it has too many files.
    """
    try:
        _walk(source, target, os.link, itertools.count(1))
    except BadDatasetError:
        shutil.rmtree(target, ignore_errors=True)
        raise
    except OSError:  # `target` is on another file system, or on one without hard links
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def clone(source: Path, target: Path) -> None:
    """Hard-link a table into `target`, or copy it if that cannot be done.

    Raises:
        BadDatasetError: If it has too many files.
        OSError: If it cannot be copied.
    """
    if not link(source, target):
        _walk(source, target, shutil.copyfile, itertools.count(1))


def _walk(
    source: Path,
    target: Path,
    take: Callable[[str, str], object],
    numbers: Iterator[int],
    depth: int = _DEEPEST,
) -> None:
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for entry in entries:
            if next(numbers) > _MOST_FILES:
                raise BadDatasetError(f"its table has more than {_MOST_FILES:,} files")
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    _walk(Path(entry.path), target / entry.name, take, numbers, depth - 1)
            elif entry.is_file(follow_symlinks=False):
                take(entry.path, str(target / entry.name))

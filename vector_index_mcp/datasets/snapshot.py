"""Makes a snapshot of a table in another folder, which later changes of the table do not affect.

LanceDB writes new files and never changes one, so hard links make a copy that takes no space.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

_MOST_FILES = 20_000
_DEEPEST = 8


def link(source: Path, target: Path) -> bool:
    """Hard-link every file of a table into `target`; return False if that cannot be done here.

    Only plain files are linked: a foreign table may contain a link to anywhere.
    """
    try:
        _walk(source, target, os.link)
    except OSError:  # `target` is on another file system, or on one without hard links
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def clone(source: Path, target: Path) -> None:
    """Hard-link a table into `target`, or copy it if that cannot be done.

    Raises:
        OSError: If it cannot be copied.
    """
    if not link(source, target):
        _walk(source, target, shutil.copyfile)


def _walk(
    source: Path, target: Path, take: Callable[[str, str], object], depth: int = _DEEPEST
) -> None:
    target.mkdir(parents=True)
    with os.scandir(source) as entries:
        for count, entry in enumerate(entries):
            if count >= _MOST_FILES:
                raise OSError(f"{source} holds more than {_MOST_FILES:,} files")
            if entry.is_dir(follow_symlinks=False):
                if depth:
                    _walk(Path(entry.path), target / entry.name, take, depth - 1)
            elif entry.is_file(follow_symlinks=False):
                take(entry.path, str(target / entry.name))

"""A table of ours as it is now, in another folder, whatever becomes of it where it lies.

LanceDB writes new files and never changes one, so files that have a second name are a copy that
costs nothing.
"""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

_MOST_FILES = 20_000
_DEEPEST = 8


def link(source: Path, target: Path) -> bool:
    """Give every file of a table a second name in `target`; whether that can be done here.

    What is no plain file is left out: a foreign table may hold a link to anywhere.
    """
    try:
        _walk(source, target, os.link)
    except OSError:  # another file system, or one that knows no second names
        shutil.rmtree(target, ignore_errors=True)
        return False
    return True


def clone(source: Path, target: Path) -> None:
    """The same; copied where that cannot be done.

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

"""Finds what of a store this user may not read or write, such as files that `sudo` has left."""

import os
import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from vector_index_mcp.objects import within

_LOGS = os.path.join(".git", "logs", "")  # noqa: PTH118  # a part of a path
_MOST_LOOKED_AT = 100_000  # files and folders; half a second


def lacking(root: Path) -> Iterator[str]:
    """Yield the paths below `root` that cannot be read, and those that cannot be written.

    Other files than git's logs are replaced and never changed, so that it is enough to read them.
    """
    for path in islice(_all_in(root), _MOST_LOOKED_AT):
        how = os.R_OK | os.W_OK | os.X_OK if os.path.isdir(path) else os.R_OK
        if _LOGS in path:
            how |= os.W_OK
        if Path(path).is_symlink() or os.access(path, how):
            continue
        if os.path.lexists(path):  # a mark of a service that writes may have gone meanwhile
            yield os.path.relpath(path, root)


def is_read_only(root: Path) -> bool:
    """Return whether nobody can write to the file system of `root`; never on Windows."""
    if not hasattr(os, "statvfs"):
        return False
    return bool(os.statvfs(root).f_flag & os.ST_RDONLY)


def remedy(root: Path) -> str:
    """Return what gives this user the right to all files of a store."""
    if os.name != "posix":
        return f"give yourself the right to change all of {root}"
    place = shlex.quote(str(root))
    return f'`sudo chown -R "$(id -u)" {place}` and `chmod -R u+rwX {place}` give you the right'


def _all_in(root: Path) -> Iterator[str]:
    yield str(root)
    for folder, folders, files in within.walk(root):
        yield from (os.path.join(folder, name) for name in (*folders, *files))  # noqa: PTH118

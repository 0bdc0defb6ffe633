"""Gives a folder a path that leads to this folder and no other, even after a move or deletion.

LanceDB makes folders that a path lacks. So a commit that is under way while somebody deletes a
project would make the project's folder again, with half an index in it. Below such a path nothing
can be made once the folder is deleted, and what is written follows a folder that is moved.
"""

import os
import sys
import threading
from pathlib import Path

# A descriptor stays open: if another file got its number, a late write would go there. A service
# opens one folder, and one more each time that somebody deletes or replaces it.
_MOST_PINNED = 64
_pinned: dict[tuple[int, int], int] = {}
_lock = threading.Lock()


def pinned(folder: Path) -> str:
    """Return such a path of a folder. Blocks.

    Returns:
        The folder's own path if there is no folder, no such path (except on Linux), or if this
        process has used up its descriptors for them.
    """
    if sys.platform != "linux":
        return str(folder)
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return str(folder)
    with _lock:
        status = os.fstat(descriptor)
        known = _pinned.get((status.st_dev, status.st_ino))
        path = f"/proc/self/fd/{descriptor if known is None else known}"
        if known is None and len(_pinned) < _MOST_PINNED and _leads_to(path, status):
            _pinned[status.st_dev, status.st_ino] = descriptor
            return path
    os.close(descriptor)
    return str(folder) if known is None else path


def _leads_to(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), status)
    except OSError:  # /proc may not be mounted
        return False

"""Gives a folder a path that leads to this folder and no other, even after a move or deletion.

LanceDB makes folders that a path lacks. So a commit that is under way while somebody deletes a
project would make the project's folder again, with half an index in it. Below such a path nothing
can be made once the folder is deleted, and what is written follows a folder that is moved.
"""

import functools
import os
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

# Descriptors with which we hold folders, or have held them a moment ago. A process writes in one
# folder, and in another one whenever somebody replaces it.
_MOST_PINNED = 64
# A number that is free leads nowhere meanwhile: a late write must not go to another folder.
_REST_SECONDS = 600.0
_PATH = "/proc/self/fd/{}"
_Folder = tuple[int, int]  # device and inode


@dataclass(slots=True)
class _Pin:
    descriptor: int
    users: int = 0


_pins: dict[_Folder, _Pin] = {}
_rested: deque[tuple[float, int]] = deque()  # when each number was freed, the oldest first
_lock = threading.Lock()


def pinned(folder: Path) -> str:
    """Return such a path of a folder; call `unpin` when it is no longer used. Blocks.

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
        pin = _pin_of(descriptor)
        if pin is None or pin.descriptor != descriptor:
            os.close(descriptor)
        if pin is None:
            return str(folder)
        pin.users += 1
        return _PATH.format(pin.descriptor)


def unpin(path: str, *, at_once: bool = False) -> None:
    """Let go of the folder that `pinned` gave this path, unless others use it; else do nothing.

    Args:
        path: What `pinned` returned; from then on it leads nowhere.
        at_once: Whether to let go of it although others use it.
    """
    with _lock:
        for folder, pin in list(_pins.items()):
            if path == _PATH.format(pin.descriptor):
                pin.users -= 1
                if at_once or pin.users <= 0:
                    del _pins[folder]
                    _lead_nowhere(pin.descriptor)


def _pin_of(descriptor: int) -> _Pin | None:
    """Return the pin of an open folder; a new one has this descriptor, or one that has rested."""
    status = os.fstat(descriptor)
    folder = status.st_dev, status.st_ino
    if (known := _pins.get(folder)) is not None:
        return known
    try:
        _nowhere()
    except OSError:
        return None
    if not _leads_to(_PATH.format(descriptor), status):
        return None
    number = descriptor
    if _rested and time.monotonic() - _rested[0][0] >= _REST_SECONDS:
        number = os.dup2(descriptor, _rested.popleft()[1], inheritable=False)
    elif len(_pins) + len(_rested) >= _MOST_PINNED:
        return None
    pin = _pins[folder] = _Pin(number)
    return pin


def _lead_nowhere(descriptor: int) -> None:
    os.dup2(_nowhere(), descriptor, inheritable=False)
    _rested.append((time.monotonic(), descriptor))


@functools.cache
def _nowhere() -> int:
    """Return a descriptor that is no folder's, so that nothing can be made below it."""
    return os.open(os.devnull, os.O_RDONLY)


def _leads_to(path: str, status: os.stat_result) -> bool:
    try:
        return os.path.samestat(Path(path).stat(), status)
    except OSError:  # /proc may not be mounted
        return False

"""How a child process that works in the background lets everything else come first."""

import contextlib
import sys

import psutil

_NICENESS = 5  # behind the editor and the compiler, before what is idle
_LOWEST_OF_BEST_EFFORT = 7  # of 0 to 7; the idle class could wait for ever on a busy disk


def be_polite() -> None:
    """Give this process a low priority, on the machine's processors and its disks."""
    process = psutil.Process()
    with contextlib.suppress(OSError, psutil.Error):
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
            process.ionice(psutil.IOPRIO_LOW)
        else:
            process.nice(_NICENESS)
            if sys.platform == "linux":  # files are read once, so the lowest class that moves
                process.ionice(psutil.IOPRIO_CLASS_BE, _LOWEST_OF_BEST_EFFORT)

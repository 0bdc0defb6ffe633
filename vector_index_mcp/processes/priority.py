"""Gives a background process a low priority."""

import contextlib
import sys

_NICENESS = 5  # lower than the editor and the compiler, higher than idle jobs
_LOWEST_OF_BEST_EFFORT = 7  # of 0 to 7; the idle class could wait for ever on a busy disk


def be_polite() -> None:
    """Give this process a low priority on the machine's processors and disks."""
    import psutil  # here, since the children that somebody waits for start without it

    with contextlib.suppress(OSError, psutil.Error):  # Linux may lack /proc
        process = psutil.Process()
        if sys.platform == "win32":
            process.nice(psutil.BELOW_NORMAL_PRIORITY_CLASS)
            process.ionice(psutil.IOPRIO_LOW)
        else:
            process.nice(_NICENESS)
            if sys.platform == "linux":  # the lowest priority that still makes progress
                process.ionice(psutil.IOPRIO_CLASS_BE, _LOWEST_OF_BEST_EFFORT)

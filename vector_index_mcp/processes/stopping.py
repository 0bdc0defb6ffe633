"""Whether a process is there, and whether a signal has stopped it, such as Ctrl-Z sends.

Our own process may be stopped as well, or its container or machine. Then time passes by the clock
in which we see nothing of what others do.
"""

import math
from collections.abc import Iterator
from itertools import repeat

import anyio

_LOOK_SECONDS = 1.0


def looks(seconds: float, longest: float = _LOOK_SECONDS) -> Iterator[float]:
    """How many seconds to wait each time for what may take so many in all.

    If we are stopped for longer than all of them, only one wait is over when we go on, so that the
    next one finds what has come meanwhile. So there is one more than the time is long.
    """
    if math.isinf(seconds):
        return repeat(longest)
    count = max(1, math.ceil(seconds / longest))
    return repeat(seconds / count, count + 1)


async def is_set_within(event: anyio.Event, seconds: float) -> bool:
    """Wait until an event is set; False if it is not within that time, as `looks` counts it."""
    for moment in looks(seconds, _LOOK_SECONDS):
        with anyio.move_on_after(moment):
            await event.wait()
            return True
    return False


def is_there(pid: int) -> bool:
    """Whether there is a process with this number."""
    import psutil  # here, since the children that somebody waits for start without it

    try:
        return bool(psutil.pid_exists(pid))
    except (OSError, OverflowError):
        return False


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped, by a signal or by a debugger; False if nobody can tell."""
    import psutil

    try:
        return psutil.Process(pid).status() in {psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP}
    except (OSError, ValueError, psutil.Error):  # Linux may lack /proc
        return False

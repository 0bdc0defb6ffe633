"""What a child process that parses may use. The system ends one that takes more.

A parser holds the interpreter's lock, so nothing that runs in Python could stop it from inside:
no thread, no signal handler. What is asked for here is done by the kernel. Each function is called
in the child itself, and where a system lacks something, the parent's patience must do.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
from pathlib import Path

import psutil

if sys.platform != "win32":
    import resource

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
# Measured with 1 MB of each of 46 languages: at most 2.8 s, half of them 1.5 s.
_PROCESSOR_SECONDS_PER_BYTE = 8e-6
# Measured likewise, above the 105 MB of address space that a child starts with: 400 MB for Scala,
# whose grammar leaks, 70 MB for the others. A hostile text of 30 KB takes 500 MB a second.
_ADDRESS_BYTES = 500_000_000
_ADDRESS_BYTES_PER_BYTE = 600
OUT_OF_TIME = getattr(signal, "SIGPROF", None)
"""The signal that ends a process which has used up its processor time."""


def end_with_parent() -> None:
    """Let the system end this process as soon as its parent is gone.

    Linux alone can do that. More exactly, the end of the parent's thread counts that started us.
    Of a parent that is gone already no signal comes; then nobody holds the other end of our input.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        standard_input = select.poll()
        standard_input.register(0, 0)  # no event but the end, which is always told
        if standard_input.poll(0):
            os._exit(0)


def begin() -> None:
    """Make sure that the system can end this process, and that it leaves nothing behind then."""
    end_with_parent()
    if sys.platform != "win32":
        # Whoever started us may have ignored or blocked it, and that is inherited.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        # An image of our memory would hold the user's texts.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def allow(seconds: float, text_bytes: int) -> None:
    """From now on, what it takes to parse a text of that size; replaces what was allowed before.

    Args:
        seconds: Of processor time, for a text of hardly any size.
        text_bytes: The size of the text.
    """
    if sys.platform == "win32":
        return
    bound_memory(_ADDRESS_BYTES + _ADDRESS_BYTES_PER_BYTE * text_bytes)
    # Time of the processor and not of the clock: a busy machine must not change what is found.
    signal.setitimer(signal.ITIMER_PROF, seconds + _PROCESSOR_SECONDS_PER_BYTE * text_bytes)


def bound_memory(address_bytes: int) -> None:
    """From now on, that much memory and no more."""
    if sys.platform == "win32":
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        address_bytes = min(address_bytes, most)
    with contextlib.suppress(OSError, ValueError):  # macOS knows the name, and obeys it in part
        resource.setrlimit(resource.RLIMIT_AS, (address_bytes, most))


def allow_all_time() -> None:
    """From now on, any processor time: nothing is parsed."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, 0)


def resident_bytes() -> int:
    """How much memory this process holds now."""
    if sys.platform == "linux":  # 20 times as fast as psutil
        pages = Path("/proc/self/statm").read_text("ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    return int(psutil.Process().memory_info().rss)

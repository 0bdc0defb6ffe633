"""Limits the processor time and memory of a child process that parses; the system enforces them.

A parser holds the interpreter's lock, so no thread or signal handler in Python could stop it. So
these functions, which the child itself calls, set limits in the kernel. On a system that lacks one
of them, only the parent's time limit remains.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
from pathlib import Path

if sys.platform != "win32":
    import resource

_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
# Measured with 1 MB of each of 46 languages: at most 2.8 s, half of them 1.5 s.
_PROCESSOR_SECONDS_PER_BYTE = 8e-6
# Measured in the same way, beyond the 105 MB of address space that a child starts with: 400 MB for
# Scala, whose grammar leaks, and 70 MB for the others. A malicious text of 30 KB takes 500 MB a
# second.
_ADDRESS_BYTES = 500_000_000
_ADDRESS_BYTES_PER_BYTE = 600
OUT_OF_TIME = getattr(signal, "SIGPROF", None)
"""The signal that ends a process which has used up its processor time."""


def end_with_parent() -> None:
    """Let the system end this process as soon as its parent is gone; only on Linux.

    More exactly, it ends with the parent's thread that started it. If the parent is gone already,
    no signal comes; that shows in our input, whose other end is closed, and we end here.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        standard_input = select.poll()
        standard_input.register(0, 0)  # only the end of the input, which poll always reports
        if standard_input.poll(0):
            os._exit(0)


def begin() -> None:
    """Make sure that the system can end this process, and that it then leaves no core dump."""
    end_with_parent()
    if sys.platform != "win32":
        # The process that started us may ignore or block the signal, which we inherit.
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
        # A core dump would contain the user's texts.
        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def allow(seconds: float, text_bytes: int) -> None:
    """Limit time and memory to what parsing a text of this size needs; replaces earlier limits.

    Args:
        seconds: The processor time for a tiny text.
        text_bytes: The size of the text.
    """
    if sys.platform == "win32":
        return
    bound_memory(_ADDRESS_BYTES + _ADDRESS_BYTES_PER_BYTE * text_bytes)
    # Processor time and not elapsed time: a busy machine must not change the result.
    signal.setitimer(signal.ITIMER_PROF, seconds + _PROCESSOR_SECONDS_PER_BYTE * text_bytes)


def bound_memory(address_bytes: int) -> None:
    """Limit this process's address space to so many bytes."""
    if sys.platform == "win32":
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        address_bytes = min(address_bytes, most)
    with contextlib.suppress(OSError, ValueError):  # macOS supports it only in part
        resource.setrlimit(resource.RLIMIT_AS, (address_bytes, most))


def allow_all_time() -> None:
    """Remove the limit of processor time, while nothing is parsed."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_PROF, 0)


def resident_bytes() -> int:
    """Return how much memory this process has in use now; its peak in a Linux without /proc."""
    if sys.platform == "linux":  # 20 times as fast as psutil, which needs /proc as well
        try:
            pages = Path("/proc/self/statm").read_text("ascii").split()[1]
        except OSError:
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    import psutil  # a child starts in a tenth less time without it

    return int(psutil.Process().memory_info().rss)

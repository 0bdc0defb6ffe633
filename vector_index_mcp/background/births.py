"""Tells a process from every other one that ever has its pid, by the time of its start.

Imports the standard library only, since the front end starts with this.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Of Windows: what we may do with a process, and that one has not ended.
_QUERY_AND_WAIT = 0x1000 | 0x0010_0000
_IS_NOT_OVER = 0x102


def birth_of(pid: int) -> str:
    """A value that differs for all processes that ever have the same pid.

    Empty if no such process lives.
    """
    if sys.platform == "win32":
        return _from_windows(pid, _kernel())
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return "" if Path("/proc/self").exists() else _from_ps(pid)
    return "" if fields[0] == "Z" else f"{boot} {fields[19]}"  # in clock ticks since the boot


def _from_ps(pid: int) -> str:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    anywhere = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=5, check=False, env=anywhere
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    state, _, began = ran.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else " ".join(began.split())


def _kernel() -> Any:
    """The functions of Windows. A handle has the size of a pointer, which ctypes must be told."""
    import ctypes

    kernel = ctypes.WinDLL("kernel32")  # type: ignore[attr-defined,unused-ignore]
    kernel.OpenProcess.restype = ctypes.c_void_p
    return kernel


def _from_windows(pid: int, kernel: Any) -> str:
    from ctypes import byref, c_uint64, c_void_p

    # A handle can be had of a process that has ended, too, as long as somebody else has one.
    opened = kernel.OpenProcess(_QUERY_AND_WAIT, False, pid)
    if not opened:
        return ""
    handle = c_void_p(opened)
    try:
        if kernel.WaitForSingleObject(handle, 0) != _IS_NOT_OVER:
            return ""
        birth, *others = [c_uint64() for _ in range(4)]  # its end, and the time that it took
        is_known = kernel.GetProcessTimes(handle, byref(birth), *map(byref, others))
        return str(birth.value) if is_known else ""
    finally:
        kernel.CloseHandle(handle)

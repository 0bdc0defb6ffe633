"""What becomes of a process that `forked` has forked."""

import atexit
import ctypes
import os
import runpy
import sys
import warnings
from multiprocessing.reduction import DupFd
from pathlib import Path

import forked_hosts
import template

# About work that is under way while a process forks; here is none.
warnings.filterwarnings("ignore", "lancedb fork support", RuntimeWarning)

HOOK = "sitecustomize.py"
_PR_CAPBSET_DROP = 24
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1, 2
_CAPABILITIES = 0x20080522  # the version of what `capget` and `capset` exchange


def hook_of(variables: dict[str, str]) -> Path | None:
    """The code of a test that a process with these variables runs first; None if there is none."""
    folder = Path(variables.get("PYTHONPATH", "").partition(os.pathsep)[0])
    of_ours = Path(variables.get(template.VARIABLE, ""))
    return folder / HOOK if folder != of_ours and (folder / HOOK).is_file() else None


def obey_file_modes() -> None:
    """Make even root, and what it runs from now on, unable to do what a mode forbids."""
    if os.geteuid() != 0:
        return
    libc, header, held = ctypes.CDLL(None), (ctypes.c_uint32 * 2)(), (ctypes.c_uint32 * 6)()
    header[0] = _CAPABILITIES
    libc.capget(header, held)
    for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # of what is executed
        for number in range(3):  # effective, permitted and inherited ones
            held[number] &= ~(1 << capability)
    assert libc.capset(header, held) == 0


def become(
    command: list[str],
    folder: str,
    variables: dict[str, str],
    streams: tuple[DupFd, ...],
    *,
    obeys_modes: bool = False,
) -> None:
    """Run a command as `python -m vector_index_mcp` does.

    Args:
        command: Its arguments.
        folder: The folder that it runs in.
        variables: All of its environment.
        streams: What it gets as standard input, output and error.
        obeys_modes: Whether it can do nothing that a mode forbids, even as root.
    """
    if obeys_modes:
        obey_file_modes()
    for number, stream in enumerate(streams):
        os.dup2(stream.detach(), number)
    encoding = variables.get("PYTHONIOENCODING", "utf-8")
    sys.stdin = os.fdopen(0, encoding=encoding, closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding=encoding, closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding=encoding, errors="backslashreplace", closefd=False)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv[1:] = command
    if hook := hook_of(variables):
        runpy.run_path(str(hook))
    forked_hosts.install()
    try:
        runpy.run_module("vector_index_mcp", run_name="__main__", alter_sys=True)
    finally:
        atexit._run_exitfuncs()

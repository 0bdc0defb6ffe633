"""The child processes of the tests' own process."""

import psutil

_STARTERS = "multiprocessing."  # those from which `forked` forks commands; they stay


def children() -> list[psutil.Process]:
    """Those that the program has started in this process, and that are still there."""
    return [each for each in psutil.Process().children() if not _is_starter(each)]


def _is_starter(process: psutil.Process) -> bool:
    try:
        return _STARTERS in " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return False

"""The child processes of the tests' own process."""

import psutil

_COMMANDS = "multiprocessing."  # the process from which `forked` forks commands; it stays
_TEMPLATE = "template.py"  # one from which `forked_children` forks children; it stays


def children() -> list[psutil.Process]:
    """Those that the program has started in this process, and that are still there."""
    found = []
    for process in psutil.Process().children():
        command = _command(process)
        if _TEMPLATE in command:
            found += process.children()
        elif _COMMANDS not in command:
            found.append(process)
    return found


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:  # it has just ended
        return ""

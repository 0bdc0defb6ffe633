"""The standard streams of a process that speaks to another one over them."""

import os
import sys


def claim() -> tuple[int, int]:
    """Take standard input and output for a protocol.

    From then on, what libraries or child processes print goes to stderr, and what they read is
    empty.

    Returns:
        Descriptors of what were standard input and standard output.
    """
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, sink


def open_missing() -> list[str]:
    """Let every standard stream lead somewhere; returns the names of those that were closed.

    Otherwise the next file that is opened, a socket or a lock, would be taken for standard output.
    """
    closed = []
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.append(name)
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            os.set_inheritable(descriptor, True)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    return closed

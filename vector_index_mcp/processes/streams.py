"""The standard streams of a process: reserved for a protocol, and written at its end."""

import contextlib
import logging
import os
import sys
from typing import NoReturn


def claim() -> tuple[int, int]:
    """Reserve standard input and output for a protocol.

    After this, the output of libraries and child processes goes to stderr, and their input is
    empty.

    Returns:
        Descriptors of the original standard input and standard output.
    """
    source, sink = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return source, sink


def open_missing() -> list[str]:
    """Open /dev/null for every standard stream that is closed; return their names.

    Otherwise the next file that is opened, a socket or a lock, would become standard output.
    """
    closed = []
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            closed.append(name)
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor: this one
            os.set_inheritable(descriptor, True)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    return closed


def end(status: int) -> NoReturn:
    """Write what is left to standard output and error, and end the process at once.

    Python does nothing at its end then: it joins no thread and calls no function of `atexit`.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it, or it is closed
            stream.flush()
    os._exit(status)

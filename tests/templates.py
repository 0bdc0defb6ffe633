"""Starts the processes that are forked (`template`), one for each set of imports."""

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import template

CALM_THREADS = {"OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
"""Variables of the tests and of all that they start, as services and workers have them. Else the
threads of numpy and PyTorch spin while they wait for each other, and there is always one that waits
where eight testers share two processors: `test_turned_questions.py` took 9.9 s of a processor, and
1.4 s with these."""
# Not that of a test, by which what it has started is found and ended.
_ENVIRONMENT = os.environ | CALM_THREADS
_TESTS = Path(__file__).parent
_PATH = os.pathsep.join(map(str, (_TESTS, _TESTS / "e2e", _TESTS.parent)))
_ROOM = "." * 8_000
"""Nobody reads it; a fork writes its own command line and variables over those it has inherited."""


def started(
    imported: Sequence[str], address: str = "", variables: Mapping[str, str] | None = None
) -> tuple[subprocess.Popen, socket.socket]:
    """Start a process to be forked; it ends with the tests.

    Args:
        imported: The names of the modules that it imports.
        address: Where others may ask for a fork; it can be connected to from now on.
        variables: Of its environment, besides ours.

    Returns:
        The process, and the socket on which it is asked for forks.
    """
    ours, theirs = socket.socketpair()
    with theirs:
        script = [sys.executable, "-P", str(Path(template.__file__))]
        process = subprocess.Popen(
            [*script, str(theirs.fileno()), " ".join(imported), address, _ROOM],
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            cwd=sys.prefix,
            env={**_ENVIRONMENT, **(variables or {}), "PYTHONPATH": _PATH, "ROOM": _ROOM * 4},
        )
    atexit.register(_end, process, ours)
    if address:
        ours.recv(1)
    return process, ours


def _end(process: subprocess.Popen, asked: socket.socket) -> None:
    asked.close()
    process.wait()

"""Waits for a git process, which ends in time or is killed together with what it has started."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass

from vector_index_mcp.notes.refusal import Code, Refusal

_LOOK_SECONDS = 0.2  # between two checks whether to stop a command


@dataclass(frozen=True, slots=True)
class GitResult:
    """The exit status and the output of a git command."""

    status: int
    output: bytes
    errors: str


def ended(
    process: "subprocess.Popen[bytes]",
    given: bytes,
    seconds: float,
    stopping: threading.Event | None,
) -> GitResult:
    """Wait for a process.

    Args:
        process: A process that leads a group of its own.
        given: The bytes for its standard input.
        seconds: The time after which it is killed.
        stopping: An event that ends it once it is set; only without `given`.

    Raises:
        Refusal: If it does not end in time.
    """
    with process:
        try:
            output, errors = (
                process.communicate(given, timeout=seconds)
                if stopping is None
                else _waited_for(process, seconds, stopping)
            )
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise Refusal(
                    Code.GIT_COMMAND_FAILED,
                    f"git did not finish within {seconds:.0f} s and was stopped; try again",
                ) from error
            raise
    return GitResult(process.returncode, output or b"", errors.decode("utf-8", "replace"))


def _waited_for(
    process: "subprocess.Popen[bytes]", seconds: float, stopping: threading.Event
) -> tuple[bytes, bytes]:
    last = time.monotonic() + seconds
    while True:
        try:
            return process.communicate(timeout=_LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            if stopping.is_set() or time.monotonic() > last:
                raise

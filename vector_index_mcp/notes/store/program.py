"""Starts a git process, which ends in time or is killed together with what it has started."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.notes.refusal import Code, Refusal

_LOOK_SECONDS = 0.2  # between two checks whether to stop a command
_MOST_WORDS_CHARS = 300


@dataclass(frozen=True, slots=True)
class GitResult:
    """The exit status and the output of a git command."""

    status: int
    output: bytes
    errors: str


def started(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], output: int
) -> "subprocess.Popen[bytes]":
    """Start a git command in a process group of its own.

    Args:
        arguments: The command and its arguments.
        folder: Where it works.
        environment: All its environment variables.
        output: A descriptor that gets the output, or `subprocess.PIPE`.

    Raises:
        Refusal: If git is not installed, or the folder is not there.
    """
    try:
        return subprocess.Popen(
            ["git", *arguments],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.PIPE,
            cwd=folder,
            env=environment,
            start_new_session=True,  # a Ctrl-C for us must not stop git during a write
        )
    except FileNotFoundError as error:
        if error.filename == str(folder):
            raise Refusal(
                Code.FILE_SYSTEM_ERROR, f"{folder}: {error.strerror}; nothing was changed"
            ) from error
        raise Refusal(
            Code.GIT_ERROR, "git is not installed, and the notes are kept in git; install git"
        ) from error
    except OSError as error:
        raise Refusal(Code.INTERNAL_ERROR, f"git cannot be started ({error})") from error


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


def failure(name: str, result: GitResult) -> Refusal:
    """Return the Refusal for a git command that failed."""
    lines = [line.strip() for line in result.errors.splitlines() if line.strip()]
    reason = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    words = (reason or " ".join(lines[-1:]) or f"status {result.status}")[:_MOST_WORDS_CHARS]
    return Refusal(
        Code.GIT_COMMAND_FAILED,
        f"git {name} failed: {words}; `vector-index-mcp notes doctor` examines the notes",
    )

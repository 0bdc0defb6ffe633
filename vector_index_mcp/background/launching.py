"""Starts a service as a process of its own, and reports why one could not start.

Imports the standard library only, since a front end starts with this.
"""

import contextlib
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp.background.endpoint import Endpoint
from vector_index_mcp.errors import BackgroundError, NoServiceError, SettingsError, sentence

BUSY = "busy"
"""What a service reports if another process holds its lock."""
START_SECONDS = 30.0
"""For a service to listen; usually it takes about one."""
_EXIT_SECONDS = 1.0  # for a process to end that has closed its output
_BACKTRACE = "stack backtrace:"
_ORDINARY = {"DEBUG", "INFO"}
_LAST_LINE_BYTES, _LAST_LINE_CHARS = 4_096, 300  # read of a log, and shown of its last line
# Windows has these flags instead of sessions; other systems do not know the names.
_DETACHED = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)
_HOST_ENVIRONMENT = {
    # LanceDB has dozens of threads; glibc gives many of them a heap of their own, and keeps freed
    # memory. After a rebuild of 7,500 chunks and 40 searches, the service took 433 MB with glibc's
    # defaults, 358 MB with two heaps, and 265 MB with these values (measured).
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}


def start(
    endpoint: Endpoint,
    host_arguments: Sequence[str],
    make_way: Callable[[], object] = lambda: None,
) -> bool:
    """Start a detached service, and wait until it listens or has failed.

    One process at a time does this, since each start takes most of a second of a processor, and the
    service that gets the lock would be that of any of them.

    Args:
        endpoint: The endpoint of the service.
        host_arguments: The command line's arguments to start it with.
        make_way: Called when no other process may start one, to end a service that runs.

    Returns:
        False if none was started: another process starts one, or one runs, even if it hangs.

    Raises:
        BackgroundError: If `make_way` does.
        NoServiceError: If the service failed, with its own message.
        ProjectError: If the endpoint's folder is gone and cannot be made again.
        SettingsError: If a setting is wrong.
    """
    endpoint.make_folder()
    with contextlib.ExitStack() as turn:
        try:
            has_turn = turn.enter_context(_turn(endpoint))
        except OSError as error:
            raise _not_startable(error) from error
        if not has_turn:
            return False
        make_way()
        return endpoint.keeper is None and _start(endpoint, host_arguments)


@contextlib.contextmanager
def _turn(endpoint: Endpoint) -> Iterator[bool]:
    """Whether it is the turn of this process to start the service, for as long as this lasts."""
    if sys.platform == "win32":  # there, the service's own lock is enough
        yield True
        return
    import fcntl

    endpoint.make_sound()
    with endpoint.log.open("ab") as held:  # a file that has to be there anyway
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _not_startable(error: OSError) -> NoServiceError:
    return NoServiceError(f"no background service can be started: {sentence(error)}")


def _start(endpoint: Endpoint, host_arguments: Sequence[str]) -> bool:
    reports: queue.SimpleQueue[str] = queue.SimpleQueue()
    try:
        logged = endpoint.log.stat().st_size if endpoint.log.exists() else 0
        process = _spawn(endpoint, host_arguments)
    except OSError as error:
        raise _not_startable(error) from error
    in_background(_listen, process, reports)
    try:
        report = reports.get(timeout=START_SECONDS)
    except queue.Empty:
        report = f"error 1: it does not listen after {START_SECONDS:.0f} s; look at {endpoint.log}"
    if not report:
        report = f"error 1: {_how_ended(process)}{last_line(endpoint.log, logged)}"
    if report.startswith("error "):
        status, _, message = report.removeprefix("error ").partition(": ")
        if status == "2":
            raise SettingsError(message)
        raise NoServiceError(f"the background service of {endpoint.place} did not start: {message}")
    return report != BUSY


def _spawn(endpoint: Endpoint, host_arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "vector_index_mcp", *host_arguments]
    with endpoint.log.open("ab") as log:
        return subprocess.Popen(
            [*command, "host", "--set", endpoint.tool_set, endpoint.place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # for the one line that reports success or failure
            stderr=log,
            # A session of its own, so that it outlives the client and its terminal's signals.
            start_new_session=os.name == "posix",
            creationflags=_DETACHED,
            env={**os.environ, **_HOST_ENVIRONMENT},
        )


def in_background(work: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a thread that does not keep the process from ending.

    Raises:
        BackgroundError: If the system cannot start a thread.
    """
    try:
        threading.Thread(target=work, args=arguments, daemon=True).start()
    except RuntimeError as error:
        raise BackgroundError(sentence(error)) from error


def _how_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        status = process.wait(_EXIT_SECONDS)
    except subprocess.TimeoutExpired:
        return "it closed its output without a report"
    if status >= 0:
        cause = ", perhaps for want of memory (`ulimit -v`)" if _is_memory_limited() else ""
        return f"it ended with status {status}{cause}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if name == "SIGABRT" and _is_memory_limited():  # libraries abort if no memory is left
        return f"it was ended by {name}, as for want of memory; raise the limit (`ulimit -v`)"
    return f"it was ended by {name}"


def _is_memory_limited() -> bool:
    try:
        import resource
    except ImportError:  # Windows
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def last_line(log: Path, since: int) -> str:
    """The last line of a service's log after the byte `since`, in brackets.

    Empty if there is none, or if it is an ordinary one, which explains no end.
    """
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - _LAST_LINE_BYTES))
            lines = file.read(_LAST_LINE_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    if _BACKTRACE in lines:  # of a Rust library, whose message stands before it
        lines = lines[: lines.index(_BACKTRACE)]
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    if set(last.split()[2:3]) & _ORDINARY:  # after the date and the time
        return ""
    return f" ({last[:_LAST_LINE_CHARS]})" if last else ""


def _listen(process: subprocess.Popen[bytes], reports: "queue.SimpleQueue[str]") -> None:
    """Pass on the first line of a service; then wait for its end, so that it leaves no zombie."""
    assert process.stdout is not None
    with process.stdout as output:
        reports.put(output.readline().decode("utf-8", "replace").strip())
    process.wait()

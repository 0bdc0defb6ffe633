"""The way to a service, for a front end and for commands: reach it, start it, ask it, end it.

Standard library only: a front end starts with this.
"""

import contextlib
import os
import queue
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting
from vector_index_mcp.background.endpoint import ENDED, Endpoint, birth_of
from vector_index_mcp.errors import (
    BackgroundError,
    NoServiceError,
    QueryError,
    ServiceEndedError,
    SettingsError,
    sentence,
)

OnProgress = Callable[[dict[str, Any]], None]
"""Is told how far a call is."""

_ENDED = "the background service ended before it answered; its index is kept, try again"
_START_SECONDS = 30.0  # for a service to listen; it takes about one
_JOINING_SECONDS = 3.0  # for a service to answer that we can do without
_END_SECONDS = 10.0  # for a service to end when it is asked to; it promises 5
_FORCE_SECONDS = 6.0  # for it to heed a signal; a second more than it promises
_BACKTRACE = "stack backtrace:"
_LOOK_SECONDS = 0.02  # between two looks
_FAREWELL_SECONDS = 5.0  # for a service to end, in which it promises to
_LAST_WORDS_SECONDS = 1.0  # for a service that is gone to be gone altogether
_LAST_WORDS_BYTES, _LAST_WORDS_CHARS = 4_096, 300  # of its log
# What Windows has in place of sessions, where these names are known.
_DETACHED = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)


def connected(endpoint: Endpoint, host_arguments: Sequence[str]) -> socket.socket:
    """A session with the service, which is started if there is none.

    A service of another version is asked to end, and replaced; its index stays.

    Raises:
        BackgroundError: If no service can be started; says why.
    """
    return granted(endpoint, host_arguments, greeting.MCP)[0]


def granted(
    endpoint: Endpoint,
    host_arguments: Sequence[str],
    wants: str,
    values: Mapping[str, Any] | None = None,
    *,
    patience: float | None = None,
) -> tuple[socket.socket, dict[str, Any]]:
    """A connection for what lasts as long as it does, and what the service said to it.

    Args:
        endpoint: Where the service is met, or will be once it is started.
        host_arguments: The command line's arguments that it has to be started with.
        wants: What for.
        values: What belongs to that.
        patience: Seconds for a service that runs to answer, of a caller that can do without it;
            None for one that cannot, and waits as long as a service may take to start.

    Raises:
        BackgroundError: If no service can be started, or it refuses; says why.
    """
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            connection, answer = _ask(endpoint, wants, patience or greeting.ANSWER_SECONDS, values)
        except OSError as error:
            if patience is not None and isinstance(error, TimeoutError):
                raise NoServiceError(
                    f"the background service of {endpoint.place} does not answer within "
                    f"{patience:.0f} s"
                ) from error
            start(endpoint, host_arguments)
            continue
        if answer.get("version") == __version__:
            return connection, answer
        connection.close()
        stop(endpoint)
    raise NoServiceError(
        f"the background service of {endpoint.place} does not answer; look at {endpoint.log}, "
        "and end it with `vector-index-mcp stop`"
    )


def joined(endpoint: Endpoint, wants: str) -> socket.socket | None:
    """A connection to a service that runs; None if there is none of this version that answers.

    Raises:
        BackgroundError: If it refuses; says why.
    """
    try:
        connection, answer = _ask(endpoint, wants, _JOINING_SECONDS)
    except OSError:
        return None
    if answer.get("version") == __version__:
        return connection
    connection.close()
    return None


def ask(
    endpoint: Endpoint, wants: str, patience: float = greeting.ANSWER_SECONDS
) -> dict[str, Any] | None:
    """What the service answers to `wants`; None if there is none, or none that answers."""
    try:
        connection, answer = _ask(endpoint, wants, patience)
    except OSError:
        return None
    connection.close()
    return answer


def call(
    endpoint: Endpoint,
    name: str,
    arguments: dict[str, Any],
    on_progress: OnProgress,
    host_arguments: Sequence[str] | None = None,
) -> Any | None:
    """What a service answers to a call; None if there is none, and none is to be started.

    Args:
        endpoint: Where it is met.
        name: Of the call.
        arguments: What JSON can hold.
        on_progress: Called with what the service says meanwhile.
        host_arguments: What a service is started with, also in place of one of another version;
            None starts none.

    Raises:
        BackgroundError: If it is of another version, cannot be started, or answers with an error.
        QueryError: If the call is too long.
        ServiceEndedError: If it ends before it has answered; it may have done what was asked.
        SettingsError: If it answers that something asked for makes no sense.
    """
    request = greeting.line({"call": name, "arguments": arguments})
    if len(request) > greeting.LONGEST_CALL_BYTES:
        raise QueryError(f"{len(request):,} bytes are too much to ask at once; ask for less")
    try:
        if host_arguments is None:
            connection, answer = _ask(endpoint, greeting.CALL)
        else:
            connection, answer = granted(
                endpoint, host_arguments, greeting.CALL, patience=_JOINING_SECONDS
            )
    except OSError:
        return None
    with connection:
        _check_version(answer)
        try:
            connection.sendall(request)
            with connection.makefile("rb") as lines:
                return _result(lines, on_progress)
        except OSError as error:
            raise ServiceEndedError(_ENDED) from error


def _result(lines: Iterable[bytes], on_progress: OnProgress) -> Any:
    for line in lines:
        said = greeting.parse(line)
        if "result" in said:
            return said["result"]
        if "error" in said:
            is_wrong_use = said.get("status") == greeting.WRONG_USE
            raise (SettingsError if is_wrong_use else BackgroundError)(str(said["error"]))
        on_progress(said.get("progress") or {})
    raise ServiceEndedError(_ENDED)


def _check_version(answer: dict[str, Any]) -> None:
    if answer.get("version") != __version__:
        raise BackgroundError(
            f"the background service is of version {answer.get('version')}, this is {__version__}; "
            "end it with `vector-index-mcp stop`, the next client starts another"
        )


def stop(endpoint: Endpoint) -> bool:
    """Ask the service to end and wait until its process is gone; False if there was none.

    One that does not answer or does not end is ended by force: its index survives that.

    Raises:
        BackgroundError: If it does not end even so.
    """
    try:
        connection, answer = _ask(endpoint, greeting.STOP, _JOINING_SECONDS)
    except OSError:
        return _end_by_force(endpoint)
    pid = int(answer["pid"])
    with connection:
        # It closes the connection when it is about to end, or dies, which closes it as well.
        select.select([connection], [], [], _END_SECONDS)
    if not _ends_within(_END_SECONDS, pid) and not _end_by_force(endpoint):
        raise BackgroundError(f"the background service does not end; kill process {pid}")
    return True


def _end_by_force(endpoint: Endpoint) -> bool:
    """End the service's process by signals; False if there is none that is surely the service's.

    Raises:
        BackgroundError: If it does not end.
    """
    # First the signal that a service heeds which only cannot be reached.
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        pid = endpoint.keeper
        if pid is None:
            return number is not signal.SIGTERM
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        if _ends_within(_FORCE_SECONDS, pid):
            break
    else:
        raise BackgroundError(f"the background service does not end; kill process {pid}")
    if endpoint.read_record().get("pid") == pid:  # and not of one that was started meanwhile
        endpoint.forget()
    return True


def _ends_within(seconds: float, pid: int) -> bool:
    deadline = time.monotonic() + seconds
    while _is_alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True


def _is_alive(pid: int) -> bool:
    if os.name != "posix":  # where asking with signal 0 would end the process
        return False
    return bool(birth_of(pid))  # empty for a zombie, which nobody has waited for yet


def reason_of_end(endpoint: Endpoint, pid: Any) -> str:
    """Why the service of process `pid` has left us; empty if it was to end."""
    deadline = time.monotonic() + _FAREWELL_SECONDS
    while record := endpoint.read_record():
        if reason := record.get(ENDED):
            return f"the background service ended by an error: {reason}"
        if record.get("pid") != pid:  # another one has taken its place
            return ""
        if not isinstance(pid, int) or not _is_alive(pid):
            said = _last_line(endpoint.log, 0)
            return f"the background service was killed or has crashed{said}; look at {endpoint.log}"
        if time.monotonic() > deadline:
            return f"the background service has ended this session; look at {endpoint.log}"
        time.sleep(_LOOK_SECONDS)
    return ""


def start(endpoint: Endpoint, host_arguments: Sequence[str]) -> None:
    """Start a service, detached from us, and wait until it listens or has failed.

    Two front ends may do so at the same time: the lock lets one service live, and the other ends
    at once.

    Raises:
        NoServiceError: If it failed; with its own words.
        SettingsError: If a setting is wrong.
    """
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    try:
        logged = endpoint.log.stat().st_size if endpoint.log.exists() else 0
        process = _spawn(endpoint, host_arguments)
    except OSError as error:
        raise NoServiceError(f"no background service can be started: {sentence(error)}") from error
    in_background(_listen, process, said)
    try:
        words = said.get(timeout=_START_SECONDS)
    except queue.Empty:
        words = f"error 1: it does not listen after {_START_SECONDS:.0f} s; look at {endpoint.log}"
    if not words:
        words = f"error 1: {_how_ended(process)}{_last_line(endpoint.log, logged)}"
    if words.startswith("error "):
        status, _, message = words.removeprefix("error ").partition(": ")
        if status == "2":
            raise SettingsError(message)
        raise NoServiceError(f"the background service of {endpoint.place} did not start: {message}")


def _spawn(endpoint: Endpoint, host_arguments: Sequence[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "vector_index_mcp", *host_arguments]
    with endpoint.log.open("ab") as log:
        return subprocess.Popen(
            [*command, "host", "--set", endpoint.tool_set, endpoint.place],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # for the one line that says how the start went
            stderr=log,
            # It outlives the client, and its terminal's signals.
            start_new_session=os.name == "posix",
            creationflags=_DETACHED,
            env={**os.environ, **_HOST_ENVIRONMENT},
        )


def in_background(work: Callable[..., None], *arguments: Any) -> None:
    """Do something in a thread that does not keep us.

    Raises:
        BackgroundError: If the system gives us none.
    """
    try:
        threading.Thread(target=work, args=arguments, daemon=True).start()
    except RuntimeError as error:
        raise BackgroundError(sentence(error)) from error


def _how_ended(process: subprocess.Popen[bytes]) -> str:
    try:
        status = process.wait(_LAST_WORDS_SECONDS)
    except subprocess.TimeoutExpired:
        return "it says nothing"
    if status >= 0:
        cause = ", perhaps for want of memory (`ulimit -v`)" if _is_memory_limited() else ""
        return f"it ended with status {status}{cause}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    if name == "SIGABRT" and _is_memory_limited():  # how libraries end where there is none left
        return f"it was ended by {name}, as for want of memory; raise the limit (`ulimit -v`)"
    return f"it was ended by {name}"


def _is_memory_limited() -> bool:
    try:
        import resource
    except ImportError:  # Windows
        return False
    return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY


def _last_line(log: Path, since: int) -> str:
    """The last thing that a service has logged, in brackets; empty if there is nothing."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(since, size - _LAST_WORDS_BYTES))
            lines = file.read(_LAST_WORDS_BYTES).decode("utf-8", "replace").split("\n")
    except OSError:
        return ""
    if _BACKTRACE in lines:  # of a library in Rust: what it says stands before
        lines = lines[: lines.index(_BACKTRACE)]
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f" ({last[:_LAST_WORDS_CHARS]})" if last else ""


def _listen(process: subprocess.Popen[bytes], said: "queue.SimpleQueue[str]") -> None:
    """Pass on the first line of a service, and wait for it, or it would stay as a zombie."""
    assert process.stdout is not None
    with process.stdout as report:
        said.put(report.readline().decode("utf-8", "replace").strip())
    process.wait()


def _ask(
    endpoint: Endpoint,
    wants: str,
    patience: float = greeting.ANSWER_SECONDS,
    values: Mapping[str, Any] | None = None,
) -> tuple[socket.socket, dict[str, Any]]:
    connection = endpoint.connect()
    try:
        secret = str(endpoint.read_record().get("secret", ""))
        return connection, greeting.greet(connection, wants, secret, patience, values)
    except (OSError, BackgroundError):
        connection.close()
        raise


_HOST_ENVIRONMENT = {
    # LanceDB has dozens of threads, glibc gives many of them a heap of their own and keeps what
    # was freed: after a rebuild of 7,500 chunks and 40 searches the service took 433 MB with the
    # defaults, 358 MB with two heaps, and 265 MB with these (measured).
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    # A query is embedded by numpy, whose threads wait for each other on a busy machine: 23 ms by
    # one, 82 ms by two, with a process on either core (measured).
    "OPENBLAS_NUM_THREADS": "1",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}

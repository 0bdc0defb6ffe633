"""The front end: finds the project's service or starts it, then carries bytes to and fro.

This is what an MCP client starts, once per session, so it costs next to nothing: it imports only
the standard library, knows no message it carries, and ends when either side does.
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting
from vector_index_mcp.background.endpoint import Endpoint, birth_of, endpoint_of
from vector_index_mcp.errors import BackgroundError, SettingsError

_CHUNK_BYTES = 65_536
_START_SECONDS = 30.0  # for a service to listen; it takes about one
_END_SECONDS = 10.0  # for a service to end when it is asked to; it promises 5
_FORCE_SECONDS = 6.0  # for it to heed a signal; a second more than it promises
_LOOK_SECONDS = 0.02  # between two looks
# What Windows has in place of sessions, where these names are known.
_DETACHED = getattr(subprocess, "DETACHED_PROCESS", 0) | getattr(
    subprocess, "CREATE_NEW_PROCESS_GROUP", 0
)
_LAST_ANSWERS_SECONDS = 10.0  # for answers under way when the client has no more requests


def run(project: Path, host_arguments: Sequence[str]) -> int:
    """Relay the standard streams to the service of `project` until either side ends.

    Args:
        project: Absolute and resolved.
        host_arguments: The command line's arguments that a service has to be started with.

    Returns:
        The exit status.
    """
    connection = connected(project, host_arguments)
    _carry(connection)
    return 0


def connected(project: Path, host_arguments: Sequence[str]) -> socket.socket:
    """A session with the service of `project`, which is started if there is none.

    A service of another version is asked to end, and replaced; its index stays.

    Raises:
        BackgroundError: If no service can be started; says why.
    """
    endpoint = endpoint_of(project)
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        try:
            connection, answer = _ask(endpoint, greeting.MCP)
        except OSError:
            start(endpoint, project, host_arguments)
            continue
        if answer.get("version") == __version__:
            return connection
        connection.close()
        stop(endpoint)
    raise BackgroundError(
        f"the background service of {project} does not answer; look at {endpoint.log}, "
        "and end it with `vector-index-mcp stop`"
    )


def joined(endpoint: Endpoint) -> socket.socket | None:
    """A session with the service that runs; None if there is none. Starts nothing.

    Raises:
        BackgroundError: If it is of another version.
    """
    try:
        connection, answer = _ask(endpoint, greeting.MCP)
    except OSError:
        return None
    if answer.get("version") != __version__:
        connection.close()
        raise BackgroundError(
            f"the background service is of version {answer.get('version')}, this is {__version__}; "
            "end it with `vector-index-mcp stop`, the next client starts another"
        )
    return connection


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


def stop(endpoint: Endpoint) -> bool:
    """Ask the service to end and wait until its process is gone; False if there was none.

    One that does not answer or does not end is ended by force: its index survives that.

    Raises:
        BackgroundError: If it does not end even so.
    """
    try:
        connection, answer = _ask(endpoint, greeting.STOP)
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


def start(endpoint: Endpoint, project: Path, host_arguments: Sequence[str]) -> None:
    """Start a service for `project`, detached from us, and wait until it listens or has failed.

    Two front ends may do so at the same time: the lock lets one service live, and the other ends
    at once.

    Raises:
        BackgroundError: If it failed; with its own words.
    """
    said: queue.SimpleQueue[str] = queue.SimpleQueue()
    process = _spawn(endpoint, project, host_arguments)
    threading.Thread(target=_listen, args=(process, said), daemon=True).start()
    try:
        words = said.get(timeout=_START_SECONDS)
    except queue.Empty:
        words = ""
    if words.startswith("error "):
        status, _, message = words.removeprefix("error ").partition(": ")
        raise SettingsError(message) if status == "2" else BackgroundError(message)
    if not words:
        raise BackgroundError(
            f"the background service of {project} did not start; look at {endpoint.log}"
        )


def _spawn(
    endpoint: Endpoint, project: Path, host_arguments: Sequence[str]
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-P", "-m", "vector_index_mcp", *host_arguments]
    with endpoint.log.open("ab") as log:
        return subprocess.Popen(
            [*command, "host", str(project)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # for the one line that says how the start went
            stderr=log,
            # It outlives the client, and its terminal's signals.
            start_new_session=os.name == "posix",
            creationflags=_DETACHED,
            env={**os.environ, **_HOST_ENVIRONMENT},
        )


def _listen(process: subprocess.Popen[bytes], said: "queue.SimpleQueue[str]") -> None:
    """Pass on the first line of a service, and wait for it, or it would stay as a zombie."""
    assert process.stdout is not None
    with process.stdout as report:
        said.put(report.readline().decode("utf-8", "replace").strip())
    process.wait()


def _ask(
    endpoint: Endpoint, wants: str, patience: float = greeting.ANSWER_SECONDS
) -> tuple[socket.socket, dict[str, Any]]:
    connection = endpoint.connect()
    try:
        secret = str(endpoint.read_record().get("secret", ""))
        return connection, greeting.greet(connection, wants, secret, patience)
    except (OSError, BackgroundError):
        connection.close()
        raise


def _carry(connection: socket.socket) -> None:
    """Carry bytes both ways until the service ends, or the client has no more to say."""
    upstream = threading.Thread(target=_send_input, args=(connection,), daemon=True)
    upstream.start()
    while data := _receive(connection):
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(1, view) :]
            except OSError:  # the client reads no more
                return


def _receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_CHUNK_BYTES)
    except OSError:
        return b""


def _send_input(connection: socket.socket) -> None:
    try:
        while data := os.read(0, _CHUNK_BYTES):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(_LAST_ANSWERS_SECONDS)
    except OSError:
        return


_HOST_ENVIRONMENT = {
    # LanceDB has dozens of threads, glibc gives many of them a heap of their own and keeps what
    # was freed: after a rebuild of 7,500 chunks and 40 searches the service took 433 MB with the
    # defaults, 358 MB with two heaps, and 265 MB with these (measured).
    "MALLOC_ARENA_MAX": "2",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}

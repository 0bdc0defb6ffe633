"""Connects front ends and commands to a service: reaches it, has it started, asks it, ends it.

Imports the standard library only, since a front end starts with this.
"""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting, messages
from vector_index_mcp.background.births import birth_of
from vector_index_mcp.background.endpoint import ENDED, Endpoint
from vector_index_mcp.background.launching import START_SECONDS, last_line, start
from vector_index_mcp.errors import (
    BackgroundError,
    NoServiceError,
    QueryError,
    ServiceEndedError,
    SettingsError,
)

OnProgress = Callable[[dict[str, Any]], None]
"""Receives the progress of a call."""

JOINING_SECONDS = 3.0
"""For an answer of a service that the caller can do without."""
SILENT_SECONDS, PATIENCE_SECONDS = 15.0, 30.0
"""Until a service that says nothing, though a request waits, is asked whether it is there, and for
it to answer. Together less than the minute that the clients of some SDKs wait."""
PERHAPS_DONE = "; the change may already have been made: check before you repeat it"
_ENDED = (
    "the background service ended before it answered; its index is kept. Ask again; if you asked "
    "for a change, it may already have been made: check first"
)
_CHUNK_BYTES = 65_536
_END_SECONDS = 10.0  # for a service to end after a request; it is meant to take at most 5
_FORCE_SECONDS = 6.0  # for a service to end after a signal; one more than it is meant to take
_LOOK_SECONDS = 0.02  # between two checks
_MOST_STARTS = 3  # of services that end before they answer a greeting
# Between two looks at a service that another process starts, or that hangs.
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS, _PAUSE_GROWTH = 0.05, 5.0, 1.5
_FAREWELL_SECONDS = 5.0  # for a service to end that has closed its connection


def granted(
    endpoint: Endpoint,
    host_arguments: Sequence[str],
    wants: str,
    values: Mapping[str, Any] | None = None,
    *,
    patience: float | None = None,
    any_version: bool = False,
) -> tuple[socket.socket, dict[str, Any]]:
    """Connect to the service for a wish that lasts as long as the connection.

    Starts the service if there is none. One of another version is ended and replaced; its index
    stays.

    Args:
        endpoint: The endpoint of the service, whether it runs or not.
        host_arguments: The command line's arguments to start the service with.
        wants: The wish, see `greeting`.
        values: Further values of the greeting.
        patience: Seconds for a running service to answer, of a caller that can do without it; None
            for a caller that cannot, and waits as long as a service may take to start.
        any_version: Whether a service of another version will do; else it is replaced.

    Returns:
        The connection, and the service's answer to the greeting.

    Raises:
        BackgroundError: If no service can be started, or it refuses, with the reason.
        ProjectError: If the endpoint's folder is gone and cannot be made again.
        SettingsError: If a setting is wrong.
    """
    if any_version:
        values = {**(values or {}), "any_version": True}
    deadline = time.monotonic() + START_SECONDS
    pause = _FIRST_PAUSE_SECONDS
    starts = 0
    while time.monotonic() < deadline:
        try:
            connection, answer = _ask(endpoint, wants, patience or greeting.ANSWER_SECONDS, values)
        except OSError as error:
            if patience is not None and isinstance(error, TimeoutError):
                raise NoServiceError(
                    f"the background service of {endpoint.place} does not answer within "
                    f"{patience:.0f} s"
                ) from error
            if starts == _MOST_STARTS:
                break
            is_started = start(endpoint, host_arguments)
        else:
            if any_version or answer.get("version") == __version__:
                return connection, answer
            connection.close()
            is_started = start(endpoint, host_arguments, partial(_end_other_version, endpoint))
        if is_started:
            starts += 1
        else:
            time.sleep(pause)
            pause = min(_PAUSE_GROWTH * pause, _LONGEST_PAUSE_SECONDS)
    reason = reason_of_end(endpoint, endpoint.read_record().get("pid")) if starts else ""
    raise NoServiceError(reason or reason_of_silence(endpoint))


def reason_of_silence(endpoint: Endpoint) -> str:
    """What to tell a user whose service hangs."""
    return (
        f"the background service of {endpoint.place} does not answer; its log is {endpoint.log}; "
        f"end it with `{endpoint.stop_command}`"
    )


def _end_other_version(endpoint: Endpoint) -> None:
    """End the service that runs, unless another front end has put one of this version there."""
    answer = ask(endpoint, greeting.REPORT, JOINING_SECONDS)
    if answer is None or answer.get("version") != __version__:
        stop(endpoint)


def joined(endpoint: Endpoint, wants: str) -> socket.socket | None:
    """Connect to a running service; None if none of this version answers.

    Raises:
        BackgroundError: If it refuses, with the reason.
    """
    try:
        connection, answer = _ask(endpoint, wants, JOINING_SECONDS)
    except OSError:
        return None
    if answer.get("version") == __version__:
        return connection
    connection.close()
    return None


def ask(
    endpoint: Endpoint, wants: str, patience: float = greeting.ANSWER_SECONDS
) -> dict[str, Any] | None:
    """The service's answer to the wish `wants`; None if no service runs, or it does not answer."""
    try:
        connection, answer = _ask(endpoint, wants, patience)
    except OSError:
        return None
    connection.close()
    return answer


def hangs(endpoint: Endpoint, patience: float) -> bool:
    """Whether a service runs that does not answer within `patience` seconds."""
    try:
        connection, _ = _ask(endpoint, greeting.REPORT, patience)
    except (TimeoutError, BlockingIOError):  # the latter: too many wait to be connected
        return True
    except (OSError, BackgroundError):  # it has ended, or it refuses
        return False
    connection.close()
    return False


def silence(endpoint: Endpoint, patience: float) -> str:
    """Why a service that runs is of no use: it `hangs`; empty if it answers, or none runs."""
    return reason_of_silence(endpoint) if hangs(endpoint, patience) else ""


def call(
    endpoint: Endpoint,
    name: str,
    arguments: dict[str, Any],
    on_progress: OnProgress,
    host_arguments: Sequence[str] | None = None,
    *,
    patience: float | None = None,
    may_repeat: bool = False,
) -> Any | None:
    """The service's result of a call; None if no service runs and none should be started.

    Args:
        endpoint: The endpoint of the service.
        name: The name of the call.
        arguments: The arguments, as JSON values.
        on_progress: Called with the progress that the service reports.
        host_arguments: The arguments to start a service with if none runs, or to replace one of
            another version; None to start none.
        patience: As for `granted`.
        may_repeat: Whether it does no harm to ask twice: then, if the service ends before it has
            answered, the next one is asked.

    Raises:
        BackgroundError: If the service has another version, cannot be started, or answers with an
            error.
        NoServiceError: If it hangs.
        QueryError: If the call is too long.
        ServiceEndedError: If the service ends before it has answered; it may have done its work.
        SettingsError: If it answers that an argument is wrong.
    """
    request = greeting.line({"call": name, "arguments": arguments})
    if len(request) > greeting.LONGEST_CALL_BYTES:
        raise QueryError(
            f"a request of {len(request):,} bytes is too long, {greeting.LONGEST_CALL_BYTES:,} is "
            "the most; shorten the query"
        )
    may_be_done = "" if may_repeat else PERHAPS_DONE
    asked = partial(_called, endpoint, request, on_progress, host_arguments, patience, may_be_done)
    try:
        return asked()
    except ServiceEndedError:
        if not may_repeat:
            raise
    try:
        return asked()
    except ServiceEndedError as error:
        raise ServiceEndedError(
            f"the background service of {endpoint.place} has ended twice before it answered; its "
            f"index is kept; look at {endpoint.log}"
        ) from error


def _called(
    endpoint: Endpoint,
    request: bytes,
    on_progress: OnProgress,
    host_arguments: Sequence[str] | None,
    patience: float | None,
    may_be_done: str,
) -> Any | None:
    try:
        if host_arguments is None:
            connection, answer = _ask(endpoint, greeting.CALL)
        else:
            connection, answer = granted(endpoint, host_arguments, greeting.CALL, patience=patience)
    except OSError:
        return None
    with connection:
        _check_version(endpoint, answer)
        try:
            connection.settimeout(SILENT_SECONDS + PATIENCE_SECONDS)  # to read all of the request
            connection.sendall(request)
            connection.settimeout(SILENT_SECONDS)
            return _result(_lines(connection, endpoint), on_progress)
        except TimeoutError as error:
            raise NoServiceError(f"{reason_of_silence(endpoint)}{may_be_done}") from error
        except OSError as error:
            raise ServiceEndedError(_ENDED) from error


def _lines(connection: socket.socket, endpoint: Endpoint) -> Iterator[bytes]:
    """The lines that a service sends until it ends.

    Raises:
        OSError: If the connection fails.
        TimeoutError: If the service hangs.
    """
    begun: list[bytes] = []
    while True:
        try:
            data = connection.recv(_CHUNK_BYTES)
        except TimeoutError:
            if hangs(endpoint, PATIENCE_SECONDS):
                raise
            continue
        if not data:
            return
        first, *others = data.split(b"\n")
        begun.append(first)
        for line in others:
            yield b"".join(begun)
            begun = [line]


def _result(lines: Iterable[bytes], on_progress: OnProgress) -> Any:
    for line in lines:
        values = messages.parsed(line)
        if "result" in values:
            return values["result"]
        if "error" in values:
            is_wrong_use = values.get("status") == greeting.WRONG_USE
            raise (SettingsError if is_wrong_use else BackgroundError)(str(values["error"]))
        on_progress(values.get("progress") or {})
    raise ServiceEndedError(_ENDED)


def _check_version(endpoint: Endpoint, answer: dict[str, Any]) -> None:
    if answer.get("version") != __version__:
        raise BackgroundError(
            f"the background service is of version {answer.get('version')}, this is {__version__}; "
            f"end it with `{endpoint.stop_command}`, and the next client starts one of its version"
        )


def stop(endpoint: Endpoint) -> bool:
    """Ask the service to end and wait until its process is gone; False if no service ran.

    A service that does not answer or does not end is killed, which its index survives.

    Raises:
        BackgroundError: If the process does not end even then.
    """
    try:
        connection, answer = _ask(endpoint, greeting.STOP, JOINING_SECONDS)
    except OSError:
        return _end_by_force(endpoint)
    pid = int(answer["pid"])
    with connection:
        # The connection closes when the service ends, however it ends.
        select.select([connection], [], [], _END_SECONDS)
    if not _ends_within(_END_SECONDS, pid) and not _end_by_force(endpoint):
        raise BackgroundError(f"the background service does not end; kill process {pid}")
    return True


def _end_by_force(endpoint: Endpoint) -> bool:
    """End the service's process by signals; False if no process is surely the service's.

    Raises:
        BackgroundError: If the process does not end.
    """
    # SIGTERM first: a service that only cannot be reached then ends in an orderly way.
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
    if endpoint.read_record().get("pid") == pid:  # else another service was started meanwhile
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
    return bool(birth_of(pid))  # empty for a zombie, too


def reason_of_end(endpoint: Endpoint, pid: Any) -> str:
    """Why the service of process `pid` has ended the connection; empty if it was meant to end."""
    deadline = time.monotonic() + _FAREWELL_SECONDS
    while record := endpoint.read_record():
        if reason := record.get(ENDED):
            return f"the background service ended by an error: {reason}"
        if record.get("pid") != pid:  # another service has replaced it
            return ""
        if not isinstance(pid, int) or not _is_alive(pid):
            last = last_line(endpoint.log, 0)
            return f"the background service was killed or has crashed{last}; look at {endpoint.log}"
        if time.monotonic() > deadline:
            return f"the background service has ended this session; look at {endpoint.log}"
        time.sleep(_LOOK_SECONDS)
    return ""


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

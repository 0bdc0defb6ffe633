"""The commands about background services: ps, stop and logs."""

import os
import sys
import time
from collections.abc import Iterator
from enum import Enum, auto
from pathlib import Path
from typing import Any, TextIO

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import Endpoint, all_endpoints, endpoint_of
from vector_index_mcp.codebase.project import USUAL_INDEX, indexed_above, resolve_project
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.errors import BackgroundError, ProjectError, SettingsError
from vector_index_mcp.foreign import visible
from vector_index_mcp.serving.names import CODEBASE
from vector_index_mcp.sharing.place import TOOL_SET

_FOLLOW_SECONDS = 0.2
_ANSWER_SECONDS = 3.0  # a service answers within milliseconds; `ps` asks one after the other
_NONE = "no background service is running"
_COLUMNS = "{:>7}  {:<13}  {:>7}  {:>9}  {:>9}  {}"


def ps() -> int:
    """List the services that run; returns the exit status."""
    rows = [row for endpoint in all_endpoints() if (row := _row(endpoint))]
    if not rows:
        write(_NONE)
        return 0
    write(_COLUMNS.format("PID", "STATE", "CLIENTS", "MEMORY", "UPTIME", "PROJECT"))
    for row in rows:
        memory = f"{row['memory_bytes'] / 1e6:.0f} MB" if "memory_bytes" in row else "-"
        uptime = _duration(max(0.0, time.time() - row["started"]))  # the clock may be set back
        project = visible(row["project"])
        clients = row.get("clients", "-")
        write(_COLUMNS.format(row["pid"], row["state"], clients, memory, uptime, project))
    return 0


def _row(endpoint: Endpoint) -> dict[str, Any]:
    """Return what a service reports about itself; empty if none runs."""
    if report := contact.ask(endpoint, greeting.REPORT, _ANSWER_SECONDS):
        report.pop("settings", None)  # stamps, which tell people nothing
        return report
    # Read the record before looking for the process: a service that is about to end removes it.
    record = endpoint.read_record()
    return {**record, "state": "not answering"} if endpoint.keeper else {}


def stop(path: str | None, *, everything: bool) -> int:
    """End the services of `path`, or all of them; returns the exit status.

    Raises:
        SettingsError: If both a path and all are given, or neither.
        ProjectError: If there is no such project.
    """
    if (path is None) == (not everything):
        raise SettingsError("name the services to end: give either a PATH or --all")
    if path is not None:
        return max(stop_at(endpoint) for endpoint in _endpoints_at(path))
    ends = [_stop_one(endpoint) for endpoint in all_in_order()]
    if all(end is _End.ABSENT for end in ends):
        write(_NONE)
    return 1 if _End.FAILED in ends else 0


def all_in_order() -> list[Endpoint]:
    """Return the endpoints of all services that may run, in the order in which to end them.

    The shared worker comes last: a service that still runs would start another one.
    """
    return sorted(all_endpoints(), key=lambda each: each.tool_set == TOOL_SET)


def stop_at(endpoint: Endpoint) -> int:
    """End the service at `endpoint`; returns the exit status."""
    end = _stop_one(endpoint)
    if end is _End.ABSENT:
        write(f"{_NONE} for {visible(endpoint.place)}")
    return 1 if end is _End.FAILED else 0


class _End(Enum):
    """What became of a service that was to end."""

    ENDED = auto()
    ABSENT = auto()
    FAILED = auto()


def _stop_one(endpoint: Endpoint) -> _End:
    project = visible(endpoint.read_record().get("project", endpoint.place))
    try:
        stopped = contact.stop(endpoint)
    except BackgroundError as error:
        write(f"vector-index-mcp: {project}: {visible(str(error))}", sys.stderr)
        return _End.FAILED
    if not stopped:
        return _End.ABSENT
    write(f"ended the service of {project}")
    return _End.ENDED


def logs(path: str, *, follow: bool) -> int:
    """Print the log of the service of `path`; returns the exit status.

    Raises:
        BackgroundError: If it has logged nothing yet.
        ProjectError: If there is no such project.
    """
    endpoints = _endpoints_at(path)
    has_log = (endpoint for endpoint in endpoints if endpoint.log.is_file())
    return logs_at(next(has_log, endpoints[0]), follow=follow)


def logs_at(endpoint: Endpoint, *, follow: bool) -> int:
    """Print the log of the service at `endpoint`; returns the exit status.

    Raises:
        BackgroundError: If it has logged nothing yet.
    """
    log = endpoint.log
    if not log.is_file():
        raise BackgroundError(f"there is no log yet: no service has run here ({log})")
    for text in _texts(log):
        write(visible(text, keep="\n\t"), end="")
        if not follow:
            break
        time.sleep(_FOLLOW_SECONDS)
    return 0


def _texts(log: Path) -> Iterator[str]:
    """Yield what a log holds, and then for ever what is added, also after it is rotated."""
    while True:
        with log.open(encoding="utf-8", errors="replace") as lines:
            while not _is_replaced(log, lines):
                yield lines.read()
            yield lines.read()  # what was added to the former file at last


def _is_replaced(log: Path, lines: TextIO) -> bool:
    try:
        return not os.path.samestat(log.stat(), os.fstat(lines.fileno()))
    except OSError:  # there is none now
        return False


def _endpoints_at(path: str) -> list[Endpoint]:
    """Return the endpoints of a place's services, whatever their tool set.

    Args:
        path: A folder, or a place as `ps` lists it.

    Raises:
        ProjectError: If no service belongs to it, and it is no project either.
        SettingsError: If the path is none.
    """
    place = str(resolved(path))
    known = list(all_endpoints())
    found = [endpoint for endpoint in known if endpoint.place in (path, place)]
    if not found and path == Path(path).name and not os.path.lexists(path):
        raise ProjectError(f"{path} is neither a folder here nor a service that `ps` lists")
    if found:
        return found
    folder = resolve_project(path, allow_broad=True)
    from vector_index_mcp.serving.folders import state_folder  # imports pydantic

    # The one whose index a search in the folder uses.
    above = str(indexed_above(folder, USUAL_INDEX, state_folder()))
    of_above = [each for each in known if each.tool_set == CODEBASE and each.place == above]
    return of_above or [endpoint_of(CODEBASE, folder)]


def _duration(seconds: float) -> str:
    minutes, hours = int(seconds // 60), int(seconds // 3600)
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"

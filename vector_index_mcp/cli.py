"""The command line: turns arguments and settings into work, and errors into exit statuses.

Status 0: done. 1: it failed, or files failed. 2: the command or a setting is wrong.
"""

import argparse
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vector_index_mcp.background import refusal
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.console import log
from vector_index_mcp.console.arguments import Run, parse
from vector_index_mcp.console.searching import Search
from vector_index_mcp.console.terminal import write
from vector_index_mcp.errors import (
    SYSTEM_ERRORS,
    SettingsError,
    VectorIndexError,
    is_of_machine,
    is_wrong_use,
    sentence,
)
from vector_index_mcp.foreign import visible
from vector_index_mcp.processes import streams

if TYPE_CHECKING:  # imports pydantic
    from vector_index_mcp.background.endpoint import Endpoint
    from vector_index_mcp.settings import Settings

_log = logging.getLogger(__name__)

_ENV_FILE_VARIABLE = "VECTOR_INDEX_ENV_FILE"
_PROTOCOL = ("stdin", "stdout")
_WAITS = (
    "waiting for an MCP client on standard input; Ctrl+C ends this, and\n"
    '`vector-index-mcp search "..."` searches from a terminal'
)
# A thread of this library may want the interpreter's lock while Python ends. Python then ends the
# thread, and Rust aborts the process: one in eight that end right after a request (measured).
_ABORTING = "obstore"
_INTERRUPTED = 130  # a shell's status for a command ended by Ctrl+C


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    closed = streams.open_missing()
    status = run(sys.argv[1:] if arguments is None else arguments, closed)
    if status == _INTERRUPTED:
        # Python waits for threads now. Another Ctrl+C ends them, without a traceback.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _ABORTING in sys.modules:
        streams.end(status)
    sys.exit(status)


def run(arguments: Sequence[str], closed: Collection[str] = ()) -> int:
    """Run the program; returns its exit status.

    Args:
        arguments: The command line's.
        closed: The standard streams that were closed when the program started.
    """
    parsed = parse(arguments, COMMANDS, _clients(arguments))
    run_command: Run = parsed.run
    try:
        if parsed.speaks_mcp:
            _require_streams(closed)
        return run_command(parsed)
    except VectorIndexError as error:
        return _fail(parsed, REMEDIES.message(error), 2 if is_wrong_use(error) else 1)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output (`| head`) has ended; drop what is still buffered.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except (*SYSTEM_ERRORS, ExceptionGroup) as error:
        if not (isinstance(error, OSError) or is_of_machine(error)):
            raise  # a bug, of which the traceback tells most
        _log.debug("this error ended the program", exc_info=True)
        return _fail(parsed, sentence(error), 1)


def _require_streams(closed: Collection[str]) -> None:
    if missing := [name for name in _PROTOCOL if name in closed]:
        raise SettingsError(
            f"{' and '.join(missing)} closed, but an MCP client talks to the server through it; "
            "let the client start the server, with pipes"
        )
    if os.isatty(0):
        write(_WAITS, sys.stderr)


# The commands. Each imports what it needs inside its function: a front end needs only the standard
# library, and --help or a mistyped command should not wait for other imports.


def _serve(parsed: argparse.Namespace) -> int:
    """Run the front end of the project's background service, or with --foreground the server."""
    if parsed.others:
        return _serve_workspace(parsed)
    if parsed.foreground:
        return _serve_in_foreground(parsed)
    from vector_index_mcp.background import relay

    return relay.run(_endpoint(parsed), _host_options(parsed))


def _serve_in_foreground(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    import anyio

    from vector_index_mcp.serving import loading

    head_start = loading.head_start_of(project, configured)
    from vector_index_mcp.serving import lean_mcp

    lean_mcp.load()
    from vector_index_mcp.serving import names, server, sets, transport

    tool_set = sets.named(names.CODEBASE)
    streams_of_client = transport.StandardStreams()
    anyio.run(server.serve_stdio, tool_set, project, configured, streams_of_client, head_start)
    return 0


def _serve_workspace(parsed: argparse.Namespace) -> int:
    """Serve several projects as one, each searched by its own background service."""
    if parsed.foreground:
        raise SettingsError(
            "several projects are searched through their background services; "
            "leave out --foreground"
        )
    configured = _settings(parsed)
    from vector_index_mcp.codebase.project import resolve_projects
    from vector_index_mcp.serving import lean_mcp

    lean_mcp.load()
    from vector_index_mcp.serving import several

    paths, broad = (parsed.path, *parsed.others), configured.allow_broad_path
    projects = resolve_projects(paths, allow_broad=broad)
    for missing in (project for project in projects if not os.path.isdir(project)):
        write(f"{visible(str(missing))} does not exist; the other projects are served", sys.stderr)
    several.serve(projects, configured, _host_options(parsed))
    return 0


def _ui(parsed: argparse.Namespace) -> int:
    from vector_index_mcp.console import ui

    opens_browser = not parsed.no_open
    if parsed.path is None:
        _project_and_settings(parsed)
    return ui.run(_endpoint(parsed), _host_options(parsed), opens_browser=opens_browser)


def _host(parsed: argparse.Namespace) -> int:
    """Run a background service in this process."""
    from vector_index_mcp.console import hosting

    return hosting.run(parsed.set, parsed.path, _env_file(parsed))


def _index(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import commands

    return commands.index(project, configured, force=parsed.force)


def _search(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import commands

    return commands.search(project, configured, Search.of(parsed), _host_options(parsed))


def _status(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import commands

    if parsed.skipped:
        return commands.skipped(project, configured)
    if parsed.watch:
        return commands.watch(project)
    return commands.status(project, configured, as_json=parsed.json)


def _verify(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import commands

    return commands.verify(project, configured, repair=parsed.repair)


def _share(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import commands

    return commands.share(project, configured)


def _publish(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import publishing

    wanted = publishing.Wanted(parsed.uri, parsed.branch, parsed.keep, as_json=parsed.json)
    return publishing.run(project, configured, wanted)


def _clear(parsed: argparse.Namespace) -> int:
    if parsed.all and parsed.path is not None:
        raise SettingsError("PATH and --all exclude each other; give only one of them")
    how = {"is_agreed": parsed.yes, "is_shown_only": parsed.dry_run}
    if parsed.all:
        configured = _settings(parsed)
        from vector_index_mcp.console import clear

        return clear.of_user(configured, **how)
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.console import clear

    return clear.of_project(project, configured, **how)


def _doctor(parsed: argparse.Namespace) -> int:
    project, configured = _project_and_settings(parsed)
    from vector_index_mcp.doctor import examine
    from vector_index_mcp.doctor.subject import Project

    subject = Project(project, configured)
    return examine.run(subject, configured, _env_file(parsed), as_json=parsed.json)


def _ps(_: argparse.Namespace) -> int:
    from vector_index_mcp.console import services

    return services.ps()


def _stop(parsed: argparse.Namespace) -> int:
    from vector_index_mcp.console import services

    path = parsed.path if parsed.all else _place_of_service(parsed)
    return services.stop(path, everything=parsed.all)


def _logs(parsed: argparse.Namespace) -> int:
    from vector_index_mcp.console import services

    return services.logs(_place_of_service(parsed), follow=parsed.follow)


def _install(parsed: argparse.Namespace) -> int:
    configured = _settings(parsed)
    from vector_index_mcp.clients import command

    return command.install(parsed, allow_broad=configured.allow_broad_path)


def _uninstall(parsed: argparse.Namespace) -> int:
    _settings(parsed)
    from vector_index_mcp.clients import command

    return command.uninstall(parsed)


def _documents(parsed: argparse.Namespace) -> int:
    """Run a command of `documents`, which parses its own arguments."""
    from vector_index_mcp.console import colours
    from vector_index_mcp.console.documents import commands, desk
    from vector_index_mcp.documents import home

    def desk_of(index: str) -> desk.Desk:
        found = home.home_of(index, os.environ, Path.cwd())

        def examined(as_json: bool) -> int:
            from vector_index_mcp.doctor import examine

            configured, file = _settings(parsed), _env_file(parsed)
            return examine.run_for_documents(found, configured, file, as_json=as_json)

        shown, options = colours.of_output(), _host_options(parsed)
        return desk.Desk(found, lambda: _settings(parsed), options, Path.cwd(), examined, shown)

    return commands.run(parsed.rest, desk_of)


def _notes(parsed: argparse.Namespace) -> int:
    """Run a command of `notes`, which parses its own arguments."""
    from vector_index_mcp.console.notes import arguments

    line = arguments.parse(parsed.rest)
    from vector_index_mcp.console import colours
    from vector_index_mcp.console.notes import commands, desk
    from vector_index_mcp.notes.home import home_of

    home = home_of(line.home, os.environ, Path.cwd())
    return commands.run(line, desk.Desk(home, _host_options(parsed), colours.of_output()))


def _datasets(parsed: argparse.Namespace) -> int:
    """Run a command of `datasets`, which parses its own arguments."""
    from vector_index_mcp.console.datasets import arguments

    line = arguments.parse(parsed.rest)
    from vector_index_mcp.console.datasets import commands

    return commands.run(line, _host_options(parsed), lambda: _settings(parsed))


COMMANDS: Mapping[str, Run] = {
    "serve": _serve,
    "index": _index,
    "search": _search,
    "status": _status,
    "verify": _verify,
    "share": _share,
    "publish": _publish,
    "clear": _clear,
    "doctor": _doctor,
    "ui": _ui,
    "ps": _ps,
    "stop": _stop,
    "logs": _logs,
    "host": _host,
    "documents": _documents,
    "notes": _notes,
    "datasets": _datasets,
    "install": _install,
    "uninstall": _uninstall,
}
"""The function that runs each command."""


def _clients(arguments: Sequence[str]) -> Mapping[str, Collection[str]]:
    """The scopes of each MCP client, by its name; empty for commands that do not need them."""
    if not {"install", "uninstall"} & {*arguments}:
        return {}
    from vector_index_mcp.clients.catalog import CLIENTS

    return {client.name: client.files for client in CLIENTS}


def _env_file(parsed: argparse.Namespace) -> str | None:
    return parsed.env_file or os.environ.get(_ENV_FILE_VARIABLE) or None


def _settings(parsed: argparse.Namespace) -> "Settings":
    """Load the settings, set the log level, and warn of variables that look mistyped."""
    from vector_index_mcp import settings

    configured = settings.load(_env_file(parsed))
    log.to_stderr(configured.log_level)
    for words in settings.mistyped(_env_file(parsed)):
        write(f"vector-index-mcp: {visible(words)}", sys.stderr)
    return configured


def _project_and_settings(parsed: argparse.Namespace) -> "tuple[Path, Settings]":
    from vector_index_mcp.console import which

    configured = _settings(parsed)
    return which.project(parsed, configured), configured


def _place_of_service(parsed: argparse.Namespace) -> str:
    """The path whose service is meant: the one given, or else the current project."""
    return parsed.path or str(_project_and_settings(parsed)[0])


def _endpoint(parsed: argparse.Namespace) -> "Endpoint":
    """The endpoint of a project's service; the service itself checks `allow_broad_path`."""
    from vector_index_mcp.background.endpoint import endpoint_of
    from vector_index_mcp.codebase.project import resolve_project
    from vector_index_mcp.serving.names import CODEBASE

    return endpoint_of(CODEBASE, resolve_project(parsed.path, allow_broad=True))


def _host_options(parsed: argparse.Namespace) -> list[str]:
    """The arguments that start a background service with the same settings."""
    env_file = _env_file(parsed)
    return ["--env-file", os.path.abspath(env_file)] if env_file else []  # noqa: PTH100 - light


def _fail(parsed: argparse.Namespace, reason: str, status: int) -> int:
    with contextlib.suppress(OSError):  # a full disk
        write(f"vector-index-mcp: {visible(reason)}", sys.stderr)
    if parsed.speaks_mcp:
        refusal.answer(visible(reason))
    return status

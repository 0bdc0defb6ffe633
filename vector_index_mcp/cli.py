"""The command line: arguments to settings to work, and exit statuses.

Status 0: done. 1: it failed, or files failed. 2: the command or a setting is wrong.
"""

import argparse
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp.background import refusal
from vector_index_mcp.console.arguments import parse
from vector_index_mcp.console.terminal import visible, write
from vector_index_mcp.errors import (
    SYSTEM_ERRORS,
    ProjectError,
    SettingsError,
    VectorIndexError,
    sentence,
)
from vector_index_mcp.indexing.remedies import with_remedy
from vector_index_mcp.processes import streams

_log = logging.getLogger(__name__)

_ENV_FILE_VARIABLE = "VECTOR_INDEX_ENV_FILE"
_PROTOCOL = ("stdin", "stdout")
_LOG_BYTES = 1_000_000
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    closed = streams.open_missing()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments, closed))


def run(arguments: Sequence[str], closed: Collection[str] = ()) -> int:
    """Run the program; returns its exit status.

    Args:
        arguments: The command line's.
        closed: Which standard streams we were started without.
    """
    parsed = parse(arguments)
    try:
        return _run(parsed, closed)
    except (SettingsError, ProjectError) as error:
        return _fail(parsed, str(error), 2)
    except VectorIndexError as error:
        return _fail(parsed, with_remedy(error), 1)
    except KeyboardInterrupt:
        return 130  # what a shell gives a command ended by Ctrl+C
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough; what is buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except (OSError, MemoryError) as error:
        _log.debug("this has ended the program", exc_info=True)
        return _fail(parsed, sentence(error), 1)


def _run(parsed: argparse.Namespace, closed: Collection[str]) -> int:
    env_file = parsed.env_file or os.environ.get(_ENV_FILE_VARIABLE) or None
    if parsed.command == "serve" and (missing := [name for name in _PROTOCOL if name in closed]):
        raise SettingsError(
            f"{' and '.join(missing)} closed, where an MCP client talks to the server; "
            "let one start it, with pipes"
        )
    if parsed.command == "serve" and not parsed.foreground:
        return _relay(parsed.path, env_file)
    if parsed.command == "ui":
        return _ui(parsed.path, env_file, opens_browser=not parsed.no_open)
    if parsed.command == "host":
        return _host(parsed.path, env_file)
    return _run_command(parsed, env_file)


# The imports stand in the functions: a front end needs the standard library alone, and --help or a
# mistyped command should not wait for what the others need.


def _relay(path: str, env_file: str | None) -> int:
    """Be the front end of the project's background service."""
    from vector_index_mcp.background import relay
    from vector_index_mcp.codebase.project import resolve_project

    # Whether a broad path is allowed is a setting; reading those is the service's business.
    project = resolve_project(path, allow_broad=True)
    return relay.run(project, _host_options(env_file))


def _ui(path: str, env_file: str | None, *, opens_browser: bool) -> int:
    """Open the page of the project's background service."""
    from vector_index_mcp.codebase.project import resolve_project
    from vector_index_mcp.console import ui

    project = resolve_project(path, allow_broad=True)
    return ui.run(project, _host_options(env_file), opens_browser=opens_browser)


def _host_options(env_file: str | None) -> list[str]:
    """The arguments that a service has to be started with."""
    return ["--env-file", os.path.abspath(env_file)] if env_file else []  # noqa: PTH100 - light


def _host(path: str, env_file: str | None) -> int:
    """Be the background service; whoever reads our output learns in one line how the start went."""
    _, report = streams.claim()

    def tell(words: str) -> None:
        # Whoever started us may be gone already, or has been told.
        with contextlib.suppress(OSError), os.fdopen(report, "wb") as pipe:
            pipe.write(f"{words}\n".encode())

    gc.disable()  # of what is imported nothing goes away; looking for it takes 0.04 s of 0.6
    try:
        import anyio

        from vector_index_mcp import settings
        from vector_index_mcp.background.endpoint import endpoint_of
        from vector_index_mcp.codebase.project import resolve_project
        from vector_index_mcp.serving import loading

        configured = settings.load(env_file)
        project = resolve_project(path, allow_broad=configured.allow_broad_path)
        is_chosen = "log_level" in configured.model_fields_set
        _log_to_file(endpoint_of(project).log, configured.log_level if is_chosen else "INFO")

        head_start = loading.head_start_of(project, configured)
        from vector_index_mcp.serving import server

        gc.enable()
        anyio.run(server.host, project, configured, tell, head_start)
    except (*SYSTEM_ERRORS, VectorIndexError, ExceptionGroup) as error:
        is_wrong_use = isinstance(error, (SettingsError, ProjectError))
        tell(f"error {2 if is_wrong_use else 1}: {visible(sentence(error))}")
        if not isinstance(error, VectorIndexError):
            _log.exception("the service ends by an error")
        return 1
    return 0


def _run_command(parsed: argparse.Namespace, env_file: str | None) -> int:
    if parsed.command in {"ps", "stop", "logs"}:
        from vector_index_mcp.console import services

        return services.run(parsed)

    from vector_index_mcp import settings
    from vector_index_mcp.codebase.project import resolve_project

    configured = settings.load(env_file)
    _log_to_stderr(configured.log_level)
    if parsed.command in {"install", "uninstall"}:
        from vector_index_mcp.clients import command

        return command.run(parsed, allow_broad=configured.allow_broad_path)

    project = resolve_project(parsed.path, allow_broad=configured.allow_broad_path)
    if parsed.command == "serve":
        import anyio

        from vector_index_mcp.serving import loading

        head_start = loading.head_start_of(project, configured)
        from vector_index_mcp.serving import server, transport

        streams = transport.StandardStreams()
        anyio.run(server.serve_stdio, project, configured, streams, head_start)
        return 0

    if parsed.command == "doctor":
        from vector_index_mcp.doctor import examine

        return examine.run(project, configured, settings.origins(env_file), as_json=parsed.json)

    from vector_index_mcp.console import commands

    return commands.run(parsed, project, configured)


class _Formatter(logging.Formatter):
    """One line for a record: it may tell of files by their names, and ends up in a terminal."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return visible(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:
        return visible(super().formatException(ei), keep="\n\t")


def _log_to_stderr(level: str) -> None:
    _log_to(logging.StreamHandler(), level)


def _log_to_file(path: Path, level: str) -> None:
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    _log_to(handler, level)
    for talkative in ("mcp", "uvicorn"):  # a line for every request, and for every start
        logging.getLogger(talkative).setLevel(logging.WARNING)


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Formatter(_LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)


def _fail(parsed: argparse.Namespace, reason: str, status: int) -> int:
    with contextlib.suppress(OSError):  # a full disk
        write(f"vector-index-mcp: {visible(reason)}", sys.stderr)
    if parsed.command == "serve":
        refusal.answer(visible(reason))
    return status

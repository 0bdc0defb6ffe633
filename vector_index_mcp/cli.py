"""The command line: arguments to settings to work, and exit statuses.

Status 0: done. 1: it failed, or files failed. 2: the command or a setting is wrong.
"""

import argparse
import gc
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vector_index_mcp import __version__
from vector_index_mcp.codebase.limits import DEFAULT_MAX_TOKENS, DEFAULT_TOP_K, MAX_TOKENS, TOP_K
from vector_index_mcp.errors import ProjectError, SettingsError, VectorIndexError
from vector_index_mcp.terminal import visible, write

_COMMANDS = "serve index search status verify doctor ps stop logs host install uninstall".split()
_ENV_FILE_VARIABLE = "VECTOR_INDEX_ENV_FILE"
_LOG_BYTES = 1_000_000
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_DESCRIPTION = """\
Keeps a software project indexed and searchable by meaning and by identifier.

  vector-index-mcp PATH                  MCP server on stdio: what an MCP client runs
  vector-index-mcp install [PATH]        add the project to your MCP clients
  vector-index-mcp uninstall [PATH]      take it out of them again
  vector-index-mcp index PATH            index the project once
  vector-index-mcp search PATH QUERY     search from the terminal
  vector-index-mcp status PATH           what the index holds
  vector-index-mcp verify PATH           whether the index is true, file by file
  vector-index-mcp doctor PATH           whether everything is as it should be, and what to do
  vector-index-mcp ps                    the background services that run
  vector-index-mcp stop PATH | --all     end a project's service, or all
  vector-index-mcp logs PATH             what a project's service has logged

The first client of a project starts a background service, which keeps the index fresh, serves
every further client and ends by itself when it is not needed. PATH is the folder of one project;
its index is kept in PATH/.lancedb, and everything stays on this machine. There is one server entry
per repository in your MCP client; `install` writes it, or you:

  {"mcpServers": {"my-project": {"command": "vector-index-mcp", "args": ["/path/to/my-project"]}}}
"""
_EPILOG = """\
Settings are environment variables (VECTOR_INDEX_...), or lines of the file given by --env-file or
VECTOR_INDEX_ENV_FILE; the project's own .env is never read. The README lists them all.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program and exit."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run the program; returns its exit status."""
    parsed = parse(arguments)
    env_file = parsed.env_file or os.environ.get(_ENV_FILE_VARIABLE) or None
    try:
        if parsed.command == "serve" and not parsed.foreground:
            return _relay(parsed.path, env_file)
        if parsed.command == "host":
            return _host(parsed.path, env_file, parsed.report)
        return _run_command(parsed, env_file)
    except (SettingsError, ProjectError) as error:
        return _fail(error, 2)
    except VectorIndexError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        return 130  # what a shell gives a command ended by Ctrl+C
    except BrokenPipeError:
        # Whoever read our output (`| head`) has seen enough; what is buffered goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its options; exits with status 2 and a usage line if they make no sense."""
    return _parser().parse_args(_with_command(arguments))


# The imports stand in the functions: a front end needs the standard library alone, and --help or a
# mistyped command should not wait for what the others need.


def _relay(path: str, env_file: str | None) -> int:
    """Be the front end of the project's background service."""
    from vector_index_mcp.background import relay
    from vector_index_mcp.codebase.project import resolve_project

    # Whether a broad path is allowed is a setting; reading those is the service's business.
    project = resolve_project(path, allow_broad=True)
    options = ["--env-file", os.path.abspath(env_file)] if env_file else []  # noqa: PTH100 - light
    return relay.run(project, options)


def _host(path: str, env_file: str | None, report: int) -> int:
    """Be the background service; whoever started us learns from `report` how that went."""

    def tell(words: str) -> None:
        with os.fdopen(report, "w", encoding="utf-8") as pipe:
            pipe.write(words + "\n")

    gc.disable()  # of what is imported nothing goes away; looking for it takes 0.04 s of 0.6
    try:
        import anyio

        from vector_index_mcp import settings
        from vector_index_mcp.background.endpoint import endpoint_of
        from vector_index_mcp.codebase.project import resolve_project

        configured = settings.load(env_file)
        project = resolve_project(path, allow_broad=configured.allow_broad_path)
        is_chosen = "log_level" in configured.model_fields_set
        _log_to_file(endpoint_of(project).log, configured.log_level if is_chosen else "INFO")

        from vector_index_mcp import server
    except VectorIndexError as error:
        is_wrong_use = isinstance(error, (SettingsError, ProjectError))
        tell(f"error {2 if is_wrong_use else 1}: {error}")
        return 1
    gc.enable()
    anyio.run(server.host, project, configured, tell)
    return 0


def _run_command(parsed: argparse.Namespace, env_file: str | None) -> int:
    if parsed.command in {"ps", "stop", "logs"}:
        from vector_index_mcp import services

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

        from vector_index_mcp import server, transport

        streams = transport.StandardStreams()
        anyio.run(server.serve_stdio, project, configured, streams)
        return 0

    if parsed.command == "doctor":
        from vector_index_mcp.doctor import examine

        return examine.run(project, configured, settings.origins(env_file), as_json=parsed.json)

    from vector_index_mcp import commands

    return commands.run(parsed, project, configured)


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`vector-index-mcp PATH` is short for `vector-index-mcp serve PATH`."""
    previous = ""
    for position, argument in enumerate(arguments):
        is_value, previous = previous == "--env-file", argument
        if is_value:
            continue
        if argument in _COMMANDS or argument in {"-h", "--help", "--version"}:
            return list(arguments)
        if not argument.startswith("-"):
            return [*arguments[:position], "serve", *arguments[position:]]
    return list(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp",
        usage="vector-index-mcp [--env-file FILE] [COMMAND] PATH ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # `_with_command` knows options by their names
    )
    parser.add_argument("--env-file", metavar="FILE", help="read settings from this .env file")
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser(
        "serve",
        help="serve MCP on stdio (the default when only PATH is given)",
        description="Serve the project to an MCP client on standard input and output.",
    )
    serve.add_argument(
        "--foreground",
        action="store_true",
        help="without a background service: for containers and debuggers",
    )
    index = commands.add_parser(
        "index",
        help="index the project once and exit",
        description="Bring the index up to date and exit. Status 1 when files failed.",
    )
    index.add_argument("--force", action="store_true", help="read every file again")
    search = commands.add_parser(
        "search",
        help="search the project",
        description="Bring the index up to date and search it, by words and by meaning.",
    )
    status = commands.add_parser(
        "status", help="show what the index holds", description="Show what the index holds."
    )
    kinds = status.add_mutually_exclusive_group()
    kinds.add_argument("--watch", action="store_true", help="show it live, until Ctrl+C")
    kinds.add_argument(
        "--skipped", action="store_true", help="list the files that are not indexed, and why"
    )
    kinds.add_argument("--json", action="store_true", help="print what the MCP tool returns")
    verify = commands.add_parser(
        "verify",
        help="compare the index with the files, one by one",
        description="Read and cut every file and compare. Status 1 when the index is not true.",
    )
    verify.add_argument("--repair", action="store_true", help="if not, build it anew")
    doctor = commands.add_parser(
        "doctor",
        help="examine the machine, the model and the index",
        description="Examine everything the program needs. Status 1 when a check failed.",
    )
    doctor.add_argument("path", metavar="PATH", nargs="?", default=".", help="the project (.)")
    doctor.add_argument("--json", action="store_true", help="print what was found as JSON")
    _add_commands_of_services(commands)
    _add_commands_of_clients(commands)
    for command in (serve, index, search, status, verify):
        command.add_argument("path", metavar="PATH", help="the project's folder")
    _add_search_options(search)
    return parser


def _add_search_options(search: argparse.ArgumentParser) -> None:
    search.add_argument("query", metavar="QUERY", help="a question, an identifier, or both")
    search.add_argument(
        "--top-k",
        type=_number(*TOP_K),
        default=DEFAULT_TOP_K,
        metavar="N",
        help="how many results, 1 to 100 (5)",
    )
    search.add_argument(
        "--glob", default="", metavar="GLOB", help='only files that match it: "src/**", "*.py"'
    )
    search.add_argument("--language", default="", metavar="NAME", help="only files in it: python")
    search.add_argument(
        "--max-tokens",
        type=_number(*MAX_TOKENS),
        default=DEFAULT_MAX_TOKENS,
        metavar="N",
        help="about how long the answer may be (8000)",
    )
    search.add_argument(
        "--format",
        choices=("text", "json", "grep"),
        default="text",
        help="text for people; json: what the MCP tool returns; grep: path:line:text, one "
        "line for each result, as editors read it: the first line with most of the query's words",
    )
    search.add_argument(
        "--json", dest="format", action="store_const", const="json", help="short for --format json"
    )
    search.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="auto (the default): on a terminal, unless NO_COLOR is set",
    )


def _add_commands_of_services(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    commands.add_parser(
        "ps",
        help="list the background services that run",
        description="List the background services that run.",
    )
    stop = commands.add_parser(
        "stop",
        help="end background services",
        description="End the service of a project, or all. An index is never lost by that.",
    )
    stop.add_argument("path", metavar="PATH", nargs="?", help="the project's folder")
    stop.add_argument("--all", action="store_true", help="end all services of yours")
    logs = commands.add_parser(
        "logs",
        help="show what a service has logged",
        description="Show what the background service of a project has logged.",
    )
    logs.add_argument("path", metavar="PATH", help="the project's folder")
    logs.add_argument("--follow", action="store_true", help="go on until Ctrl+C")
    # Started by a front end, not by people.
    host = commands.add_parser("host", description="Be the background service of a project.")
    host.add_argument("--report", type=int, required=True, metavar="FD", help=argparse.SUPPRESS)
    host.add_argument("path", metavar="PATH", help="the project's folder")


def _add_commands_of_clients(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    install = commands.add_parser(
        "install",
        help="add the project to your MCP clients",
        description="Add an entry that serves the project to the configuration of MCP clients, "
        "after showing the change and asking.",
    )
    uninstall = commands.add_parser(
        "uninstall",
        help="take the project out of your MCP clients",
        description="Take the project's entry out of the configuration of MCP clients, after "
        "showing the change and asking. The index stays.",
    )
    for command, which in ((install, "those found; asks"), (uninstall, "all that have it")):
        command.add_argument("path", metavar="PATH", nargs="?", help="the project's folder (.)")
        command.add_argument(
            "--client",
            metavar="NAME",
            nargs="+",
            action="extend",
            default=[],
            help=f"which clients: claude-code, cursor, … ({which})",
        )
        command.add_argument(
            "--scope",
            choices=("project", "user"),
            help="in a file of the project, or of yours for all projects",
        )
        command.add_argument("--yes", action="store_true", help="write without asking")
        command.add_argument(
            "--agents-md",
            action="store_true",
            help="also the section of AGENTS.md or CLAUDE.md that says when to search",
        )


def _number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")
        return int(text)

    return parse


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
    logging.getLogger("mcp").setLevel(logging.WARNING)  # it has a line for every request


def _log_to(handler: logging.Handler, level: str) -> None:
    handler.setFormatter(_Formatter(_LOG_FORMAT))
    logging.basicConfig(handlers=[handler], level=level)


def _fail(error: VectorIndexError, status: int) -> int:
    write(f"vector-index-mcp: {visible(str(error))}", sys.stderr)
    return status

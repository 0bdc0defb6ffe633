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

from vector_index_mcp import __version__
from vector_index_mcp.codebase.limits import DEFAULT_MAX_TOKENS, DEFAULT_TOP_K, MAX_TOKENS, TOP_K
from vector_index_mcp.errors import ProjectError, SettingsError, VectorIndexError

_COMMANDS = ("serve", "index", "search", "status", "verify", "ps", "stop", "logs", "ui", "host")
_ENV_FILE_VARIABLE = "VECTOR_INDEX_ENV_FILE"
_LOG_BYTES = 1_000_000
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

_DESCRIPTION = """\
Keeps a software project indexed and searchable by meaning and by identifier.

  vector-index-mcp PATH                  MCP server on stdio: what an MCP client runs
  vector-index-mcp index PATH            index the project once
  vector-index-mcp search PATH QUERY     search from the terminal
  vector-index-mcp status PATH           what the index holds
  vector-index-mcp verify PATH           whether the index is true, file by file
  vector-index-mcp ui PATH               search, progress and a map in a browser
  vector-index-mcp ps                    the background services that run
  vector-index-mcp stop PATH | --all     end a project's service, or all
  vector-index-mcp logs PATH             what a project's service has logged

The first client of a project starts a background service, which keeps the index fresh, serves
every further client and ends by itself when it is not needed. PATH is the folder of one project;
its index is kept in PATH/.lancedb, and everything stays on this machine. Add one server entry per
repository to your MCP client:

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
        if parsed.command == "ui":
            return _ui(parsed.path, env_file, opens_browser=not parsed.no_open)
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
    return relay.run(project, _host_options(env_file))


def _ui(path: str, env_file: str | None, *, opens_browser: bool) -> int:
    """Open the page of the project's background service."""
    from vector_index_mcp import ui
    from vector_index_mcp.codebase.project import resolve_project

    project = resolve_project(path, allow_broad=True)
    return ui.run(project, _host_options(env_file), opens_browser=opens_browser)


def _host_options(env_file: str | None) -> list[str]:
    """The arguments that a service has to be started with."""
    return ["--env-file", os.path.abspath(env_file)] if env_file else []  # noqa: PTH100 - light


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
    project = resolve_project(parsed.path, allow_broad=configured.allow_broad_path)
    if parsed.command == "serve":
        import anyio

        from vector_index_mcp import server, transport

        streams = transport.StandardStreams()
        anyio.run(server.serve_stdio, lambda: server.load_codebase(project, configured), streams)
        return 0

    from vector_index_mcp import commands

    return commands.run(parsed, project, configured)


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`vector-index-mcp PATH` is short for `vector-index-mcp serve PATH`."""
    for position, argument in enumerate(arguments):
        if argument in _COMMANDS or argument in {"-h", "--help", "--version"}:
            return list(arguments)
        previous = arguments[position - 1] if position else ""
        if not argument.startswith("-") and previous != "--env-file":
            return [*arguments[:position], "serve", *arguments[position:]]
    return list(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp",
        usage="vector-index-mcp [--env-file FILE] [COMMAND] PATH ...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
    status.add_argument(
        "--skipped", action="store_true", help="list the files that are not indexed, and why"
    )
    verify = commands.add_parser(
        "verify",
        help="compare the index with the files, one by one",
        description="Read and cut every file and compare. Status 1 when the index is not true.",
    )
    verify.add_argument("--repair", action="store_true", help="if not, build it anew")
    _add_commands_of_services(commands)
    for command in (serve, index, search, status, verify):
        command.add_argument("path", metavar="PATH", help="the project's folder")
    _add_search_options(search)
    for command in (search, status):
        command.add_argument(
            "--json", action="store_true", help="print the MCP tool's structured result"
        )
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
    ui = commands.add_parser(
        "ui",
        help="open the project's page in a browser",
        description="Print a link to the project's page, and open it. The link works once.",
    )
    ui.add_argument("path", metavar="PATH", help="the project's folder")
    ui.add_argument("--no-open", action="store_true", help="print the link only")
    # Started by a front end, not by people.
    host = commands.add_parser("host", description="Be the background service of a project.")
    host.add_argument("--report", type=int, required=True, metavar="FD", help=argparse.SUPPRESS)
    host.add_argument("path", metavar="PATH", help="the project's folder")


def _number(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or not lowest <= int(text) <= highest:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {lowest} to {highest}")
        return int(text)

    return parse


def _log_to_stderr(level: str) -> None:
    logging.basicConfig(stream=sys.stderr, level=level, format=_LOG_FORMAT)


def _log_to_file(path: Path, level: str) -> None:
    from logging.handlers import RotatingFileHandler

    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8")
    logging.basicConfig(handlers=[handler], level=level, format=_LOG_FORMAT)
    for talkative in ("mcp", "uvicorn"):  # a line for every request, and for every start
        logging.getLogger(talkative).setLevel(logging.WARNING)


def _fail(error: VectorIndexError, status: int) -> int:
    sys.stderr.write(f"vector-index-mcp: {error}\n")
    return status

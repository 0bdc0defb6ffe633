"""The grammar of the command line: which commands there are, and what each of them takes."""

import argparse
from collections.abc import Callable, Sequence
from typing import TypeAlias

from vector_index_mcp import __version__
from vector_index_mcp.codebase.limits import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TOP_K,
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
    MAX_TOKENS,
    TOP_K,
)

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

COMMANDS = "serve index search status verify doctor ui ps stop logs host install uninstall".split()

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
  vector-index-mcp ui PATH               search, progress and a map in a browser
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


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its options; exits with status 2 and a usage line if they make no sense."""
    return _parser().parse_args(_with_command(arguments))


def _with_command(arguments: Sequence[str]) -> list[str]:
    """`vector-index-mcp PATH` is short for `vector-index-mcp serve PATH`."""
    previous = ""
    for position, argument in enumerate(arguments):
        is_value, previous = previous == "--env-file", argument
        if is_value:
            continue
        if argument in COMMANDS or argument in {"-h", "--help", "--version"}:
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

    _add_commands_of_the_index(commands)
    _add_commands_of_services(commands)
    _add_commands_of_clients(commands)
    return parser


def _add_commands_of_the_index(commands: _Commands) -> None:
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
    for command in (serve, index, search, status, verify):
        command.add_argument("path", metavar="PATH", help="the project's folder")
    _add_search_options(search)


def _add_search_options(search: argparse.ArgumentParser) -> None:
    search.add_argument(
        "query",
        type=_text(LONGEST_QUERY_CHARS),
        metavar="QUERY",
        help="a question, an identifier, or both",
    )
    search.add_argument(
        "--top-k",
        type=_number(*TOP_K),
        default=DEFAULT_TOP_K,
        metavar="N",
        help="how many results, 1 to 100 (5)",
    )
    search.add_argument(
        "--glob",
        type=_text(LONGEST_PATH_CHARS),
        default="",
        metavar="GLOB",
        help='only this file or folder, or files that match it: "src", "src/**", "*.py"',
    )
    search.add_argument(
        "--language",
        type=_text(LONGEST_LANGUAGE_CHARS),
        default="",
        metavar="NAME",
        help="only files in it: python",
    )
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


def _add_commands_of_services(commands: _Commands) -> None:
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
    host.add_argument("path", metavar="PATH", help="the project's folder")


def _add_commands_of_clients(commands: _Commands) -> None:
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


def _text(longest: int) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if len(text) > longest:
            raise argparse.ArgumentTypeError(
                f"it has {len(text):,} characters; {longest:,} is the most"
            )
        return text.encode("utf-8", "replace").decode()  # a terminal passes on any bytes

    return parse

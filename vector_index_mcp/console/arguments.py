"""The grammar of the command line: which commands there are, and what each of them takes."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

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
from vector_index_mcp.console.datasets import arguments as datasets
from vector_index_mcp.console.documents import arguments as documents
from vector_index_mcp.console.notes import arguments as notes
from vector_index_mcp.documents.home import DEFAULT_NAME

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs a command that was parsed; returns the exit status."""
_Add: TypeAlias = Callable[..., argparse.ArgumentParser]
"""Adds a command: its name, then what `argparse.ArgumentParser` takes."""

_DOCUMENTS, _NOTES, _DATASETS = "documents", "notes", "datasets"
_DESCRIPTION = """\
Keeps a software project indexed and searchable by meaning and by identifier.

  vector-index-mcp PATH                  MCP server on stdio: what an MCP client runs
  vector-index-mcp install [PATH]        add the project to your MCP clients
  vector-index-mcp uninstall [PATH]      take the project out of them again
  vector-index-mcp index PATH            index the project once
  vector-index-mcp search PATH QUERY     search from the terminal
  vector-index-mcp status PATH           show what the index holds
  vector-index-mcp verify PATH           compare the index with the files, one by one
  vector-index-mcp doctor PATH           examine the machine, the model and the index
  vector-index-mcp ui PATH               search, progress and a map in a browser
  vector-index-mcp ps                    list the background services that run
  vector-index-mcp stop PATH | --all     end a project's service, or all
  vector-index-mcp logs PATH             show what a project's service has logged
  vector-index-mcp documents ...         search and read collections of documents
  vector-index-mcp notes ...             what agents write down about projects, kept in git
  vector-index-mcp datasets ...          knowledge that others have prepared

The first client of a project starts a background service. It keeps the index fresh, serves every
further client and ends by itself when nobody needs it. PATH is the folder of one project; its index
lies in PATH/.lancedb, and everything stays on this machine. Your MCP client needs one server entry
per project; `install` writes it, or you do:

  {"mcpServers": {"my-project": {"command": "vector-index-mcp", "args": ["/path/to/my-project"]}}}
"""
_EPILOG = """\
Settings are environment variables (VECTOR_INDEX_...), or lines of the file given by --env-file or
VECTOR_INDEX_ENV_FILE; the project's own .env is never read. The README lists them all.
"""


@dataclass(frozen=True, slots=True)
class Search:
    """What the command `search` was given."""

    query: str
    top_k: int
    glob: str
    language: str
    max_tokens: int
    folder: str
    """The project's folder as it was typed: printed paths begin with it."""
    format: str
    """`text`, `json` or `grep`."""
    color: str
    """`auto`, `always` or `never`."""

    @classmethod
    def of(cls, parsed: argparse.Namespace) -> "Search":
        """The options that were parsed."""
        return cls(
            query=parsed.query,
            top_k=parsed.top_k,
            glob=parsed.glob,
            language=parsed.language,
            max_tokens=parsed.max_tokens,
            folder=parsed.path,
            format=parsed.format,
            color=parsed.color,
        )


def parse(arguments: Sequence[str], runs: Mapping[str, Run]) -> argparse.Namespace:
    """The options of a command; exits with status 2 and a usage line if they make no sense.

    Args:
        arguments: The command line's.
        runs: What runs each command, by the command's name.

    Returns:
        Besides the options, `run`, which runs the command; `speaks_mcp`: whether standard input and
        output belong to an MCP client; and `rest`: what is for a command with its own grammar.
    """
    ours, rest = _split(_with_command(arguments, runs))
    parsed = _parser(runs).parse_args(ours)
    parsed.rest = rest
    if parsed.command == _DOCUMENTS:
        parsed.speaks_mcp = documents.is_relay(rest)
    elif parsed.command == _NOTES:
        parsed.speaks_mcp = notes.is_relay(rest)
    elif parsed.command == _DATASETS:
        parsed.speaks_mcp = datasets.is_relay(rest)
    return parsed


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What we understand, and what belongs to a command with a grammar of its own."""
    start = 2 if arguments[:1] == ["--env-file"] else 0
    while start < len(arguments) and arguments[start].startswith("--env-file="):
        start += 1
    if arguments[start : start + 1] not in ([_DOCUMENTS], [_NOTES], [_DATASETS]):
        return arguments, []
    return arguments[: start + 1], arguments[start + 1 :]


def _with_command(arguments: Sequence[str], commands: Mapping[str, Run]) -> list[str]:
    """The arguments with a command: `vector-index-mcp PATH` is short for `... serve PATH`."""
    previous = ""
    for position, argument in enumerate(arguments):
        is_value, previous = previous == "--env-file", argument
        if is_value:
            continue
        if argument in commands or argument in {"-h", "--help", "--version"}:
            return list(arguments)
        if not argument.startswith("-"):
            return [*arguments[:position], "serve", *arguments[position:]]
    return list(arguments)


def _parser(runs: Mapping[str, Run]) -> argparse.ArgumentParser:
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
    parser.set_defaults(speaks_mcp=False)
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="COMMAND", prog=parser.prog
    )

    def add(name: str, **texts: Any) -> argparse.ArgumentParser:
        command = commands.add_parser(name, **texts)
        command.set_defaults(run=runs[name])
        return command

    _add_commands_of_the_index(add)
    _add_commands_of_services(add)
    _add_commands_of_clients(add)
    add(
        _DOCUMENTS,
        help="search and read collections of documents; `documents --help` lists what it can",
        add_help=False,
    )
    add(
        _NOTES,
        help="what agents write down about projects; `notes --help` lists what it can",
        add_help=False,
    )
    add(
        _DATASETS,
        help="knowledge that others have prepared; `datasets --help` lists what it can",
        add_help=False,
    )
    return parser


def _add_commands_of_the_index(add: _Add) -> None:
    serve = add(
        "serve",
        help="serve MCP on stdio (the default when only PATH is given)",
        description="Serve the project to an MCP client on standard input and output.",
    )
    serve.set_defaults(speaks_mcp=True)
    serve.add_argument(
        "--foreground",
        action="store_true",
        help="without a background service: for containers and debuggers",
    )
    index = add(
        "index",
        help="index the project once and exit",
        description="Bring the index up to date and exit. Status 1 when files failed.",
    )
    index.add_argument("--force", action="store_true", help="read every file again")
    search = add(
        "search",
        help="search the project",
        description="Bring the index up to date and search it, by words and by meaning.",
    )
    status = add(
        "status", help="show what the index holds", description="Show what the index holds."
    )
    kinds = status.add_mutually_exclusive_group()
    kinds.add_argument("--watch", action="store_true", help="show it live, until Ctrl+C")
    kinds.add_argument(
        "--skipped", action="store_true", help="list the files that are not indexed, and why"
    )
    kinds.add_argument("--json", action="store_true", help="print what the MCP tool returns")
    verify = add(
        "verify",
        help="compare the index with the files, one by one",
        description="Read and cut every file and compare it with the index. Status 1 when they "
        "differ.",
    )
    verify.add_argument(
        "--repair", action="store_true", help="if they differ, build the index anew"
    )
    doctor = add(
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
        help="only files in this language: python",
    )
    search.add_argument(
        "--max-tokens",
        type=_number(*MAX_TOKENS),
        default=DEFAULT_MAX_TOKENS,
        metavar="N",
        help="about how long the answer may be, in tokens (8000)",
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


def _add_commands_of_services(add: _Add) -> None:
    add(
        "ps",
        help="list the background services that run",
        description="List the background services that run.",
    )
    stop = add(
        "stop",
        help="end background services",
        description="End the services of a project, or of what else `ps` lists. The indexes stay.",
    )
    stop.add_argument("path", metavar="PATH", nargs="?", help="as `ps` shows it")
    stop.add_argument("--all", action="store_true", help="end all services of yours")
    logs = add(
        "logs",
        help="show what a service has logged",
        description="Show what the service of a project, or whatever else `ps` lists, has logged.",
    )
    logs.add_argument("path", metavar="PATH", help="as `ps` shows it")
    logs.add_argument("--follow", action="store_true", help="go on until Ctrl+C")
    ui = add(
        "ui",
        help="open the project's page in a browser",
        description="Print a link to the project's page, and open it. The link works once.",
    )
    ui.add_argument("path", metavar="PATH", help="the project's folder")
    ui.add_argument("--no-open", action="store_true", help="print the link only")
    # Started by a front end, not by people.
    host = add("host", description="Be the background service of a project.")
    host.add_argument("--set", default="codebase", help="the tool set to serve")
    host.add_argument("path", metavar="PATH", help="the project's folder")


def _add_commands_of_clients(add: _Add) -> None:
    install = add(
        "install",
        help="add the project to your MCP clients",
        description="Add an entry that serves the project to the configuration of MCP clients, "
        "after showing the change and asking.",
    )
    uninstall = add(
        "uninstall",
        help="take the project out of your MCP clients",
        description="Take the project's entry out of the configuration of MCP clients, after "
        "showing the change and asking. The index stays.",
    )
    for command, which in ((install, "those found; asks"), (uninstall, "all that have it")):
        command.add_argument(
            "path",
            metavar="PATH",
            nargs="?",
            help="the folder of the project, or of the datasets (.)",
        )
        command.add_argument(
            "--set",
            choices=("codebase", _DOCUMENTS, _NOTES, _DATASETS),
            default="codebase",
            help="what to serve: the project (codebase), your documents, your notes, or datasets",
        )
        command.add_argument(
            "--home",
            metavar="DIR",
            default="",
            help="with --set notes: where they lie, if not in the usual folder",
        )
        command.add_argument(
            "--index",
            metavar="NAME",
            default=DEFAULT_NAME,
            help="with --set documents: which set of collections",
        )
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
            help="in a file of the project, or in one of yours for all projects",
        )
        command.add_argument("--yes", action="store_true", help="write without asking")
        command.add_argument(
            "--agents-md",
            action="store_true",
            help="also change the section of AGENTS.md or CLAUDE.md that says when to search",
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

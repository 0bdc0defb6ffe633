"""The grammar of the command line: its commands, and the arguments of each."""

import argparse
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from vector_index_mcp import __version__
from vector_index_mcp.console import publishing_arguments, searching, unknown
from vector_index_mcp.console.datasets import arguments as datasets
from vector_index_mcp.console.documents import arguments as documents
from vector_index_mcp.console.notes import arguments as notes
from vector_index_mcp.documents.home import DEFAULT_NAME

Run: TypeAlias = Callable[[argparse.Namespace], int]
"""Runs a command that was parsed; returns the exit status."""
_Add: TypeAlias = Callable[..., argparse.ArgumentParser]
"""Adds a command; takes its name, then the arguments of `argparse.ArgumentParser`."""

_OWN_GRAMMARS: Mapping[str, Callable[[Sequence[str]], bool]] = {
    "documents": documents.is_relay,
    "notes": notes.is_relay,
    "datasets": datasets.is_relay,
}
"""The commands with a grammar of their own, and whether arguments of each begin a relay."""
_SEARCH, _HELP = "search", "help"
_AS_LISTED = "as `ps` shows it (the project you are in)"
_NEAR = 0.75  # the similarity, as difflib measures it, at which a word may be a typing error
_WITH_OPTIONS = {"watch": "status --watch"}
_DESCRIPTION = """\
Keeps a software project indexed and searchable by meaning and by identifier.

  vector-index-mcp PATH [PATH ...]       MCP server on stdio: what an MCP client runs (`serve`)
  vector-index-mcp install [PATH]        add the project to your MCP clients
  vector-index-mcp uninstall [PATH]      take the project out of them again
  vector-index-mcp index [PATH]          index the project once
  vector-index-mcp search [PATH] QUERY   search from the terminal
  vector-index-mcp status [PATH]         show what the index holds
  vector-index-mcp verify [PATH]         compare the index with the files, one by one
  vector-index-mcp share [PATH]          give its vectors to your team's store
  vector-index-mcp publish PATH URI      put the index where a team fetches it from
  vector-index-mcp clear [PATH] | --all  remove the project's index, or all that was written
  vector-index-mcp doctor [PATH]         examine the machine, the model and the index
  vector-index-mcp ui [PATH]             search, progress and a map in a browser
  vector-index-mcp ps                    list the background services that run
  vector-index-mcp stop [PATH] | --all   end the project's service, or all
  vector-index-mcp logs [PATH]           show what its service has logged
  vector-index-mcp help [COMMAND]        what a command takes
  vector-index-mcp documents ...         search and read collections of documents
  vector-index-mcp notes ...             what agents write down about projects, kept in git
  vector-index-mcp datasets ...          knowledge that others have prepared

The first client of a project starts a background service. It keeps the index fresh, serves every
further client and ends by itself when nobody needs it. PATH is the folder of one project; without
it, a command is about the project that you stand in. Its index lies in PATH/.lancedb, and
everything stays on this machine. Your MCP client needs one server entry per project; `install`
writes it, or you do:

  {"mcpServers": {"my-project": {"command": "vector-index-mcp", "args": ["/path/to/my-project"]}}}
"""
_EPILOG = """\
Settings are environment variables (VECTOR_INDEX_...), or lines of the file given by --env-file or
VECTOR_INDEX_ENV_FILE; the project's own .env is never read. docs/settings.md lists them all.
"""


def parse(
    arguments: Sequence[str],
    runs: Mapping[str, Run],
    clients: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> argparse.Namespace:
    """Parse the command line; exits with status 2 and a usage line if it makes no sense.

    Args:
        arguments: The arguments of the command line.
        runs: The functions that run the commands, by the name of the command.
        clients: The scopes of the MCP clients by their names, for the help of those commands that
            take one.

    Returns:
        The options, with `run`, which runs the command; `speaks_mcp`, whether standard input and
        output belong to an MCP client; `rest`, the arguments of a command with its own grammar.
    """
    parser = _parser(runs, clients)
    if not arguments:
        parser.error("what is to be done? `help` lists the commands")
    asks_for_help = arguments[:1] == [_HELP]
    if asks_for_help:
        arguments = [*(word for word in arguments[1:2] if word != _HELP), "--help"]
    if misspelt := _misspelt(arguments, runs, may_be_path=not asks_for_help):
        parser.error(misspelt)
    if all(word.startswith("-") for word in arguments):
        unknown.refuse_instead_of_a_command(parser, arguments)
    unknown.refuse_before_a_command(parser, arguments, runs)
    ours, rest = _split(_with_command(arguments, runs))
    parsed, extra = parser.parse_known_args(ours)
    if parsed.command == _SEARCH:
        extra = searching.with_late_words(parsed, extra)
    unknown.refuse(parsed.grammar, extra, searching.MEANT if parsed.command == _SEARCH else {})
    parsed.rest = rest
    if project := getattr(parsed, "project", None):
        if parsed.path is not None:
            parsed.grammar.error(searching.NAMED_TWICE)
        parsed.path = project
    if parsed.command == _SEARCH:
        searching.part_words(parsed.grammar, parsed)
    if is_relay := _OWN_GRAMMARS.get(parsed.command):
        parsed.speaks_mcp = is_relay(rest)
    return parsed


def _misspelt(arguments: Sequence[str], commands: Mapping[str, Run], *, may_be_path: bool) -> str:
    """Return an error message if the first word is a mistyped command, else nothing."""
    word = arguments[0] if arguments else ""
    if word in commands or word.startswith("-") or (may_be_path and os.path.exists(word)):
        return ""
    if meant := unknown.mistyped(word, commands, _NEAR, _WITH_OPTIONS):
        return meant
    return "" if may_be_path else f"there is no command {word!a}; `help` lists them all"


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split off the arguments that follow a command with a grammar of its own."""
    start = 2 if arguments[:1] == ["--env-file"] else 0
    while start < len(arguments) and arguments[start].startswith("--env-file="):
        start += 1
    if not _OWN_GRAMMARS.keys() & arguments[start : start + 1]:
        return arguments, []
    return arguments[: start + 1], arguments[start + 1 :]


def _with_command(arguments: Sequence[str], commands: Mapping[str, Run]) -> list[str]:
    """Insert `serve` if no command is given: `vector-index-mcp PATH` means `... serve PATH`."""
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


def _parser(
    runs: Mapping[str, Run], clients: Mapping[str, Collection[str]]
) -> argparse.ArgumentParser:
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
        dest="command",
        required=True,
        metavar="COMMAND",
        prog=parser.prog,
        help=argparse.SUPPRESS,  # the description lists them
    )

    def add(name: str, **texts: Any) -> argparse.ArgumentParser:
        # `stop --al` is a slip of the hand, and `--all` ends every service.
        command = commands.add_parser(name, allow_abbrev=False, **texts)
        command.set_defaults(run=runs[name], grammar=command)
        return command

    _add_commands_of_the_index(add)
    _add_share(add)
    publishing_arguments.add_to(add)
    _add_clear(add)
    _add_commands_of_services(add)
    _add_commands_of_clients(add, clients)
    for name in _OWN_GRAMMARS:
        add(name, add_help=False)
    return parser


def _add_commands_of_the_index(add: _Add) -> None:
    serve = add(
        "serve",
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
        description="Bring the index up to date and exit. Status 1 when files failed.",
    )
    index.add_argument("--force", action="store_true", help="read every file again")
    search = add(
        _SEARCH,
        usage="vector-index-mcp search [PATH] QUERY [options]",
        description="Bring the index up to date and search it, by words and by meaning.",
    )
    status = add(
        "status",
        description="Show what the index holds. Status 1 when there is none.",
    )
    kinds = status.add_mutually_exclusive_group()
    kinds.add_argument("--watch", action="store_true", help="show it live, until Ctrl+C")
    kinds.add_argument(
        "--skipped", action="store_true", help="list the files that are not indexed, and why"
    )
    kinds.add_argument("--json", action="store_true", help="print what the MCP tool returns")
    verify = add(
        "verify",
        description="Read and cut every file and compare it with the index. Status 1 when they "
        "differ.",
    )
    verify.add_argument("--repair", action="store_true", help="if they differ, rebuild the index")
    doctor = add(
        "doctor",
        description="Examine everything the program needs. Status 1 when a check failed.",
    )
    doctor.add_argument("--json", action="store_true", help="print what was found as JSON")
    serve.add_argument("path", metavar="PATH", help="the project's folder")
    serve.add_argument(
        "others", metavar="PATH", nargs="*", help="more projects to search together with the first"
    )
    for command in (index, status, verify, doctor):
        _add_path(command)
    searching.add_options(search)


def _add_share(add: _Add) -> None:
    share = add(
        "share",
        description="Write the vectors of the index that nobody has shared yet into the store that "
        "VECTOR_INDEX_SHARED_CACHE names. No text and no path is written. Status 1 when nothing is "
        "indexed.",
    )
    _add_path(share)


def _add_clear(add: _Add) -> None:
    clear = add(
        "clear",
        description="Show what there is to remove, ask, end the background service that uses it, "
        "and remove it. What this program did not write for you on this machine is left alone, and "
        "no link is followed. Status 1 when something could not be removed, or you said no.",
    )
    clear.add_argument(
        "--all",
        action="store_true",
        help="every index, cache, log, lock and socket of yours; not your notes, your datasets and "
        "what you have configured",
    )
    clear.add_argument("--yes", action="store_true", help="remove without asking")
    clear.add_argument("--dry-run", action="store_true", help="only show what there is to remove")
    _add_path(clear)


def _add_path(command: argparse.ArgumentParser) -> None:
    """Add the project of a command; the default is the one that holds the working directory."""
    command.add_argument(
        "path", metavar="PATH", nargs="?", help="the project's folder (the one you are in)"
    )
    _add_project(command)


def _add_project(command: argparse.ArgumentParser) -> None:
    """Add the option that `search` has for its project, so that all commands take it."""
    command.add_argument(
        "-C", "--project", dest="project", metavar="PATH", help="PATH, as an option"
    )


def _add_commands_of_services(add: _Add) -> None:
    add(
        "ps",
        description="List the background services that run.",
    )
    stop = add(
        "stop",
        description="End the services of a project, or of a place `ps` lists. The indexes stay.",
    )
    stop.add_argument("path", metavar="PATH", nargs="?", help=_AS_LISTED)
    _add_project(stop)
    stop.add_argument("--all", action="store_true", help="end all services of yours")
    logs = add(
        "logs",
        description="Show the log of a service: that of a project, or of a place `ps` lists.",
    )
    logs.add_argument("path", metavar="PATH", nargs="?", help=_AS_LISTED)
    _add_project(logs)
    logs.add_argument("--follow", action="store_true", help="go on until Ctrl+C")
    ui = add(
        "ui",
        description="Print a link to the project's page, and open it. The link works once.",
    )
    _add_path(ui)
    ui.add_argument("--no-open", action="store_true", help="print the link only")
    # Front ends run this command, people do not.
    host = add("host", description="Run the background service of a project.")
    host.add_argument("--set", default="codebase", help="the tool set to serve")
    host.add_argument("path", metavar="PATH", help="the project's folder")


def _add_commands_of_clients(add: _Add, clients: Mapping[str, Collection[str]]) -> None:
    private = " ".join(name for name, scopes in clients.items() if "private" in scopes)
    names = "clients: " + " ".join(clients)
    install = add(
        "install",
        description="Add an entry that serves the project to the configuration of MCP clients, "
        "after showing the change and asking.",
        epilog=names,
    )
    uninstall = add(
        "uninstall",
        description="Take the project's entry out of the configuration of MCP clients, after "
        "showing the change and asking. The index stays.",
        epilog=names,
    )
    install.add_argument(
        "--also",
        metavar="PATH",
        action="append",
        default=[],
        help="another project to search together with PATH; may be given several times",
    )
    for command, which in ((install, "those found; asks which"), (uninstall, "all")):
        command.add_argument(
            "path",
            metavar="PATH",
            nargs="?",
            help="the folder of the project, or of the datasets (.)",
        )
        _add_what_is_served(command)
        command.add_argument(
            "--client",
            metavar="NAME",
            nargs="+",
            action="extend",
            default=[],
            help=f"clients from the list below ({which})",
        )
        command.add_argument(
            "--scope",
            choices=("project", "user", "private"),
            help="project: a file that a team shares; user: one of yours; private: yours for this "
            f"project alone, which these have: {private}",
        )
        command.add_argument("--yes", action="store_true", help="write without asking")
        command.add_argument("--dry-run", action="store_true", help="only show the change")
        command.add_argument(
            "--agents-md",
            action="store_true",
            help="also change the section of AGENTS.md or the like that says when to search",
        )


def _add_what_is_served(command: argparse.ArgumentParser) -> None:
    """Add the options that choose what an entry serves."""
    command.add_argument(
        "--set",
        choices=("codebase", *_OWN_GRAMMARS),
        default="codebase",
        help="what to serve: the project (codebase), your documents, your notes, or datasets",
    )
    command.add_argument(
        "--home",
        metavar="DIR",
        default="",
        help="with --set notes: the folder of the notes, if not the usual one",
    )
    command.add_argument(
        "--index",
        metavar="NAME",
        default=DEFAULT_NAME,
        help="with --set documents: the name of the set of collections",
    )

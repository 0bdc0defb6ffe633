"""The grammar of the datasets' command line.

It also understands the command lines and variables of the original program, mcpower, whose users
can put `vector-index-mcp datasets` in its place.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from vector_index_mcp import __version__
from vector_index_mcp.console import listening, unknown
from vector_index_mcp.datasets.limits import ENDINGS, FEWEST_WORDS, MOST_OVERLAP, MOST_WORDS

SERVE, LIST, INDEX, EXPORT = "serve", "list", "index", "export"
PACK, ADD, DELETE = "pack", "add", "delete"
INFO, CHECK, UI, CONSOLE, STOP = "info", "validate", "ui", "console", "stop"
SEARCH, VALIDATE, HEALTH = "search", "validate-index", "health-check"
USUAL_FOLDER = "datasets"
USUAL_PORT = 4_173  # as in the original program
_LEVELS = {"debug": "DEBUG", "info": "INFO", "warn": "WARNING", "error": "ERROR"}
"""Our log levels by their names in the original program."""
_LEVEL, _OUR_LEVEL, _FOLDER = "LOG_LEVEL", "VECTOR_INDEX_LOG_LEVEL", "MCPOWER_DATASETS"
_PORT, _HOST = "MCPOWER_WEB_PORT", "MCPOWER_WEB_HOST"
_OF_HELP = frozenset({"-h", "--help"})
_NOUN = "dataset"  # the original writes `dataset list` for our `list`
_DESCRIPTION = """\
Datasets: knowledge that others have prepared. Each is a folder with a manifest.json, an index and
its texts. Put one beside the others and agents can search it, without its sources; only the
question has to be embedded.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; exits with status 2 and a usage line if it makes no sense."""
    if _is_of_original(arguments):
        return _parsed_as_original(arguments)
    if list(arguments[:1]) == [_NOUN]:
        arguments = arguments[1:]
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp datasets",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    grammars: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, words: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False
        )
        grammars[name] = command
        return command

    _add_looking(add)
    _add_keeping(add)
    _add_bridge(add)
    _add_index(add(INDEX, "make a dataset from a folder of texts"))
    export = add(EXPORT, "make a dataset from an index of yours; nothing is embedded again")
    export.add_argument(
        "kind",
        choices=("codebase", "documents", "notes"),
        help="what to export: a project's code, a collection of documents, or a project's notes",
    )
    export.add_argument(
        "what",
        metavar="WHAT",
        help="the project's folder, the collection's name, or the name of the notes' project",
    )
    _add_about(export)
    unknown.refuse_command(parser, next(iter(arguments), ""), grammars)
    line, extra = parser.parse_known_args(arguments)
    grammar = grammars[line.command]
    if line.command == SEARCH and line.dataset_id is not None:  # words behind an option
        line.words += [word for word in extra if not word.startswith("-")]
        extra = [word for word in extra if word.startswith("-")]
    unknown.refuse(grammar, extra)
    if line.command == INDEX:
        _settle_source(grammar, line)
    if line.command == CONSOLE:
        _settle_place(grammar, line)
    if line.command == SEARCH:
        _check_search(grammar, line)
    return line


def _is_of_original(arguments: Sequence[str]) -> bool:
    """Whether these are the arguments of the original's server, which has no commands.

    Without any arguments it serves, too; but a person at a terminal who gives none gets the usage.
    """
    if not arguments:
        return not sys.stdin.isatty()
    return arguments[0].startswith("-") and not _OF_HELP & {*arguments}


def _parsed_as_original(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="vector-index-mcp datasets", allow_abbrev=False)
    parser.add_argument("--stdio", action="store_true", help="serve MCP, as without this option")
    parser.add_argument(
        "--datasets", dest="folder", metavar="PATH", default=USUAL_FOLDER, help="their folder"
    )
    parser.add_argument("--log-level", choices=_LEVELS, help="how much the service logs")
    version = f"mcpower (vector-index-mcp {__version__})"
    parser.add_argument("--version", action="version", version=version)
    parser.set_defaults(command=SERVE)
    return parser.parse_args(arguments)


def _settle_source(parser: argparse.ArgumentParser, line: argparse.Namespace) -> None:
    """Take the folder of the texts from wherever it is given; exit if it is not given once."""
    given = [each for each in (line.source, line.source_option) if each is not None]
    if len(given) != 1:
        parser.error("name the folder of the texts once: `datasets index SOURCE --dataset-id ID`")
    [line.source] = given


def _check_search(parser: argparse.ArgumentParser, line: argparse.Namespace) -> None:
    """Exit unless a search names a dataset and a question, or an index and a question."""
    if line.dataset_id is not None:
        if not line.words:
            parser.error("say what to look for: `datasets search ID WORDS`")
        if line.index is not None or line.query is not None:
            parser.error("name a dataset by its ID and WORDS, or an index by --index and --query")
    elif missing := [f"--{name}" for name in ("query", "index") if getattr(line, name) is None]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")


def _settle_place(parser: argparse.ArgumentParser, line: argparse.Namespace) -> None:
    """Take port and host from the original's variables where no option gives them."""
    if line.host is None:
        line.host, line.host_from = os.environ[_HOST], _HOST
    if line.port is None:
        line.port_from = _PORT
        try:
            line.port = listening.port_of(os.environ[_PORT])
        except argparse.ArgumentTypeError as wrong:
            parser.error(f"{_PORT}: {wrong}")


def _add_looking(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    serving = add(SERVE, "serve MCP on standard input and output: what an MCP client runs")
    listing = add(LIST, "list the datasets, and say why one cannot be served")
    listing.add_argument("--json", action="store_true", help="print JSON")
    ui = add(UI, "print a link to the page of the datasets, and open it")
    ui.add_argument("--no-open", action="store_true", help="print the link only")
    console = add(CONSOLE, "serve HTTP: /api/datasets as the original's console, and MCP at /mcp")
    listening.add_options(console, USUAL_PORT)
    # Without a value, `_settle_place` reads the variable, and messages name it.
    if os.environ.get(_HOST):
        console.set_defaults(host=None)
    if os.environ.get(_PORT):
        console.set_defaults(port=None)
    stopping = add(STOP, "end the background service of the datasets; the next client starts one")
    for command in (serving, listing, ui, console, stopping):
        command.add_argument(
            "folder",
            metavar="FOLDER",
            nargs="?",
            default=USUAL_FOLDER,
            help=f"the folder of the datasets (./{USUAL_FOLDER})",
        )
    if folder := os.environ.get(_FOLDER):
        for command in (ui, console):
            command.set_defaults(folder=folder)


def _add_keeping(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    packing = add(PACK, "write a dataset into one file that can be sent")
    packing.add_argument("folder", metavar="FOLDER", help="the dataset's own folder")
    packing.add_argument(
        "file", metavar="FILE", nargs="?", default="", help="the file to write (ID.tar.zst)"
    )
    adding = add(ADD, "unpack a dataset that somebody has sent")
    adding.add_argument("file", metavar="FILE", help="a file that `pack` has written")
    removing = add(DELETE, "delete a dataset, after asking")
    removing.add_argument("dataset_id", metavar="ID", help="as `list` shows it")
    removing.add_argument("--yes", action="store_true", help="do not ask")
    info = add(INFO, "show what a dataset is, and where it comes from")
    checking = add(CHECK, "check that a dataset can be served and matches its manifest")
    for command in (info, checking):
        command.add_argument("dataset_id", metavar="ID", help="as `list` shows it")
        command.add_argument("--json", action="store_true", help="print JSON")
    for command in (adding, removing, info, checking):
        _add_folder(command)


def _add_folder(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--folder",
        "--output",
        dest="output",
        metavar="DIR",
        default=USUAL_FOLDER,
        help=f"the folder of the datasets (./{USUAL_FOLDER})",
    )


def _add_bridge(add: Callable[[str, str], argparse.ArgumentParser]) -> None:
    search = add(
        SEARCH,
        "search datasets: `search ID WORDS`, or `search '*' WORDS` for all; for a script `search "
        "--index PATH --query Q`, which prints JSON as the original's bridge does",
    )
    search.add_argument(
        "dataset_id",
        metavar="ID",
        nargs="?",
        help="as `list` shows it; several with commas, or '*' for all",
    )
    search.add_argument("words", metavar="WORDS", nargs="*", help="the question")
    _add_folder(search)
    search.add_argument("--query", metavar="Q", help="the question, with --index")
    search.add_argument(
        "--k", "--top-k", "-n", metavar="N", type=int, default=5, help="how many results (5)"
    )
    search.add_argument(
        "--metadata", metavar="FILE", default="", help="the texts (metadata.json beside the index)"
    )
    validating = add(VALIDATE, "check that an index can be read: JSON for a script")
    for command in (search, validating):
        command.add_argument(
            "--index",
            metavar="PATH",
            required=command is validating,
            help="the file or folder of the index, or the folder of its dataset",
        )
    add(HEALTH, "show the version, the model and whether FAISS is installed: JSON for a script")


def _add_index(command: argparse.ArgumentParser) -> None:
    command.add_argument("source", metavar="SOURCE", nargs="?", help="the folder of the texts")
    command.add_argument("--source", dest="source_option", help=argparse.SUPPRESS)
    command.add_argument("--verbose", action="store_true", help=argparse.SUPPRESS)
    command.add_argument(
        "--file-types",
        metavar="LIST",
        type=_endings,
        default=ENDINGS,
        help=f"the endings of the files to index ({','.join(ENDINGS)})",
    )
    command.add_argument("--model", default="", help="the embedding model, if not the usual one")
    command.add_argument(
        "--chunk-size",
        metavar="WORDS",
        type=_between(FEWEST_WORDS, MOST_WORDS),
        default=0,
        help=f"the longest chunk, in words ({FEWEST_WORDS} to {MOST_WORDS})",
    )
    command.add_argument(
        "--chunk-overlap",
        metavar="WORDS",
        type=_between(0, MOST_OVERLAP),
        default=0,
        help="accepted but ignored: chunks follow headings and paragraphs, and do not overlap",
    )
    command.add_argument(
        "--append",
        action="store_true",
        help="add to an existing dataset; texts with the same paths are replaced",
    )
    _add_about(command)


def _add_about(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--dataset-id", "--dataset", metavar="ID", required=True, help="a-z, 0-9 and hyphens"
    )
    command.add_argument("--name", default="", help="the dataset's name for people (the id)")
    command.add_argument("--description", default="", help="what the dataset is about")
    command.add_argument("--license", default="", help="the licence of the texts, as in SPDX")
    command.add_argument(
        "--output",
        metavar="DIR",
        default=USUAL_FOLDER,
        help=f"the folder of the datasets (./{USUAL_FOLDER})",
    )


def _endings(written: str) -> list[str]:
    found = [
        each.strip().removeprefix("*").removeprefix(".").lower() for each in written.split(",")
    ]
    if not all(each.isalnum() for each in found):
        raise argparse.ArgumentTypeError(
            f"{written!r} is not a list of file endings; write them like md,txt"
        )
    return found


def _between(least: int, most: int) -> Callable[[str], int]:
    def number(written: str) -> int:
        if not written.isdecimal() or not least <= int(written) <= most:
            raise argparse.ArgumentTypeError(f"{written!r} is not between {least} and {most}")
        return int(written)

    return number


def pass_on_log_level(line: argparse.Namespace) -> None:
    """Have a service that this process starts log as much as the original would.

    The option counts more than our own variable, and that more than the original's, which other
    programs use too.
    """
    if wanted := getattr(line, "log_level", None):
        os.environ[_OUR_LEVEL] = _LEVELS[wanted]
    elif known := _LEVELS.get(os.environ.get(_LEVEL, "").lower()):
        os.environ.setdefault(_OUR_LEVEL, known)


def is_relay(arguments: Sequence[str]) -> bool:
    """Whether standard input and output belong to an MCP client."""
    if _is_of_original(arguments):
        return "--version" not in arguments
    return list(arguments[:1]) == [SERVE] and not _OF_HELP & {*arguments}

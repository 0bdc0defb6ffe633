"""The grammar of the datasets' command line."""

import argparse
from collections.abc import Sequence

SERVE, LIST = "serve", "list"
USUAL_FOLDER = "datasets"
_DESCRIPTION = """\
Knowledge that others have prepared, each a folder with a manifest.json, an index and its texts.
Drop one beside the others and agents can search it, without its sources and without embedding
anything but the question.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command; exits with status 2 and a usage line if they make no sense."""
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp datasets",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, words: str) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name, help=words, description=f"{words[0].upper()}{words[1:]}.", allow_abbrev=False
        )
        command.add_argument(
            "folder",
            metavar="FOLDER",
            nargs="?",
            default=USUAL_FOLDER,
            help=f"where the datasets lie (./{USUAL_FOLDER})",
        )
        return command

    add(SERVE, "serve MCP on standard input and output: what an MCP client runs")
    listing = add(LIST, "list the datasets, and say why one cannot be served")
    listing.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def is_relay(arguments: Sequence[str]) -> bool:
    """Whether standard input and output belong to an MCP client."""
    return list(arguments[:1]) == [SERVE] and not {"-h", "--help"} & set(arguments)

"""The grammar of the notes' command line."""

import argparse
from collections.abc import Sequence
from typing import Any

SERVE = "serve"
_DESCRIPTION = """\
What agents write down about projects: instructions, knowledge and to-do lists, kept in git.

The notes lie in ~/.knowledge-mcp, or where KNOWLEDGE_MCP_HOME or --home says. They are files of
Markdown and JSON: edit them as you like, each change is a commit.
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command; exits with status 2 and a usage line if they make no sense."""
    return _parser().parse_args(arguments)


def is_relay(arguments: Sequence[str]) -> bool:
    """Whether standard input and output belong to an MCP client."""
    words = [word for word in arguments if not word.startswith("-")]
    return SERVE in words and not {"-h", "--help"} & set(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp notes",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, words: str, **texts: Any) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=words, description=words, **texts)
        command.add_argument(
            "--home", metavar="DIR", default="", help="where the notes lie (~/.knowledge-mcp)"
        )
        return command

    add(SERVE, "serve MCP on standard input and output: what an MCP client runs")
    return parser

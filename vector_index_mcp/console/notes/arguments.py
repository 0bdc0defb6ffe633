"""The grammar of the notes' command line."""

import argparse
from collections.abc import Callable, Mapping, Sequence

from vector_index_mcp import __version__
from vector_index_mcp.console import unknown

SERVE, STOP, LOGS, UI = "serve", "stop", "logs", "ui"
_HOME = "--home"
_DESCRIPTION = """\
What agents write down about projects: instructions, knowledge and to-do lists, kept in git.

The notes lie in ~/.knowledge-mcp, or in the folder that KNOWLEDGE_MCP_HOME or --home names. They
are Markdown and JSON files: edit them as you like, each change becomes a commit.
"""
_EPILOG = """\
WHAT is a document as `list` names it (setup.md, or setup), main.md for the main text, or `todo 3`
for a to-do list. Without it, a command is about the whole project; `show` shows the main text.
Write -- before a name that begins with -.

WHEN is a commit (as `log` shows it, or HEAD~2), a date (2026-11-17), a date and a time
("2026-11-17 14:00"), or words: yesterday, tuesday, "nov 17", "3 days ago", "2 hours ago".
A day without a time means its end.

  vector-index-mcp notes list                         what there is
  vector-index-mcp notes show shop setup --at tuesday the document as it was on Tuesday
  vector-index-mcp notes restore shop --to yesterday  the whole project, back as it was
"""
_USUAL_COUNT, _MOST = 20, 1_000_000
_TO = "the time of that state; of what is deleted by default the last one that had it"
_ALL = "--"
"""The arguments after it are not options."""
_Add = Callable[..., argparse.ArgumentParser]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; exits with status 2 and a usage line if it makes no sense.

    Returns:
        The options, with `command`, the name of the command, and `words`, its other arguments.
    """
    parser, commands = _parser()
    name, rest = _parted(arguments)
    unknown.refuse_command(parser, name, commands)
    if name not in commands:
        return parser.parse_args([name] if name else [])  # prints the help or an error, and exits
    end = rest.index(_ALL) if _ALL in rest else len(rest)
    # Options may stand between words, which a subcommand of argparse does not allow.
    line, extra = commands[name].parse_known_intermixed_args(rest[:end])
    unknown.refuse(commands[name], extra)
    line.command = name
    line.words = [*line.words, *rest[end + 1 :]]
    if not line.least <= len(line.words) <= line.most:
        commands[name].error(f"it takes {line.takes or 'nothing'}")
    return line


def is_relay(arguments: Sequence[str]) -> bool:
    """Whether standard input and output belong to an MCP client."""
    name, rest = _parted(arguments)
    return name == SERVE and not {"-h", "--help"} & set(rest)


def _parted(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The command and its arguments; --home may stand before it."""
    end = 0
    while end < len(arguments) and arguments[end].partition("=")[0] == _HOME:
        end += 1 if "=" in arguments[end] else 2
    return next(iter(arguments[end:]), ""), [*arguments[:end], *arguments[end + 1 :]]


def _parser() -> tuple[argparse.ArgumentParser, Mapping[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(
        prog="vector-index-mcp notes",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    version = f"Knowledge MCP Server (vector-index-mcp {__version__})"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(
        name: str, takes: str, least: int, most: int, words: str, description: str = ""
    ) -> argparse.ArgumentParser:
        command = commands.add_parser(
            name,
            help=words,
            usage=f"{parser.prog} {name} [OPTIONS] {takes}".rstrip(),
            description=description or f"{words[0].upper()}{words[1:]}.",
            epilog=_EPILOG if "WHAT" in takes else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.set_defaults(takes=takes, least=least, most=most)
        command.add_argument("words", nargs="*", metavar=takes, help=argparse.SUPPRESS)
        command.add_argument(
            _HOME, metavar="DIR", default="", help="the folder of the notes (~/.knowledge-mcp)"
        )
        return command

    add(SERVE, "", 0, 0, "serve MCP on standard input and output: what an MCP client runs")
    _add_reading(add)
    _add_writing(add)
    _add_looking_after(add)
    return parser, commands.choices


def _add_reading(add: _Add) -> None:
    add(
        "list", "[PROJECT]", 0, 1,
        "list the projects, or what one of them contains",
        "List the projects with their documents, to-do lists (open tasks of all) and last change;\n"
        "or the documents and to-do lists of one project.",
    )  # fmt: skip
    show = add(
        "show", "PROJECT [WHAT]", 1, 3,
        "show a main text, a document or a to-do list, as it is or as it was",
        "Show a project's main text, or one of its documents or to-do lists.",
    )  # fmt: skip
    show.add_argument("--at", metavar="WHEN", default="", help="show it as it was then")
    log = add(
        "log", "[PROJECT [WHAT]]", 0, 3,
        "list the changes with time and author, newest first",
        "List the changes with time and author, newest first; also of what was deleted since.",
    )  # fmt: skip
    log.add_argument(
        "-n",
        dest="count",
        metavar="N",
        type=_count,
        default=_USUAL_COUNT,
        help=f"how many changes ({_USUAL_COUNT})",
    )
    diff = add(
        "diff", "PROJECT [WHAT]", 1, 3,
        "show the last change, or all changes since some time",
        "Show the last change, or with --since all changes since that time.",
    )  # fmt: skip
    diff.add_argument("--since", metavar="WHEN", default="", help="compare with the state then")
    diff.add_argument(
        "--until", metavar="WHEN", default="", help="compare the state then, not the present one"
    )


def _add_writing(add: _Add) -> None:
    restore = add(
        "restore", "[--to WHEN] PROJECT [WHAT]", 1, 3,
        "bring a project, a document or a to-do list back to an earlier state",
        "Show what would change, ask, and bring a project, or one document or to-do list of it,\n"
        "back to an earlier state; also a deleted one. This makes one commit and touches no other\n"
        "project; another restore undoes it.",
    )  # fmt: skip
    restore.add_argument("--to", metavar="WHEN", help=_TO)
    _add_yes(restore)
    add(
        "export", "PROJECT FOLDER", 2, 2,
        "write a project as a folder of Markdown",
        "Write a project as a folder of Markdown, new or empty: main.md, knowledge/*.md, and\n"
        "to-do lists as task lists, todo-1.md. `import` reads it.",
    )  # fmt: skip
    importing = add(
        "import", "FOLDER", 1, 1,
        "make a project from a folder of Markdown",
        "Import a folder that `export` wrote, or any folder of Markdown. Its main.md, CLAUDE.md,\n"
        "AGENTS.md or README.md (the first that exists) becomes the main text, each other .md\n"
        "file below the folder a document. This makes one commit. Links are not followed, and\n"
        "hidden files are read only directly in knowledge/.",
    )  # fmt: skip
    importing.add_argument(
        "--project", metavar="PROJECT", default="", help="the project's name (the folder's name)"
    )
    importing.add_argument(
        "--replace", action="store_true", help="replace what has the same name instead of failing"
    )


def _add_looking_after(add: _Add) -> None:
    doctor = add(
        "doctor", "", 0, 0,
        "examine the notes and their history",
        "Check that every file can be read, every project has its folder, every task has its own\n"
        "number, and the history is intact. Status 1 when a check failed.",
    )  # fmt: skip
    kinds = doctor.add_mutually_exclusive_group()
    kinds.add_argument(
        "--repair", action="store_true", help="show what can be repaired, ask, and do it"
    )
    kinds.add_argument("--json", action="store_true", help="print what was found as JSON")
    _add_yes(doctor)
    status = add("status", "", 0, 0, "show the state of the notes, their history and their remote")
    status.add_argument("--json", action="store_true", help="print what the MCP tool returns")
    add(STOP, "", 0, 0, "end the background service of the notes; the next client starts one")
    logs = add(LOGS, "", 0, 0, "show what the service of the notes has logged")
    logs.add_argument("--follow", action="store_true", help="go on until Ctrl+C")
    ui = add(UI, "", 0, 0, "print a link to the page of the notes, and open it")
    ui.add_argument("--no-open", action="store_true", help="print the link only")


def _add_yes(command: argparse.ArgumentParser) -> None:
    command.add_argument("--yes", action="store_true", help="do it without asking")


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= _MOST):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {_MOST}")
    return int(text)

"""The grammar of the documents' command line. Pure; uses the standard library only.

It does without argparse, since commands, options and error messages are those of the program `qmd`.
Options may stand anywhere. An unknown option is an error.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vector_index_mcp.documents.home import DEFAULT_NAME

RELAYS = ("mcp", "serve")
"""The commands that serve an MCP client on standard input and output."""
SERVER = "server"
"""The command that parses its own arguments."""
FORMATS = ("csv", "md", "xml", "files", "json")
"""The output formats; if several are given, the first in this order counts."""

_Number = TypeVar("_Number", int, float)

_WITH_VALUE = {
    "--index": "index",
    "-n": "n",
    "--min-score": "min-score",
    "-c": "collection",
    "--collection": "collection",
    "--name": "name",
    "--mask": "mask",
    "-l": "l",
    "--from": "from",
    "--max-bytes": "max-bytes",
    "--mode": "mode",
    "--port": "port",
}
_FLAGS = {
    "-h": "help",
    "--help": "help",
    "--version": "version",
    "--all": "all",
    "--full": "full",
    "--line-numbers": "line-numbers",
    "--pull": "pull",
    "--watch": "watch",
    "--follow": "follow",
    "--no-open": "no-open",
    "-f": "force",
    "--force": "force",
    **{f"--{name}": name for name in FORMATS},
}
_ALL = "--"
"""The arguments after it are not options."""


class UsageError(Exception):
    """Raised when a command line makes no sense; its message is the text to print."""


@dataclass(frozen=True, slots=True)
class Line:
    """A parsed command line."""

    command: str
    """The command's name; empty if none is given."""
    words: tuple[str, ...] = ()
    """The arguments after the command, without options."""
    flags: frozenset[str] = frozenset()
    """The options without a value, by their names in `_FLAGS`."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The options with a value, by their names in `_WITH_VALUE`."""
    rest: tuple[str, ...] = ()
    """The arguments of the command `SERVER`, which parses them itself."""

    @property
    def index(self) -> str:
        """The name of the set of collections."""
        return self.values.get("index", DEFAULT_NAME)

    @property
    def format(self) -> str:
        """The output format; `cli`, which people read, if none is given."""
        return next((name for name in FORMATS if name in self.flags), "cli")

    def text(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.values.get(name, default)

    def whole(self, name: str) -> int | None:
        """The value of an option that is a whole number; None if the option is not given.

        Raises:
            UsageError: If the value is not a whole number from 0 on.
        """
        return self._number(name, int)

    def number(self, name: str) -> float | None:
        """The value of an option that is a number; None if the option is not given.

        Raises:
            UsageError: If the value is not a finite number from 0 on.
        """
        return self._number(name, float)

    def _number(self, name: str, kind: type[_Number]) -> _Number | None:
        written = self.values.get(name)
        if written is None:
            return None
        try:
            found = kind(written)
        except ValueError:
            found = None
        if found is None or not 0 <= found < float("inf"):
            option = next(each for each, known in _WITH_VALUE.items() if known == name)
            raise UsageError(f"{option} takes a number, not {written!r}\n")
        return found


def parse(arguments: Sequence[str]) -> Line:
    """Parse `arguments`.

    Raises:
        UsageError: If an option is unknown, or lacks its value.
    """
    words: list[str] = []
    flags: set[str] = set()
    values: dict[str, str] = {}
    left = [*arguments]
    while left:
        argument = left.pop(0)
        if argument == _ALL:
            words += left
            break
        if argument == "-" or not argument.startswith("-"):
            words.append(argument)
            if words == [SERVER]:
                rest = _without_index(left, values)
                return Line(SERVER, (), frozenset(flags), values, rest)
            continue
        name, value = _split(argument)
        if name in _FLAGS and value is None:
            flags.add(_FLAGS[name])
        elif name in _WITH_VALUE:
            values[_WITH_VALUE[name]] = _value(name, value, left)
        else:
            raise UsageError(f"Unknown option: {name}\nRun 'qmd --help' for usage.\n")
    command = words.pop(0) if words else ""
    return Line(command, tuple(words), frozenset(flags), values)


def is_relay(arguments: Sequence[str]) -> bool:
    """Whether standard input and output belong to an MCP client."""
    try:
        return parse(arguments).command in RELAYS
    except UsageError:
        return False


def _split(argument: str) -> tuple[str, str | None]:
    """Split an argument like `--name=x` or `-n5` into the option's name and value.

    The value is None if the argument has none.
    """
    if argument.startswith("--"):
        name, equals, value = argument.partition("=")
        return name, value if equals else None
    return argument[:2], argument[2:].removeprefix("=") or None


def _value(name: str, value: str | None, left: list[str]) -> str:
    if value is not None:
        return value
    if not left:
        raise UsageError(f"{name} lacks its value\nRun 'qmd --help' for usage.\n")
    return left.pop(0)


def _without_index(arguments: Sequence[str], values: dict[str, str]) -> tuple[str, ...]:
    """Return the arguments without `--index NAME`, which goes into `values`."""
    left, kept = [*arguments], []
    while left:
        argument = left.pop(0)
        name, value = _split(argument)
        if name == "--index":
            values["index"] = _value(name, value, left)
        else:
            kept.append(argument)
    return tuple(kept)

"""The grammar of the documents' command line. Pure, standard library alone.

Not argparse's: commands, options and what is said of wrong ones are those of the program whose
users these are. Options may stand anywhere; what is an option nowhere is refused, not ignored.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from vector_index_mcp.documents.home import DEFAULT_NAME

RELAYS = ("mcp", "serve")
"""The commands that serve an MCP client on standard input and output."""
SERVER = "server"
"""The command whose arguments are its own."""
FORMATS = ("csv", "md", "xml", "files", "json")
"""Of several, the first counts."""

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
"""What follows it is no option."""


class UsageError(Exception):
    """Raised when a command line makes no sense; says what to print."""


@dataclass(frozen=True, slots=True)
class Line:
    """A command line."""

    command: str
    """Empty if there is none."""
    words: tuple[str, ...] = ()
    """What follows the command, without options."""
    flags: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    rest: tuple[str, ...] = ()
    """All that follows the command whose arguments are its own."""

    @property
    def index(self) -> str:
        """Which set of collections is meant."""
        return self.values.get("index", DEFAULT_NAME)

    @property
    def format(self) -> str:
        """How to print what is found; `cli` for people."""
        return next((name for name in FORMATS if name in self.flags), "cli")

    def text(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.values.get(name, default)

    def whole(self, name: str) -> int | None:
        """The value of an option that is a whole number; None if it is not given.

        Raises:
            UsageError: If it is something else.
        """
        return self._number(name, int)

    def number(self, name: str) -> float | None:
        """The value of an option that is a number; None if it is not given.

        Raises:
            UsageError: If it is something else.
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
    """The command line that `arguments` are.

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
    """An option's name and the value in the same word: `--name=x`, `-n5`."""
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
    """The arguments without `--index NAME`, which goes to `values`."""
    left, kept = [*arguments], []
    while left:
        argument = left.pop(0)
        name, value = _split(argument)
        if name == "--index":
            values["index"] = _value(name, value, left)
        else:
            kept.append(argument)
    return tuple(kept)

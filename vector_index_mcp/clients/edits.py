"""Changes of one place in a text that somebody else has written. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Path = Sequence[str]
"""The keys that lead to a value, from the outermost object to the innermost."""

_CLASH = (
    "its servers are written in a way that lets none be changed without touching the others (in an "
    "inline table, or under a key that is there twice)"
)


class EditError(Exception):
    """Raised when a text cannot be read, or not be changed without touching something else.

    Args:
        reason: What is wrong, without the file's name.
        line: Where, counted from 1, if that is known.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class Syntax(Protocol):
    """A language of configuration files. Every method raises EditError."""

    def read(self, text: str) -> dict[str, Any]:
        """What the text says, as new objects; an empty one says nothing."""

    def add(self, text: str, path: Path, value: dict[str, Any]) -> str:
        """The text with one more object, and whatever has to lead to it."""

    def replace(self, text: str, path: Path, value: Any) -> str:
        """The text with another value where there is one."""

    def remove(self, text: str, path: Path) -> str:
        """The text without a value that is there; the object it was in stays."""


@dataclass(frozen=True, slots=True)
class Splice:
    """A piece of a text, from offset `start` to before `end`, and what takes its place."""

    start: int
    end: int
    new: str = ""


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """`text` after all the splices; those at the same place in the order given."""
    pieces, at = [], 0
    for splice in sorted(splices, key=lambda splice: splice.start):
        pieces += [text[at : splice.start], splice.new]
        at = splice.end
    return "".join([*pieces, text[at:]])


def line_of(text: str, offset: int) -> int:
    """The line of an offset, counted from 1."""
    return text.count("\n", 0, offset) + 1


def newline_of(text: str) -> str:
    """How the lines of `text` end."""
    return "\r\n" if "\r\n" in text else "\n"


def table(data: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under `key`; an empty one if there is nothing.

    Raises:
        EditError: If there is something else.
    """
    found = data.get(key, {})
    if not isinstance(found, dict):
        raise EditError(f"`{key}` is there, but is no table of servers")
    return found


def added(syntax: Syntax, text: str, path: Path, value: dict[str, Any]) -> str:
    """`Syntax.add`, proven to have changed nothing else."""
    expected = syntax.read(text)
    parent = expected
    for key in path[:-1]:
        parent[key] = table(parent, key)
        parent = parent[key]
    parent[path[-1]] = value
    return _proven(syntax, syntax.add(text, path, value), expected)


def replaced(syntax: Syntax, text: str, path: Path, value: Any) -> str:
    """`Syntax.replace`, proven to have changed nothing else."""
    expected = syntax.read(text)
    _parent(expected, path)[path[-1]] = value
    return _proven(syntax, syntax.replace(text, path, value), expected)


def removed(syntax: Syntax, text: str, path: Path) -> str:
    """`Syntax.remove`, proven to have changed nothing else."""
    expected = syntax.read(text)
    del _parent(expected, path)[path[-1]]
    after = syntax.remove(text, path)
    # TOML has no table without a line that says so.
    return _proven(syntax, after, expected, may_lack=path[:-1])


def _parent(data: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in path[:-1]:
        data = data[key]
    return data


def _proven(syntax: Syntax, text: str, expected: dict[str, Any], may_lack: Path = ()) -> str:
    try:
        found = syntax.read(text)
    except EditError as error:
        raise EditError(_CLASH) from error
    if may_lack and not _parent(expected, may_lack)[may_lack[-1]]:
        _parent(found, may_lack).setdefault(may_lack[-1], {})
    if found != expected:
        raise EditError(_CLASH)
    return text

"""Edits of one place in a text that somebody else wrote; all else stays as it is. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Path = Sequence[str]
"""The keys that lead to a value, from the outermost object to the innermost."""

_CLASH = (
    "none of its servers can be changed without changing another: they are in an inline table, or "
    "under a key that is there twice"
)


class EditError(Exception):
    """Raised when a text cannot be read, or cannot be changed without changing something else.

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
        """The data in the text, as new objects; an empty text holds none."""

    def add(self, text: str, path: Path, value: dict[str, Any]) -> str:
        """The text with one more object, and with the objects around it that are missing."""

    def replace(self, text: str, path: Path, value: Any) -> str:
        """The text with another value in the place of one."""

    def remove(self, text: str, path: Path) -> str:
        """The text without one value; the object around it stays."""


@dataclass(frozen=True, slots=True)
class Splice:
    """A piece of a text, from offset `start` to before `end`, and what takes its place."""

    start: int
    end: int
    new: str = ""


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """`text` after all splices; those at the same place apply in the order given."""
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
        raise EditError(f"`{key}` is not a table of servers")
    return found


def table_at(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """The object that `path` leads to; an empty one if there is nothing.

    Raises:
        EditError: If there is something else on the way, or at its end.
    """
    for key in path:
        data = table(data, key)
    return data


def added(syntax: Syntax, text: str, path: Path, value: dict[str, Any]) -> str:
    """`Syntax.add`, checked to change nothing else."""
    expected = syntax.read(text)
    parent = expected
    for key in path[:-1]:
        parent[key] = table(parent, key)
        parent = parent[key]
    parent[path[-1]] = value
    return _proven(syntax, syntax.add(text, path, value), expected)


def replaced(syntax: Syntax, text: str, path: Path, value: Any) -> str:
    """`Syntax.replace`, checked to change nothing else."""
    expected = syntax.read(text)
    _parent(expected, path)[path[-1]] = value
    return _proven(syntax, syntax.replace(text, path, value), expected)


def removed(syntax: Syntax, text: str, path: Path) -> str:
    """`Syntax.remove`, checked to change nothing else."""
    expected = syntax.read(text)
    del _parent(expected, path)[path[-1]]
    after = syntax.remove(text, path)
    # In TOML an empty table without a header does not exist.
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

"""Changes one place in a text that somebody else wrote, and nothing else in it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Path = Sequence[str]
"""The keys that lead to a value, from the outermost object to the innermost."""

_CLASH = (
    "one of its servers cannot be changed without changing another: they are in an inline table, "
    "or under a key that occurs twice"
)


class EditError(Exception):
    """Raised when a text cannot be read, or cannot be changed without changing something else.

    Args:
        reason: What is wrong, without the file's name.
        line: The number of the line, counted from 1; None if it is unknown.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line


class Syntax(Protocol):
    """A language of configuration files. Every method may raise EditError."""

    def read(self, text: str) -> dict[str, Any]:
        """Return the data in the text, as new objects; an empty text has none."""

    def add(self, text: str, path: Path, value: dict[str, Any]) -> str:
        """Return the text with a new object at `path`, and with any missing objects around it."""

    def replace(self, text: str, path: Path, value: Any) -> str:
        """Return the text with `value` in place of the value at `path`."""

    def remove(self, text: str, path: Path) -> str:
        """Return the text without the value at `path`; the object around it stays."""


@dataclass(frozen=True, slots=True)
class Splice:
    """Replaces the text from offset `start` up to, but without, `end` by `new`."""

    start: int
    end: int
    new: str = ""


def spliced(text: str, splices: Sequence[Splice]) -> str:
    """Return `text` after all splices; those at the same place apply in the order given."""
    pieces, at = [], 0
    for splice in sorted(splices, key=lambda splice: splice.start):
        pieces += [text[at : splice.start], splice.new]
        at = splice.end
    return "".join([*pieces, text[at:]])


def line_of(text: str, offset: int) -> int:
    """Return the number of the line that an offset is in, counted from 1."""
    return text.count("\n", 0, offset) + 1


def newline_of(text: str) -> str:
    """Return the line ending of `text`: CRLF if it occurs, otherwise LF."""
    return "\r\n" if "\r\n" in text else "\n"


def table(data: dict[str, Any], key: str) -> dict[str, Any]:
    """Return the object under `key`; an empty one if there is no such key.

    Raises:
        EditError: If the value is not an object.
    """
    found = data.get(key, {})
    if not isinstance(found, dict):
        raise EditError(f"`{key}` is not a table of servers")
    return found


def table_at(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """Return the object that `path` leads to; an empty one if a key on the path is missing.

    Raises:
        EditError: If a value on the path, or at its end, is not an object.
    """
    for key in path:
        data = table(data, key)
    return data


def added(syntax: Syntax, text: str, path: Path, value: dict[str, Any]) -> str:
    """Like `Syntax.add`, and check that nothing else has changed."""
    expected = syntax.read(text)
    parent = expected
    for key in path[:-1]:
        parent[key] = table(parent, key)
        parent = parent[key]
    parent[path[-1]] = value
    return _proven(syntax, syntax.add(text, path, value), expected)


def replaced(syntax: Syntax, text: str, path: Path, value: Any) -> str:
    """Like `Syntax.replace`, and check that nothing else has changed."""
    expected = syntax.read(text)
    _parent(expected, path)[path[-1]] = value
    return _proven(syntax, syntax.replace(text, path, value), expected)


def removed(syntax: Syntax, text: str, path: Path) -> str:
    """Like `Syntax.remove`, and check that nothing else has changed."""
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

"""Reads TOML with the standard library, and edits it in place. Pure.

We always add our table on lines of its own, at the end of the file. We use no library that keeps
comments: such libraries treat the comments below a table as part of it, and would remove them
together with our table.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.clients.edits import EditError, Path, Splice, newline_of, spliced

_TOKEN = re.compile(
    r'''(?P<string>"""(?:\\.|[^\\])*?"""(?:"{0,2})|\'\'\'.*?\'\'\'(?:\'{0,2})
        |"(?:\\.|[^"\\\n])*"|'[^'\n]*')
    | (?P<comment>\#[^\n]*)
    | (?P<newline>\n)
    | (?P<opening>[\[{])
    | (?P<closing>[\]}])
    | (?P<equals>=)
    | (?P<space>[ \t\r]+)
    | (?P<other>[^"'\#\n\[\]{}=\ \t\r]+)''',
    re.VERBOSE | re.DOTALL,
)
_EMPTY_LINE_AT_THE_END = re.compile(r"(?:\A|\r?\n)(?P<line>\r?\n)\Z")
# tomllib keeps every prefix of every dotted key, together with the header above it. As measured, a
# line of 250 KB with 125,000 keys took 24 GB and killed the process. Below this limit: 160 MB.
_MOST_NESTING = 20_000_000
_LINE_IN_MESSAGE = re.compile(r"at line (\d+)")


@dataclass(frozen=True, slots=True)
class _Statement:
    """A header of a table, or a key with its value."""

    path: tuple[str, ...]
    """Its keys, from the top of the document."""
    start: int
    """The offset of its first line."""
    end: int
    """The offset after its last line."""
    value: tuple[int, int] | None
    """The offsets where its value starts and ends; None for a header."""


class Toml:
    """The syntax TOML, as tomllib reads it."""

    def read(self, text: str) -> dict[str, Any]:
        """Return the data in the text.

        Raises:
            EditError: If the text is not TOML.
        """
        if _nesting(text) > _MOST_NESTING:
            raise EditError("it is nested too deeply")
        try:
            return tomllib.loads(text)
        except RecursionError as error:
            raise EditError("it is nested too deeply") from error
        except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
            where = _LINE_IN_MESSAGE.search(str(error))
            reason = str(error).partition(" (at ")[0]
            raise EditError(reason, int(where[1]) if where else None) from error

    def add(self, text: str, path: Path, value: dict[str, Any]) -> str:
        """Return the text with one more table at its end."""
        newline = newline_of(text)
        header = ".".join(map(_rendered_key, path))
        lines = [f"[{header}]", *(f"{_rendered_key(k)} = {_rendered(v)}" for k, v in value.items())]
        table = newline.join(lines)
        if not text:
            return table + newline
        if text.endswith("\n"):
            return text + newline + table + newline
        return text + newline * 2 + table

    def replace(self, text: str, path: Path, value: Any) -> str:
        """Return the text with another value of a key."""
        for statement in _statements(text):
            if statement.path == tuple(path) and statement.value:
                return spliced(text, [Splice(*statement.value, _rendered(value))])
        raise EditError(f"`{path[-1]}` is not on a line of its own")

    def remove(self, text: str, path: Path) -> str:
        """Return the text without a table and the empty line before it."""
        runs: list[list[_Statement]] = []
        was_ours = False
        for statement in _statements(text):
            is_ours = statement.path[: len(path)] == tuple(path)
            if is_ours and was_ours:
                runs[-1].append(statement)
            elif is_ours:
                runs.append([statement])
            was_ours = is_ours
        return spliced(text, [_cut(text, run[0].start, run[-1].end) for run in runs])


def _nesting(text: str) -> int:
    """Return an upper limit for the number of keys that tomllib may have to keep."""
    dots = [line.count(".") + 1 for line in text.split("\n")]
    return max(dots) * sum(number for number in dots if number > 1)


def _cut(text: str, start: int, end: int) -> Splice:
    """Return the cut from `start` to `end`, with the empty line that `add` puts before a table."""
    empty = _EMPTY_LINE_AT_THE_END.search(text, 0, start)
    if empty is None:
        return Splice(start, end)
    is_last_line_unended = not text[:end].endswith("\n")
    return Splice(empty.start() if is_last_line_unended else empty.start("line"), end)


def _statements(text: str) -> Iterator[_Statement]:
    """Yield the statements of a text that tomllib can read."""
    table: tuple[str, ...] = ()
    tokens: list[re.Match[str]] = []
    depth = 0
    for token in _TOKEN.finditer(text):
        depth += (token.lastgroup == "opening") - (token.lastgroup == "closing")
        tokens.append(token)
        if (token.lastgroup == "newline" and depth == 0) or token.end() == len(text):
            if statement := _statement(text, tokens, table):
                yield statement
                if statement.value is None:
                    table = statement.path
            tokens = []


def _statement(text: str, tokens: list[re.Match[str]], table: tuple[str, ...]) -> _Statement | None:
    words = [t for t in tokens if t.lastgroup not in {"space", "comment", "newline"}]
    if not words:
        return None
    start, end = tokens[0].start(), tokens[-1].end()
    if words[0].lastgroup == "opening":
        return _Statement(_keys(text[words[0].start() : words[-1].end()]), start, end, None)
    equals = next(t for t in words if t.lastgroup == "equals")
    value = words[words.index(equals) + 1]
    path = table + _keys(text[words[0].start() : equals.start()] + "= 0")
    return _Statement(path, start, end, (value.start(), words[-1].end()))


def _keys(statement: str) -> tuple[str, ...]:
    """Return the keys of one statement; tomllib reads them, since they may be quoted."""
    keys = []
    node: Any = tomllib.loads(statement)
    while isinstance(node, dict) and node:
        [(key, node)] = node.items()
        keys.append(key)
    return tuple(keys)


def _rendered_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _rendered(key)


def _rendered(value: Any) -> str:
    # Values other than objects are written in TOML as in JSON, except for the character DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

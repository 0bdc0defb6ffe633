"""Changes a YAML text in place. Pure.

A change splices the text, so comments, order, quotes and indentation stay as their writer made
them. Libraries that write YAML lose the comment before an entry together with the entry above it,
and change the indentation. A splice may alter other values too, such as those that refer to the
changed one. So callers must parse the result and compare it.
"""

import json
import re
from collections.abc import Mapping, Sequence

from vector_index_mcp.documents.yaml_text import Node, YamlError, line_start, parsed
from vector_index_mcp.errors import quoted

_WIDTH = 2  # the indentation of a block, unless the text shows another
# Texts that need no quotes: words that begin with a letter or a slash. Those in `_MEANINGFUL` do.
_PLAIN = re.compile(r"[^\W\d_/][\w./-]*(?: [\w./-]+)*|/[\w./-]+")
_MEANINGFUL = frozenset("y n yes no on off true false null".split())
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

Value = str | Sequence[str] | Mapping[str, "Value"]
"""A value to write: a text, a list of texts, or a mapping of values."""


def put(text: str, way: Sequence[str], value: Value) -> str:
    """Return `text` with `value` at the end of `way`, the keys that lead to it from the top.

    Missing mappings are added; a new entry becomes the last one of its mapping.

    Raises:
        YamlError: If `text` is not YAML, or a value on the way is not a mapping.
    """
    node = root = parsed(text)
    if node is None or root is None:
        return _with_lines(text, len(text), _block(_nested(way, value), 0, _WIDTH))
    width = _width(text, root)
    column, is_in_flow = -width, False
    for number, key in enumerate(way):
        rest = {key: _nested(way[number + 1 :], value)}
        if node.is_null or node.entries == {}:
            return _with_mapping(text, node, rest, -1 if is_in_flow else column + width, width)
        if node.entries is None:
            raise YamlError("the value here should be a mapping; correct it", node.line)
        if key not in node.entries:
            return _with_entry(text, node, rest, width)
        is_in_flow = node.is_flow
        name, node = node.entries[key]
        column = _column(text, name)
    return _with_text(text, node, value, is_in_flow=is_in_flow)


def drop(text: str, way: Sequence[str]) -> str:
    """Return `text` without the entry at the end of `way`; its mapping may be left empty.

    Raises:
        YamlError: If `text` is not YAML, or there is no such entry.
    """
    holder, (key, value) = _entry(text, way)
    end = max(key.end, value.end)
    if not holder.is_flow:
        return text[: line_start(text, key.start)] + text[_line_end(text, end) :]
    entries = [*(holder.entries or {}).values()]
    number = [name for name, _ in entries].index(key)
    if number + 1 < len(entries):
        return text[: key.start] + text[entries[number + 1][0].start :]
    start = entries[number - 1][1].end if number else key.start
    return text[:start] + text[end:]


def renamed(text: str, way: Sequence[str], new: str) -> str:
    """Return `text` with another key for the entry at the end of `way`.

    Raises:
        YamlError: If `text` is not YAML, or there is no such entry.
    """
    holder, (key, _) = _entry(text, way)
    return text[: key.start] + _scalar(new, is_quoted=holder.is_flow) + text[key.end :]


def _entry(text: str, way: Sequence[str]) -> tuple[Node, tuple[Node, Node]]:
    """Return the mapping with the entry at the end of `way`, and the entry's key and value."""
    holder, node = None, parsed(text)
    for key in way:
        holder = node
        found = (holder.entries or {}).get(key) if holder else None
        if holder is None or found is None:
            raise YamlError(f"the key {quoted(key)} is missing; add it first")
        entry, node = found, found[1]
    if holder is None:
        raise YamlError("no entry is named; name one")
    return holder, entry


def _with_text(text: str, node: Node, value: Value, *, is_in_flow: bool) -> str:
    """Return `text` with the text `value` in place of the one at `node`."""
    if node.text is None or not isinstance(value, str):
        raise YamlError("the value here should be a text; correct it", node.line)
    before, old, after = text[: node.start], text[node.start : node.end], text[node.end :]
    written = _scalar(value, is_quoted=is_in_flow or old[:1] in {"'", '"'})
    space = "" if before[-1:].isspace() or not before else " "
    return before + space + written + (_newline(text) if old.endswith("\n") else "") + after


def _with_mapping(text: str, node: Node, value: Value, column: int, width: int) -> str:
    """Return `text` with a mapping in place of `node`, which is null or an empty mapping.

    The keys are written in `column`, or in brackets if it is negative.
    """
    before, after = text[: node.start].rstrip(" "), text[node.end :]
    if column < 0:
        return f"{before} {_flow(value)}{after}"
    bare = before + after if node.end > node.start else text
    return _with_lines(bare, _line_end(bare, len(before)), _block(value, column, width))


def _with_entry(text: str, node: Node, value: Value, width: int) -> str:
    """Return `text` with one more entry at the end of a mapping that has others."""
    first, *_ = (key for key, _ in (node.entries or {}).values())
    *_, last = (value for _, value in (node.entries or {}).values())
    if node.is_flow:
        return f"{text[: last.end]}, {_flow(value)[1:-1]}{text[last.end :]}"
    lines = _block(value, _column(text, first), width)
    return _with_lines(text, _line_end(text, node.end), lines)


def _with_lines(text: str, position: int, lines: list[str]) -> str:
    newline = _newline(text)
    before = text[:position]
    if before and not before.endswith("\n"):
        before += newline
    return before + "".join(line + newline for line in lines) + text[position:]


def _nested(way: Sequence[str], value: Value) -> Value:
    for key in reversed(way):
        value = {key: value}
    return value


def _block(value: Value, column: int, width: int) -> list[str]:
    """Return the lines of a mapping."""
    if not isinstance(value, Mapping):
        return []
    lines = []
    for key, part in value.items():
        beginning = " " * column + _scalar(key) + ":"
        if isinstance(part, Mapping):
            lines += [beginning, *_block(part, column + width, width)]
        else:
            written = _scalar(part) if isinstance(part, str) else _flow(part)
            lines.append(f"{beginning} {written}")
    return lines


def _flow(value: Value) -> str:
    """Return `value` in one line, written like JSON."""
    if isinstance(value, str):
        return _scalar(value, is_quoted=True)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(part)}" for key, part in value.items()) + "}"
    return "[" + ", ".join(map(_flow, value)) + "]"


def _scalar(text: str, *, is_quoted: bool = False) -> str:
    """Return `text` as a scalar that is read as this text in every version of YAML."""
    if not is_quoted and _PLAIN.fullmatch(text) and text.lower() not in _MEANINGFUL:
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return _NOT_PRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", quoted)


def _width(text: str, root: Node) -> int:
    """Return the indentation of the first nested block."""
    for key, value in (root.entries or {}).values():
        if value.entries and not value.is_flow:
            first = next(iter(value.entries.values()))[0]
            return max(_column(text, first) - _column(text, key), 1)
    return _WIDTH


def _column(text: str, node: Node) -> int:
    return node.start - line_start(text, node.start)


def _line_end(text: str, position: int) -> int:
    """Return the offset after the end of the line that `position` is in or directly after."""
    if position and text[position - 1] == "\n":
        return position
    return text.find("\n", position) + 1 or len(text)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"

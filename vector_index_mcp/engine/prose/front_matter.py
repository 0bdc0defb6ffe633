"""The settings at the top of a text: YAML between `---`, or TOML between `+++`. Pure.

People write front matter that is no valid YAML (`title: Rust: a tour`), so each key is read by
itself: a plain value and a list of plain values as they stand, and only what is left by a YAML
library. A key that cannot be read costs that key alone.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = str | list[str]

_MOST_LINES = 1_000
_MOST_VALUES = 256
_LONGEST_VALUE_CHARS = 1_000
_LONGEST_BLOCK_CHARS = 20_000
_KEY = re.compile(r"([A-Za-z_][\w .-]{0,60}?)\s{0,20}:(?:\s+(.*)|)$")
_ITEM = re.compile(r"\s{0,40}-\s+(.*)$")
_COMMENT = re.compile(r"\s#.*$")
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\\])*)\1\s*(?:#.*)?$""")
_NEEDS_YAML = tuple("\"'{[|>&*!%@`")


def split(lines: Sequence[str]) -> tuple[dict[str, Value], int]:
    """The settings at the top of a text, and how many lines hold them.

    Args:
        lines: Those of the text, without their line feeds.

    Returns:
        Keys in lower case with what stands behind them, as text; and the number of the first line,
        0-based, that belongs to the text itself: 0 if there are no settings.
    """
    mark = lines[0].rstrip() if lines else ""
    if mark not in {"---", "+++"}:
        return {}, 0
    ends = {"---", "..."} if mark == "---" else {"+++"}
    for number, line in enumerate(lines[1:_MOST_LINES], 1):
        if line.rstrip() in ends:
            held = lines[1:number]
            if mark == "+++":
                return _of_toml(held), number + 1
            values = dict(_of_yaml(held))
            # A rule between two dashes, and a text in between, are no settings.
            is_settings = bool(values) or not any(line.strip() for line in held)
            return (values, number + 1) if is_settings else ({}, 0)
    return {}, 0


def _of_toml(lines: Sequence[str]) -> dict[str, Value]:
    import tomllib  # not needed for code

    try:
        return _flat(tomllib.loads("\n".join(lines)))
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _of_yaml(lines: Sequence[str]) -> Iterator[tuple[str, Value]]:
    starts = [(n, m) for n, line in enumerate(lines) if (m := _KEY.match(line))]
    for (start, match), (end, _) in zip(starts, [*starts[1:], (len(lines), None)], strict=True):
        value = _value(match[2] or "", lines[start + 1 : end])
        if value:
            yield match[1].strip().lower(), value


def _value(first: str, rest: Sequence[str]) -> Value:
    """What stands behind a key: on its own line, and on those below that belong to it."""
    first, rest = first.strip(), [line for line in rest if line.strip()]
    if not first or first.startswith("#"):
        items = [_ITEM.match(line) for line in rest]
        found = [_scalar(item[1]) if item else None for item in items[:_MOST_VALUES]]
        if all(value is not None for value in found):
            return [value for value in found if value]
    elif first.startswith("[") and first.endswith("]") and not rest:
        found = [_scalar(part) for part in first[1:-1].split(",")[:_MOST_VALUES]]
        if all(value is not None and not value.startswith("[") for value in found):
            return [value for value in found if value]
    elif not rest and (value := _scalar(first)) is not None:
        return value
    return _by_library(first, rest)


def _scalar(text: str) -> str | None:
    """A plain or simply quoted value; None if it takes a YAML library to read it."""
    text = text.strip()
    if match := _QUOTED.match(text):
        return match[2][:_LONGEST_VALUE_CHARS]
    if text.startswith(_NEEDS_YAML):
        return None
    return _COMMENT.sub("", text).strip()[:_LONGEST_VALUE_CHARS]


def _by_library(first: str, rest: Sequence[str]) -> Value:
    import yaml  # takes 15 ms to import, and few texts need it

    block = "\n".join([f"key: {first}", *rest])[:_LONGEST_BLOCK_CHARS]
    try:
        return _flat(yaml.safe_load(block)).get("key", "")
    except (yaml.YAMLError, RecursionError, ValueError, AttributeError, TypeError):
        return first.strip("\"'[]{} ")[:_LONGEST_VALUE_CHARS]


def _flat(values: Mapping[Any, object]) -> dict[str, Value]:
    """Settings as texts and lists of texts; what is neither is left out."""
    found: dict[str, Value] = {}
    for key, value in values.items():
        if isinstance(value, list):
            texts = [_text(item) for item in value[:_MOST_VALUES]]
            found[str(key).lower()] = [text for text in texts if text]
        elif text := _text(value):
            found[str(key).lower()] = text
    return found


def _text(value: object) -> str:
    return "" if isinstance(value, dict | list | type(None)) else str(value)[:_LONGEST_VALUE_CHARS]

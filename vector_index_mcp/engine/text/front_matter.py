"""Reads the front matter at the top of a text: YAML between `---`, or TOML between `+++`. Pure.

People write front matter that is not valid YAML (`title: Rust: a tour`), so each key is read by
itself. Plain values and lists of plain values are read here, and a YAML library reads the rest. A
key that cannot be read does not affect the others.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Value: TypeAlias = str | list[str]

MARKS = ("---", "+++")
"""The first lines of texts with front matter."""
_MOST_LINES = 1_000
_MOST_VALUES = 256
_LONGEST_VALUE_CHARS = 1_000
_MOST_BY_LIBRARY_CHARS = 20_000  # for all values of a text together
_INNER = (" ", "\t", "-", "#", "]", "}")
"""Lines that begin so continue a key's value, or are comments."""
_KEY = re.compile(
    r"""(?:([^\W\d][\w .-]{0,60}?)|"([^"\n]{1,60})"|'([^'\n]{1,60})')\s{0,20}:(?:\s+(.*)|)$"""
)
_ITEM = re.compile(r"\s{0,40}-\s+(.*)$")
_COMMENT = re.compile(r"\s#.*$")
_QUOTED = re.compile(r"""(["'])((?:(?!\1)[^\\])*)\1\s*(?:#.*)?$""")
_NEEDS_YAML = tuple("\"'{[|>&*!%@`")
_NOTHING = {"", "~", "null", "Null", "NULL"}


def split(lines: Sequence[str]) -> tuple[dict[str, Value], int]:
    """Return the front matter of a text, and the first line after it.

    Args:
        lines: The lines of the text, without their line feeds.

    Returns:
        The values by their keys in lower case; and the 0-based number of the first line of the text
        itself, which is 0 if there is no front matter.
    """
    first = first_line_behind(lines)
    if not first:
        return {}, 0
    held = _held(lines, first)
    return (_of_toml(held) or {}) if lines[0].startswith("+++") else _of_yaml(held), first


def first_line_behind(lines: Sequence[str]) -> int:
    """Return the 0-based number of the first line after the front matter; 0 if there is none."""
    mark = lines[0].rstrip() if lines else ""
    if mark not in MARKS:
        return 0
    ends = {"---", "..."} if mark == "---" else {"+++"}
    behind = next(
        (n + 2 for n, line in enumerate(lines[1:_MOST_LINES]) if line.rstrip() in ends), 0
    )
    are_settings = _are_toml if mark == "+++" else _are_yaml
    return behind if behind and are_settings(_held(lines, behind)) else 0


def _held(lines: Sequence[str], first: int) -> list[str]:
    """Return the lines between the marks, of which the second one stands before line `first`."""
    return [line.removesuffix("\r") for line in lines[1 : first - 1]]


def _are_toml(lines: Sequence[str]) -> bool:
    """Return whether any line may be a setting, or the lines are TOML without one."""
    return any("=" in line for line in lines) or _of_toml(lines) is not None


def _of_toml(lines: Sequence[str]) -> dict[str, Value] | None:
    """Return the values in these lines; None if they cannot be read."""
    import tomllib  # not needed for code

    try:
        return _flat(tomllib.loads("\n".join(lines)))
    except (ValueError, RecursionError):  # not TOML, or its numbers are too long
        return None


def _of_yaml(lines: Sequence[str]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    left = _MOST_BY_LIBRARY_CHARS
    starts = [(n, m) for n, line in enumerate(lines) if (m := _KEY.match(line))]
    ends = [*(start for start, _ in starts[1:]), len(lines)]
    for (start, match), end in zip(starts, ends, strict=False):
        first = (match[4] or "").strip()
        rest = [line for line in lines[start + 1 : end] if line.strip()]
        value = _value(first, rest)
        if value is None:
            block = "\n".join([first, *rest])[:left]
            left -= len(block)
            value = _by_library(block)
        if value is None:  # it is not valid YAML
            value = _scalar(first.strip("\"'[]{} "))
        if value:
            found[(match[1] or match[2] or match[3]).strip().lower()] = value
    return found


def _are_yaml(lines: Sequence[str]) -> bool:
    """Return whether most unindented lines are keys; if half are, the first one decides."""
    written = [line for line in lines if line.strip()]
    keys = [bool(_KEY.match(line)) for line in written if not line.startswith(_INNER)]
    return not written or 2 * sum(keys) + sum(keys[:1]) > len(keys)


def _value(first: str, rest: Sequence[str]) -> Value | None:
    """Return the value of a key; None if only a YAML library can read it.

    Args:
        first: The text after the key on its line.
        rest: The lines below that belong to the key, without blank ones.
    """
    if rest and (not first or first.startswith("#")):
        matches = [_ITEM.match(line) for line in rest[:_MOST_VALUES]]
        return _list([match[1] if match else '"' for match in matches])
    if rest:
        return None
    if first.startswith("[") and first.endswith("]"):
        parts = first[1:-1].split(",", _MOST_VALUES)[:_MOST_VALUES]
        return None if any(part.lstrip().startswith("[") for part in parts) else _list(parts)
    return "" if first == "#" or first.startswith("# ") else _scalar(first)


def _list(texts: Sequence[str]) -> list[str] | None:
    """Return the plain values in `texts`; None if one of them is not plain."""
    values = [_scalar(text) for text in texts]
    found = [value for value in values if value]
    return None if None in values else found


def _scalar(text: str) -> str | None:
    """Return a plain or simply quoted value; None if only a YAML library can read it."""
    text = text.strip()
    if match := _QUOTED.match(text):
        return match[2][:_LONGEST_VALUE_CHARS]
    if text.startswith(_NEEDS_YAML):
        return None
    plain = text if text.startswith("#") else _COMMENT.sub("", text).strip()
    return "" if plain in _NOTHING else plain[:_LONGEST_VALUE_CHARS]


def _by_library(block: str) -> Value | None:
    import yaml  # takes 15 ms to import, and few texts need it

    # BaseLoader leaves dates and numbers as they are written, and ignores merge keys, which can
    # grow without bound.
    try:
        return _flat(yaml.load(f"key: {block}", yaml.BaseLoader)).get("key", "")
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError, AttributeError, TypeError):
        return None


def _flat(values: Mapping[Any, object]) -> dict[str, Value]:
    """Return the values that are texts or lists of texts; others are left out."""
    found: dict[str, Value] = {}
    for key, value in values.items():
        if isinstance(value, list):
            texts = [_text(item) for item in value[:_MOST_VALUES]]
            found[str(key).lower()] = [text for text in texts if text]
        elif text := _text(value):
            found[str(key).lower()] = text
    return found


def _text(value: object) -> str:
    text = "" if isinstance(value, dict | list) else str(value).strip()
    return "" if text in _NOTHING else text[:_LONGEST_VALUE_CHARS]

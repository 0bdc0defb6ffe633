"""A document's front matter: title, keywords, and the times of writing. Pure.

Parsing is tolerant, because people write front matter, too. Only single lines are ever changed, so
that people's own keys and comments stay as they are.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vector_index_mcp.engine.text import front_matter

_RULE = "---"
_BOM = "\ufeff"
# Needs no quotes in YAML, where it means neither a number nor a date.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\ufeff\u2028\u2029]")  # in YAML; json.dumps escapes the rest
_NOT_TEXT = frozenset("true false yes no on off y n null".split())
_UPDATED = re.compile(r"updated[ \t]*:[^\n]*")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The front matter of a document; a field is empty if the document does not have it."""

    title: str
    keywords: tuple[str, ...]
    created: str
    updated: str


def parted(text: str) -> tuple[str, str]:
    """Split a text into its front matter with both rules (empty if it has none), and the rest."""
    lines = text.removeprefix(_BOM).split("\n")
    _, first = front_matter.split([line.removesuffix("\r") for line in lines[: _most_lines(lines)]])
    if first and text.startswith(_BOM):  # as some editors begin a file
        lines[0] = _BOM + lines[0]
    at = sum(len(line) + 1 for line in lines[:first])
    return text[:at], text[at:]


def _most_lines(lines: Sequence[str]) -> int:
    """Return how many lines to search for front matter: none unless the first is a rule."""
    return 1_001 if lines[0].rstrip() == _RULE else 0


def metadata(front: str) -> Metadata:
    """Parse `front`, which `parted` has returned."""
    values = _values(front)
    keywords = values.get("keywords", [])
    return Metadata(
        title=_one(values.get("title", "")),
        keywords=tuple([keywords] if isinstance(keywords, str) else keywords),
        created=_one(values.get("created", "")),
        updated=_one(values.get("updated", "")),
    )


def _values(front: str) -> Mapping[str, front_matter.Value]:
    return front_matter.split(front.removeprefix(_BOM).split("\n"))[0]


def written(data: Metadata) -> str:
    """Return `data` as front matter."""
    keywords = ", ".join(map(_scalar, data.keywords))
    return (
        f"{_RULE}\ntitle: {_scalar(data.title)}\nkeywords: [{keywords}]\n"
        f"created: '{data.created}'\nupdated: '{data.updated}'\n{_RULE}\n"
    )


def is_true(front: str, key: str) -> bool:
    """Return whether `key` is true in `front`."""
    return _values(front).get(key) in {"true", "True", "TRUE"}


def with_line(front: str, line: str) -> str:
    """Return `front` with one more line at its end; new front matter if it is empty."""
    if not front:
        return f"{_RULE}\n{line}\n{_RULE}\n"
    lines = front.split("\n")
    last = next(n for n in reversed(range(len(lines))) if lines[n].strip())  # the second rule
    return "\n".join([*lines[:last], line, *lines[last:]])


def touched(front: str, moment: str) -> str:
    """Return `front` with `moment` as the time of the last change; if empty, it stays empty."""
    lines = front.split("\n")
    for number, line in enumerate(lines):
        if _UPDATED.match(line):
            end = "\r" if line.endswith("\r") else ""
            lines[number] = f"updated: '{moment}'{end}"
            return "\n".join(lines)
    return with_line(front, f"updated: '{moment}'") if front else front


def now() -> str:
    """Return the current time in the format of `iso`."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """Return a time as JavaScript's `toISOString` writes it: in UTC, with milliseconds."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    if is_plain:
        return text
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(text, ensure_ascii=False))

"""What a document says of itself at its top: title, keywords, and when it was written. Pure.

It is read with patience, since people write it, too. Only single lines of it are ever changed, so
that keys and comments of theirs stay as they are.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from vector_index_mcp.engine.prose import front_matter

_RULE = "---"
_BOM = "\ufeff"
# Plain in YAML, and no number, date or word that means something else there.
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?: [A-Za-z0-9_-]+)*")
_UNPRINTABLE = re.compile("[\x7f-\x9f\ufeff\u2028\u2029]")  # in YAML; JSON escapes the others
_NOT_TEXT = frozenset("true false yes no on off y n null".split())
_UPDATED = re.compile(r"updated[ \t]*:[^\n]*")


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is said at the top of a document; empty where nothing is."""

    title: str
    keywords: tuple[str, ...]
    created: str
    updated: str


def parted(text: str) -> tuple[str, str]:
    """The front matter with its rules, empty if there is none, and the text below it."""
    lines = text.removeprefix(_BOM).split("\n")
    _, first = front_matter.split([line.removesuffix("\r") for line in lines[: _most_lines(lines)]])
    if first and text.startswith(_BOM):  # as some editors begin a file
        lines[0] = _BOM + lines[0]
    at = sum(len(line) + 1 for line in lines[:first])
    return text[:at], text[at:]


def _most_lines(lines: Sequence[str]) -> int:
    """How many lines are looked at: none, unless a rule stands at the top."""
    return 1_001 if lines[0].rstrip() == _RULE else 0


def metadata(front: str) -> Metadata:
    """What `front`, as `parted` gives it, says."""
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
    """`data` as front matter."""
    keywords = ", ".join(map(_scalar, data.keywords))
    return (
        f"{_RULE}\ntitle: {_scalar(data.title)}\nkeywords: [{keywords}]\n"
        f"created: '{data.created}'\nupdated: '{data.updated}'\n{_RULE}\n"
    )


def is_true(front: str, key: str) -> bool:
    """Whether `front` says that `key` is so."""
    return _values(front).get(key) in {"true", "True", "TRUE"}


def with_line(front: str, line: str) -> str:
    """`front` with one more line at its end; made if it is empty."""
    if not front:
        return f"{_RULE}\n{line}\n{_RULE}\n"
    lines = front.split("\n")
    last = next(n for n in reversed(range(len(lines))) if lines[n].strip())  # the second rule
    return "\n".join([*lines[:last], line, *lines[last:]])


def touched(front: str, moment: str) -> str:
    """`front` as that of a document that was changed at `moment`; empty if it is."""
    lines = front.split("\n")
    for number, line in enumerate(lines):
        if _UPDATED.match(line):
            end = "\r" if line.endswith("\r") else ""
            lines[number] = f"updated: '{moment}'{end}"
            return "\n".join(lines)
    return with_line(front, f"updated: '{moment}'") if front else front


def now() -> str:
    """This moment as JavaScript writes it."""
    return iso(datetime.now(UTC))


def iso(moment: datetime) -> str:
    """A moment as JavaScript writes it: to the millisecond, in UTC."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _one(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT
    if is_plain:
        return text
    return _UNPRINTABLE.sub(lambda m: f"\\u{ord(m[0]):04x}", json.dumps(text, ensure_ascii=False))

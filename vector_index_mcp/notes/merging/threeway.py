"""Which version stands where two sides have changed what they had in common. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TypeVar

K = TypeVar("K")
Key = tuple[str, int]
"""A name, and how many of the same name stand before it."""


class Verdict(Enum):
    """Which version stands."""

    OURS = auto()
    """Theirs says nothing new."""
    THEIRS = auto()
    """Ours says nothing new."""
    RESCUED = auto()
    """The one that is there: the other side has removed what this one has changed."""
    BOTH = auto()
    """Each side says something else."""


def verdict(base: object, ours: object, theirs: object) -> Verdict:
    """Which version of something stands; None is where it is not there."""
    if ours == theirs or theirs == base:
        return Verdict.OURS
    if ours == base:
        return Verdict.THEIRS
    return Verdict.RESCUED if ours is None or theirs is None else Verdict.BOTH


def ordered(ours: Sequence[K], theirs: Sequence[K]) -> Iterator[K]:
    """All of `ours`, and what only `theirs` has behind what it follows there."""
    known = set(ours)
    behind: dict[K | None, list[K]] = {}
    anchor: K | None = None
    for key in theirs:
        if key in known:
            anchor = key
        else:
            behind.setdefault(anchor, []).append(key)
    yield from behind.get(None, ())
    for key in ours:
        yield key
        yield from behind.get(key, ())


def keys(names: Iterable[str]) -> list[Key]:
    """`names`, told apart where some are the same."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, seen[name]))
        seen[name] += 1
    return found


def said(text: str) -> str:
    """What `text` says: without blank lines around it, and whatever ends its lines."""
    text = text.replace("\r\n", "\n").rstrip()
    blank = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, blank) + 1 :]


def is_later(one: str, other: str) -> bool:
    """Whether the moment `one` is later than the `other`; what is no moment was before all."""
    return (_moment(one), one) > (_moment(other), other)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)

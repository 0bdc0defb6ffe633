"""Decides which version to use where two sides have changed a common original. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from enum import Enum, auto
from typing import TypeVar

K = TypeVar("K")
Key = tuple[str, int]
"""A name, and how many equal names come before it."""


class Verdict(Enum):
    """Which version to use."""

    OURS = auto()
    """Ours: their side has changed nothing, or made the same change."""
    THEIRS = auto()
    """Theirs: our side has changed nothing."""
    RESCUED = auto()
    """The one that exists: one side has changed it, and the other has removed it."""
    BOTH = auto()
    """Both: each side has changed it differently."""


def verdict(base: object, ours: object, theirs: object) -> Verdict:
    """Decide between two versions with a common base; None stands for a missing version."""
    if ours == theirs or theirs == base:
        return Verdict.OURS
    if ours == base:
        return Verdict.THEIRS
    return Verdict.RESCUED if ours is None or theirs is None else Verdict.BOTH


def ordered(ours: Sequence[K], theirs: Sequence[K]) -> Iterator[K]:
    """Yield all of `ours`, with each key that only `theirs` has after the key before it there."""
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
    """Return a key for each of `names`, so that equal names have different keys."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        found.append((name, seen[name]))
        seen[name] += 1
    return found


def normalized(text: str) -> str:
    """Return `text` for a comparison: without surrounding blank lines, and with LF line ends."""
    text = text.replace("\r\n", "\n").rstrip()
    blank = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, blank) + 1 :]


def is_later(one: str, other: str) -> bool:
    """Return whether the time `one` is later than `other`; a text that is no time is earliest."""
    return (_moment(one), one) > (_moment(other), other)


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return found if found.tzinfo else found.replace(tzinfo=UTC)

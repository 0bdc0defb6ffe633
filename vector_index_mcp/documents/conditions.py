"""Conditions in a query: which documents count, by what they say of themselves. Pure.

`tag:meeting budget after:2024-05` looks for `budget` in documents that have the tag and are of May
2024 or later. A condition that makes no sense (a tag that no document has, a date that is none) is
no condition, but words like others.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from vector_index_mcp.documents.catalog import Entry

_CONDITION = re.compile(r'(?<!\S)(tag|before|after):("[^"]{0,200}"|[^\s"]{1,200})', re.IGNORECASE)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?")

_Test = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Conditional:
    """A query, and which documents count for it."""

    text: str
    """Without the conditions."""
    keys: tuple[str, ...] | None
    """Of the documents that count; None if all do."""


def has_conditions(query: str) -> bool:
    """Whether there is anything in `query` that may be a condition."""
    return _CONDITION.search(query) is not None


def understood(query: str, entries: Callable[[], Iterable[Entry]]) -> Conditional:
    """`query` without its conditions, and the documents that meet all of them.

    Args:
        query: As somebody wrote it.
        entries: Gives all documents; asked only if there is a condition.
    """
    if not has_conditions(query):
        return Conditional(query, None)
    known = [*entries()]
    tags = {_plain(tag) for entry in known for tag in entry.properties.tags}
    tests: list[_Test] = []

    def taken(match: re.Match[str]) -> str:
        test = _test_of(match[1].lower(), match[2].strip('"'), tags)
        if test is None:
            return match[0]
        tests.append(test)
        return " "

    text = _CONDITION.sub(taken, query).strip()
    if not tests:
        return Conditional(query, None)
    keys = (entry.key for entry in known if all(test(entry) for test in tests))
    return Conditional(text, tuple(keys))


def _test_of(kind: str, value: str, tags: set[str]) -> _Test | None:
    """What a condition asks of a document; None if it is no condition."""
    if kind == "tag":
        wanted = _plain(value)
        if not any(_is_below(tag, wanted) for tag in tags):
            return None
        return lambda entry: any(_is_below(_plain(tag), wanted) for tag in entry.properties.tags)
    if not _DATE.fullmatch(value):
        return None
    if kind == "before":
        return lambda entry: date_of(entry) < value
    return lambda entry: date_of(entry)[: len(value)] >= value


def date_of(entry: Entry) -> str:
    """The date that a document names, YYYY-MM-DD; else that on which its file was written."""
    named = entry.properties.created or entry.properties.updated
    return named or datetime.fromtimestamp(entry.modified, UTC).date().isoformat()


def _plain(tag: str) -> str:
    return tag.strip().removeprefix("#").casefold()


def _is_below(tag: str, wanted: str) -> bool:
    """Whether a tag is the one that is wanted, or one of its parts: `work/budget` of `work`."""
    return tag == wanted or tag.startswith(f"{wanted}/")

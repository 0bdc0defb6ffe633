"""Conditions in a query, which limit it to documents by their tags and dates. Pure.

`tag:meeting budget after:2024-05` looks for `budget` in documents that have the tag and are from
May 2024 or later. A condition that makes no sense, such as an unknown tag or an invalid date,
counts as words of the query, and the answer says so.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from vector_index_mcp.documents.catalog import Entry
from vector_index_mcp.errors import quoted
from vector_index_mcp.files.scan import moment_of

_CONDITION = re.compile(r'(?<!\S)(tag|before|after):("[^"]{0,200}"|[^\s"]{1,200})', re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?")
_FIRST_DAY = "-01-01"  # of a year; its end completes a month
_MOST_SENSELESS = 3  # an answer says why of so many
_MOST_COMPARED, _MOST_CHARS, _MOST_CHARS_APART = 500, 40, 2  # of tags that may be meant

_Test = Callable[[Entry], bool]


@dataclass(frozen=True, slots=True)
class Conditional:
    """A query, and the documents that meet its conditions."""

    text: str
    """The query without the conditions."""
    keys: tuple[str, ...] | None
    """The keys of the documents that meet all conditions; None if there are no conditions."""
    senseless: tuple[str, ...] = ()
    """Why conditions count as words, in sentences without a full stop at the end."""


def has_conditions(query: str) -> bool:
    """Whether `query` has anything that looks like a condition."""
    return _CONDITION.search(query) is not None


def understood(query: str, entries: Callable[[], Iterable[Entry]]) -> Conditional:
    """Return `query` without its conditions, and the documents that meet all of them.

    Args:
        query: The query as it was written.
        entries: Returns all documents; called only if there may be a condition.
    """
    if not has_conditions(query):
        return Conditional(query, None)
    known = [*entries()]
    tags = {_plain(tag) for entry in known for tag in entry.properties.tags}
    tests: list[_Test] = []
    senseless: list[str] = []

    def taken(match: re.Match[str]) -> str:
        test = _test_of(match[1].lower(), match[2].strip('"'), tags)
        if test is None:
            if len(senseless) < _MOST_SENSELESS:
                why = _why_senseless(match[1].lower(), match[2].strip('"'), tags)
                senseless.append(f"{why}: {quoted(match[0])} counts as words")
            return match[0]
        tests.append(test)
        return " "

    text = _CONDITION.sub(taken, query).strip()
    if not tests:
        return Conditional(query, None, tuple(senseless))
    keys = (entry.key for entry in known if all(test(entry) for test in tests))
    return Conditional(text, tuple(keys), tuple(senseless))


def _test_of(kind: str, value: str, tags: Set[str]) -> _Test | None:
    """Return the test that a condition means; None if the condition makes no sense."""
    if kind == "tag":
        wanted = _plain(value)
        if not any(_is_below(tag, wanted) for tag in tags):
            return None
        return lambda entry: any(_is_below(_plain(tag), wanted) for tag in entry.properties.tags)
    if not _is_date(value):
        return None
    if kind == "before":
        return lambda entry: "" < _named_date(entry) < value
    return lambda entry: _named_date(entry)[: len(value)] >= value


def _why_senseless(kind: str, value: str, tags: Set[str]) -> str:
    """Say why a condition makes no sense."""
    if kind != "tag":
        return f"{quoted(value)} is no date such as 2024, 2024-05 or 2024-05-31"
    # difflib's time grows with the square of the lengths, and somebody else may have written them.
    wanted = _plain(value)
    alike = (t for t in tags if abs(len(t) - len(wanted)) <= _MOST_CHARS_APART)
    few = sorted(alike)[:_MOST_COMPARED] if len(wanted) <= _MOST_CHARS else []
    near = difflib.get_close_matches(wanted, few, 1)
    meant = f" (did you mean {quoted(near[0])}?)" if near else ""
    return f"No document has the tag {quoted(value)}{meant}"


def _is_date(value: str) -> bool:
    """Whether a value is a year, a month or a day that exists."""
    if not _DATE.fullmatch(value):
        return False
    with suppress(ValueError):
        date.fromisoformat(value + _FIRST_DAY[len(value) - len("YYYY") :])
        return True
    return False


def date_of(entry: Entry) -> str:
    """Return the date that a document names, as YYYY-MM-DD; else the date of its file."""
    named = _named_date(entry)
    return named or moment_of(entry.modified).date().isoformat()


def _named_date(entry: Entry) -> str:
    """Return the date in a document's front matter or file name; empty if it has none.

    The date of the file does not count: each copy and each checkout changes it.
    """
    return entry.properties.created or entry.properties.updated


def _plain(tag: str) -> str:
    return tag.strip().removeprefix("#").casefold()


def _is_below(tag: str, wanted: str) -> bool:
    """Whether a tag is the wanted one or below it, as `work/budget` is below `work`."""
    return tag == wanted or tag.startswith(f"{wanted}/")

"""Finds the properties of a document: its title, tags, dates, and the targets of links. Pure."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from vector_index_mcp.engine.chunk.headings import headings
from vector_index_mcp.engine.prose.links import LONGEST_LINK_CHARS, MOST_LINKS, links_in
from vector_index_mcp.engine.text.fences import outside
from vector_index_mcp.engine.text.front_matter import Value, split

LONGEST_TITLE_CHARS = 300
_MOST_TAGS = 100
_LONGEST_TAG_CHARS = 100
_TITLE_LEVELS = 2
"""A heading of these levels can be a text's title; a deeper one is only a section's."""
_DATE = re.compile(r"(?<!\d)([0-9]{4})-([0-9]{2})-([0-9]{2})(?!\d)")
_TAG_KEYS = ("tags", "tag", "keywords", "categories")
_CREATED_KEYS = ("date", "created", "published")
_UPDATED_KEYS = ("updated", "modified", "lastmod", "last_modified")


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a document."""

    title: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other titles, by which links may name it."""
    created: str = ""
    """A date, YYYY-MM-DD; empty if neither the front matter nor the file name has one."""
    updated: str = ""
    """The same, of the last change; empty if the front matter has none."""
    links: tuple[str, ...] = ()
    """The targets that `links.links_in` finds."""
    heading: str = ""
    """The first heading, if it is of the first level and not the title; else empty.

    With a title in the front matter, a heading of the second level is only a section's.
    """

    def dumped(self) -> str:
        """Return the properties as JSON, for the index."""
        values = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def loaded(cls, stored: str, key: str) -> Self:
        """Return the properties that `dumped` stored; a missing title is made from `key`."""
        try:
            values = json.loads(stored) if stored else {}
        except (ValueError, RecursionError):
            values = {}
        values = values if isinstance(values, dict) else {}
        links = [link for link in _texts(values.get("links")) if link]
        return cls(
            title=_cleaned(_text(values.get("title")), LONGEST_TITLE_CHARS) or _named(key),
            tags=_distinct(_texts(values.get("tags")), _MOST_TAGS, _LONGEST_TAG_CHARS),
            aliases=_distinct(_texts(values.get("aliases")), _MOST_TAGS, LONGEST_TITLE_CHARS),
            created=_date(_text(values.get("created"))),
            updated=_date(_text(values.get("updated"))),
            links=tuple(_encodable(link)[:LONGEST_LINK_CHARS] for link in links[:MOST_LINKS]),
            heading=_cleaned(_text(values.get("heading")), LONGEST_TITLE_CHARS),
        )


def properties_of(key: str, text: str, language: str) -> tuple[Properties, int]:
    """Return the properties of a text, and its first line after the front matter, 0-based.

    The title is that of the front matter, else the first heading of the first two levels, else
    the name of the file without its extension.

    Args:
        key: The file's key.
        text: The whole text.
        language: Its language, by the name in `files.language`.
    """
    lines = text.split("\n")
    values, first = split(lines) if language == "markdown" else ({}, 0)
    body = outside(lines[first:]) if language == "markdown" else lines
    given = _cleaned(_first(values, ("title",)), LONGEST_TITLE_CHARS)
    level, heading = _first_heading(body, language)
    heading = _cleaned(heading, LONGEST_TITLE_CHARS)
    properties = Properties(
        title=given or heading or _named(key),
        tags=_distinct(_tags(values), _MOST_TAGS, _LONGEST_TAG_CHARS),
        aliases=_distinct(_all(values, ("aliases", "alias")), _MOST_TAGS, LONGEST_TITLE_CHARS),
        created=_date(_first(values, _CREATED_KEYS)) or _date(bare_name_of(key)),
        updated=_date(_first(values, _UPDATED_KEYS)),
        links=tuple(map(_encodable, links_in(body))) if language == "markdown" else (),
        heading=heading if level == 1 and given != heading and given else "",
    )
    return properties, first


def bare_name_of(key: str) -> str:
    """Return the name of the file `key` without its extension."""
    name = key.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _named(key: str) -> str:
    """Return the title for a text that has none."""
    return _cleaned(bare_name_of(key), LONGEST_TITLE_CHARS) or _encodable(key)


def _first_heading(lines: Sequence[str], language: str) -> tuple[int, str]:
    """Return the first heading of the first two levels, with its level; (0, "") without one."""
    found = ((level, title) for _, level, title in headings(list(lines), language))
    return next((each for each in found if each[0] <= _TITLE_LEVELS), (0, ""))


def _tags(values: Mapping[str, Value]) -> list[str]:
    """Return the tags without their `#`; a string is split at commas, else at spaces."""
    tags = []
    for key in _TAG_KEYS:
        value = values.get(key, "")
        if isinstance(value, str):
            value = value.split(",") if "," in value else value.split()
        tags += [tag.strip().removeprefix("#") for tag in value]
    return tags


def _first(values: Mapping[str, Value], keys: Sequence[str]) -> str:
    return next(iter(_all(values, keys)), "")


def _all(values: Mapping[str, Value], keys: Sequence[str]) -> list[str]:
    found = [values.get(key, "") for key in keys]
    return [
        text for value in found for text in ([value] if isinstance(value, str) else value) if text
    ]


def _date(text: str) -> str:
    """Return the first YYYY-MM-DD in `text` with a possible month and day; else an empty string."""
    match = _DATE.search(text)
    is_date = match is not None and 1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31
    return match[0] if match is not None and is_date else ""


def _texts(value: object) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _distinct(texts: Iterable[str], most: int, longest: int) -> tuple[str, ...]:
    """Return at most `most` different texts, cleaned."""
    cleaned = (_cleaned(text, longest) for text in texts)
    return tuple(dict.fromkeys(filter(None, cleaned)))[:most]


def _cleaned(text: str, longest: int) -> str:
    """Return `text` on one line, with single spaces, and at most `longest` characters long."""
    return _encodable(" ".join(text.split())[:longest].rstrip())


def _encodable(text: str) -> str:
    """Return `text` with `?` for lone surrogates, which YAML, JSON and file names may contain."""
    return text.encode("utf-8", "replace").decode("utf-8")

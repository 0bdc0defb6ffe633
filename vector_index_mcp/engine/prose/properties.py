"""What is known of a text as a whole: its title, tags, dates, and where its links lead. Pure."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

from vector_index_mcp.engine.chunk.headings import headings
from vector_index_mcp.engine.prose.fences import outside
from vector_index_mcp.engine.prose.front_matter import Value, split
from vector_index_mcp.engine.prose.links import links_in

_LONGEST_TITLE_CHARS = 300
_MOST_TAGS = 100
_LONGEST_TAG_CHARS = 100
_TITLE_LEVELS = 2
"""Headings of these levels can be a text's title; deeper ones are sections of something."""
_DATE = re.compile(r"(?<!\d)(\d{4})-(\d\d)-(\d\d)(?!\d)")
_TAG_KEYS = ("tags", "tag", "keywords", "categories")
_CREATED_KEYS = ("date", "created", "published")
_UPDATED_KEYS = ("updated", "modified", "lastmod", "last_modified")


@dataclass(frozen=True, slots=True)
class Properties:
    """What is known of a text as a whole."""

    title: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other titles, by which links may name it."""
    created: str = ""
    """A date, YYYY-MM-DD; empty if the text says none, nor its name."""
    updated: str = ""
    links: tuple[str, ...] = ()
    """As `links.links_in` finds them."""

    def dumped(self) -> str:
        """As JSON, as it is stored."""
        values = {name: value for name, value in asdict(self).items() if value}
        return json.dumps(values, ensure_ascii=False)

    @classmethod
    def loaded(cls, stored: str, key: str) -> Self:
        """What `dumped` has stored of the text `key`; what its name says if that is nothing."""
        try:
            values = json.loads(stored) if stored else {}
            lists = {name: tuple(map(str, values.get(name, ()))) for name in _LISTS}
            texts = {name: str(values.get(name, "")) for name in ("title", "created", "updated")}
        except (ValueError, TypeError, AttributeError):
            lists, texts = {}, {}
        return cls(**{**texts, "title": texts.get("title") or stem_of(key), **lists})  # type: ignore[arg-type]


_LISTS = ("tags", "aliases", "links")


def properties_of(key: str, text: str, language: str) -> tuple[Properties, int]:
    """What is known of a text, and on which line it begins behind its front matter.

    The title is that of the front matter, else the first heading of the first two levels, else
    the name of the file without its extension.

    Args:
        key: The file's.
        text: All of it.
        language: As `files.language` calls it.

    Returns:
        The line is 0-based.
    """
    lines = text.split("\n")
    values, first = split(lines) if language == "markdown" else ({}, 0)
    body = outside(lines[first:]) if language == "markdown" else lines
    title = _first(values, ("title",)) or _first_heading(body, language) or stem_of(key)
    properties = Properties(
        title=" ".join(title.split())[:_LONGEST_TITLE_CHARS],
        tags=tuple(dict.fromkeys(_tags(values))),
        aliases=tuple(_all(values, ("aliases", "alias")))[:_MOST_TAGS],
        created=_date(_first(values, _CREATED_KEYS)) or _date(stem_of(key)),
        updated=_date(_first(values, _UPDATED_KEYS)),
        links=links_in(body) if language == "markdown" else (),
    )
    return properties, first


def stem_of(key: str) -> str:
    """The name of the file `key` without its extension."""
    name = key.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def _first_heading(lines: Sequence[str], language: str) -> str:
    found = ((level, title) for _, level, title in headings(list(lines), language))
    return next((title for level, title in found if level <= _TITLE_LEVELS), "")


def _tags(values: Mapping[str, Value]) -> list[str]:
    """Tags without their `#`; a text of them is split at commas, or at spaces if it has none."""
    tags = []
    for key in _TAG_KEYS:
        value = values.get(key, "")
        if isinstance(value, str):
            value = value.split(",") if "," in value else value.split()
        tags += [tag.strip().removeprefix("#").strip()[:_LONGEST_TAG_CHARS] for tag in value]
    return [tag for tag in tags if tag][:_MOST_TAGS]


def _first(values: Mapping[str, Value], keys: Sequence[str]) -> str:
    return next(iter(_all(values, keys)), "")


def _all(values: Mapping[str, Value], keys: Sequence[str]) -> list[str]:
    found = [values.get(key, "") for key in keys]
    return [
        text for value in found for text in ([value] if isinstance(value, str) else value) if text
    ]


def _date(text: str) -> str:
    """The first date in `text`, if it is one of a calendar as far as its numbers go."""
    match = _DATE.search(text)
    is_date = match is not None and 1 <= int(match[2]) <= 12 and 1 <= int(match[3]) <= 31
    return match[0] if match is not None and is_date else ""

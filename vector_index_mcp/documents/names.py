"""Which document somebody means who names one, and which names are like it. Pure.

People and agents write a document's name as a search told it (`collection/path`), as a URI, as a
path on the disk, or as they remember it. What is nearest to the letter wins; of several that are
as near, the first.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import SCHEME, key_of
from vector_index_mcp.engine.spelling import composed

_LONGEST_CHARS = 4_096  # no system takes a longer path
_SHORTEST_END_CHARS = 4  # of a name within a name: ".md" is the end of nearly all
_FARTHEST = 5  # edits; beyond, names have nothing to do with each other
_QUOTES = " \t\n\"'`"
_LINE = re.compile(r":(\d{1,9})$", re.ASCII)
_NO_LETTERS = re.compile(r"[\W_]+")
_SUFFIX = re.compile(r"\.[a-z0-9]+$")


@dataclass(frozen=True, slots=True)
class Found:
    """A document that was asked for."""

    key: str
    line: int | None = None
    """The line to begin at, of `file.md:120`; None if none is named."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a name."""

    path: str
    line: int | None


def find(keys: Collection[str], asked: str, places: Places | None = None) -> Found | None:
    """The document that `asked` means; None if there is none.

    Args:
        keys: Of all documents; of several that match as well, the first counts.
        asked: A key or its end, a URI, or a path on the disk; with `:LINE` behind it or not.
        places: Where the collections lie; without it, paths on the disk mean nothing.
    """
    if len(asked) > _LONGEST_CHARS:
        return None
    readings = [*dict.fromkeys(_readings(asked, places or Places()))]
    for reading in readings:
        if reading.path in keys:
            return Found(reading.path, reading.line)
    if found := _nearest(keys, readings):
        return found
    bare = asked.strip(_QUOTES)
    if not bare.startswith(SCHEME):
        return None
    # What a URI names in one place may have moved to another, or its collection may have.
    name, _, path = _within(key_of(bare)).partition("/")
    of_collection = [key for key in keys if key.startswith(f"{name}/")]
    return _nearest(of_collection or keys, [*_with_and_without_line(path)])


def _readings(asked: str, places: Places) -> Iterator[_Reading]:
    """The ways to read a name, the most literal first."""
    bare = asked.strip(_QUOTES)
    plain = bare.removeprefix(SCHEME)
    as_given = [asked, bare] if bare == plain else [key_of(bare), plain]
    for each in (*as_given, plain.replace("\\", "/")):
        yield from _with_and_without_line(each)
    yield _Reading(places.key_at(bare), None)
    if line := _LINE.search(bare):
        yield _Reading(places.key_at(bare[: line.start()]), int(line[1]))


def _with_and_without_line(written: str) -> Iterator[_Reading]:
    if path := _within(written):
        yield _Reading(path, None)
    if line := _LINE.search(written):
        yield _Reading(_within(written[: line.start()]), int(line[1]))


def _within(path: str) -> str:
    """`path` without detours; empty if it leads out of where it begins."""
    if not path:
        return ""
    straight = posixpath.normpath(path).lstrip("/")
    return "" if straight == "." or straight.split("/")[0] == ".." else straight


def _nearest(keys: Collection[str], readings: Iterable[_Reading]) -> Found | None:
    names = [*keys]
    spelled = [composed(key) for key in names]
    wanted = [(composed(reading.path), reading.line) for reading in readings if reading.path]
    ranked = [
        (distance, number, at)
        for number, (path, _) in enumerate(wanted)
        for at, key in enumerate(spelled)
        if key.endswith(path) and (distance := _distance(key, path)) is not None
    ]
    if ranked:
        _, number, at = min(ranked)
        return Found(names[at], wanted[number][1])
    for path, line in wanted:
        if (place := _of_slug(spelled, slug_of(path))) is not None:
            return Found(names[place], line)
    return None


def _distance(key: str, path: str) -> int | None:
    """How far `path`, which is the end of `key`, is from being all of it; None if too far."""
    if len(key) == len(path):
        return 0
    if key[-len(path) - 1] == "/":
        return 1 if key.partition("/")[2] == path else 2
    return 3 if len(path) >= _SHORTEST_END_CHARS else None


def _of_slug(spelled: Iterable[str], wanted: str) -> int | None:
    """Which of `spelled` has the slug `wanted`, or one that ends with it; None if none has."""
    words = set(_NO_LETTERS.sub(" ", wanted).split())
    if not words:
        return None
    name = wanted.rpartition("/")[2]
    for at, spelling in enumerate(spelled):
        lower = spelling.lower()
        # Whole slugs take 5 µs each: they are made of few.
        if all(word in lower for word in words) and _slug_of_name(lower) == name:
            slug = slug_of(lower)
            if slug == wanted or slug.endswith(f"/{wanted}"):
                return at
    return None


def slug_of(path: str) -> str:
    """`path` as the program whose collections these are keeps it, and once told it to its users.

    In lower case, with a hyphen for whatever is no letter and no digit; folders and the suffix of
    the name stay.
    """
    lower = composed(path).lower()
    folders = map(_slug_of_part, lower.split("/")[:-1])
    return "/".join(filter(None, [*folders, _slug_of_name(lower)]))


def _slug_of_name(path: str) -> str:
    name = path[path.rfind("/") + 1 :]
    suffix = _SUFFIX.search(name)
    end = suffix[0] if suffix else ""
    return _slug_of_part(name.removesuffix(end)) + end


def _slug_of_part(part: str) -> str:
    return _NO_LETTERS.sub("-", part).strip("-")


def similar(keys: Iterable[str], asked: str, most: int = 3) -> list[str]:
    """The paths in their collections that are most like `asked`, the nearest first.

    Paths are compared without their collection, and names without their folders if `asked` has
    none. At most five edits lie between the two, and fewer than `asked` has letters.
    """
    if len(asked) > _LONGEST_CHARS:
        return []
    bare = asked.strip(_QUOTES)
    if bare.startswith(SCHEME):
        bare = key_of(bare).partition("/")[2]
    wanted = composed(_LINE.sub("", bare)).lower()
    paths = [key.partition("/")[2] for key in keys]
    spelled = [composed(path).lower() for path in paths]
    near = _distances(spelled, wanted)
    if "/" not in wanted:
        names = [path.rpartition("/")[2] for path in spelled]
        for at, distance in _distances(names, wanted).items():
            near[at] = min(distance, near.get(at, distance))
    nearest = sorted(near, key=lambda at: (near[at], at))
    return [*dict.fromkeys(paths[at] for at in nearest)][:most]


def _distances(texts: list[str], wanted: str) -> dict[int, int]:
    """How many edits lie between `wanted` and those of `texts` that are near, by position."""
    farthest = min(_FARTHEST, len(wanted) - 1)
    if farthest < 0:
        return {}
    found = process.extract(
        wanted, texts, scorer=Levenshtein.distance, score_cutoff=farthest, limit=None
    )
    return {at: int(distance) for _, distance, at in found}

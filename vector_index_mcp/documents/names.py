"""Finds the document that a name means, and similar names. Pure.

People and agents write a document's name as a search returned it (`collection/path`), as a URI, as
a path on disk, or as they remember it. The most literal match wins; of equal matches, the first.
"""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from vector_index_mcp.documents.places import Places
from vector_index_mcp.documents.uris import SCHEME, key_of, without_quotes
from vector_index_mcp.engine.text.spelling import composed

_LONGEST_CHARS = 4_096  # no system allows a longer path
_SHORTEST_END_CHARS = 4  # an end of a file's name must be as long: nearly all end with ".md"
_FARTHEST = 5  # names with more edits between them are unrelated
_LINE = re.compile(r":(\d{1,9})$", re.ASCII)
_NO_LETTERS = re.compile(r"[\W_]+")
_SUFFIX = re.compile(r"\.[a-z0-9]+$")


@dataclass(frozen=True, slots=True)
class Found:
    """The document that a name means."""

    key: str
    line: int | None = None
    """The line to begin at, 120 for `file.md:120`; None if the name has none."""
    others: tuple[str, ...] = ()
    """The keys of the other documents that the name means as well."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """One way to read a name: as a path, with or without a line."""

    path: str
    line: int | None


def find(keys: Collection[str], asked: str, places: Places | None = None) -> Found | None:
    """Return the document that `asked` means; None if there is none.

    Args:
        keys: The keys of all documents; of several that match equally well, the first counts.
        asked: A key or its end, a URI, or a path on disk; optionally with `:LINE`.
        places: The folders of the collections; without them, paths on disk mean nothing.
    """
    if len(asked) > _LONGEST_CHARS:
        return None
    readings = [*dict.fromkeys(_readings(asked, places or Places()))]
    for reading in readings:
        if reading.path in keys:
            return Found(reading.path, reading.line)
    if found := _nearest(keys, readings):
        return found
    bare = without_quotes(asked)
    if not bare.startswith(SCHEME):
        return None
    # The document of a URI may have moved within its collection; or the collection was renamed.
    name, _, path = _within(key_of(bare)).partition("/")
    of_collection = [key for key in keys if key.startswith(f"{name}/")]
    return _nearest(of_collection or keys, [*_with_and_without_line(path)])


def _readings(asked: str, places: Places) -> Iterator[_Reading]:
    """Yield the ways to read a name, the most literal first."""
    bare = without_quotes(asked)
    plain = bare.removeprefix(SCHEME)
    as_given = [asked, bare] if bare == plain else [key_of(bare), plain]
    for each in (*as_given, plain.replace("\\", "/")):
        yield from _with_and_without_line(each)
    yield _Reading(places.key_at(bare), None)
    named, line = parted(bare)
    if line is not None:
        yield _Reading(places.key_at(named), line)


def parted(written: str) -> tuple[str, int | None]:
    """Return a name without its `:LINE`, and the line; None if it has none."""
    line = _LINE.search(written)
    return (written[: line.start()], int(line[1])) if line else (written, None)


def _with_and_without_line(written: str) -> Iterator[_Reading]:
    if path := _within(written):
        yield _Reading(path, None)
    named, line = parted(written)
    if line is not None:
        yield _Reading(_within(named), line)


def _within(path: str) -> str:
    """Return `path` without `.` and `..`; empty if it leads out of its beginning."""
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
        ranked.sort()
        distance, number, at = ranked[0]
        others = (names[place] for *match, place in ranked[1:] if match == [distance, number])
        return Found(names[at], wanted[number][1], tuple(others))
    for path, line in wanted:
        if (place := _of_slug(spelled, slug_of(path))) is not None:
            return Found(names[place], line)
    return None


def _distance(key: str, path: str) -> int | None:
    """Return how much of `key` its end `path` leaves out, from 0 (nothing) to 3.

    Returns None if `path` is too short to mean `key`.
    """
    if len(key) == len(path):
        return 0
    if key[-len(path) - 1] == "/":
        return 1 if key.partition("/")[2] == path else 2
    return 3 if len(path) >= _SHORTEST_END_CHARS else None


def _of_slug(spelled: Iterable[str], wanted: str) -> int | None:
    """Return the position of the name whose slug is `wanted` or ends with it; None if none is."""
    words = set(_NO_LETTERS.sub(" ", wanted).split())
    if not words:
        return None
    name = wanted.rpartition("/")[2]
    for at, spelling in enumerate(spelled):
        lower = spelling.lower()
        # A whole slug takes 5 µs, so we make only those of names that pass these cheap tests.
        if all(word in lower for word in words) and _slug_of_name(lower) == name:
            slug = slug_of(lower)
            if slug == wanted or slug.endswith(f"/{wanted}"):
                return at
    return None


def slug_of(path: str) -> str:
    """Return `path` as the original program `qmd` writes it, which its users may still use.

    It is in lower case, with a hyphen for everything but letters and digits; slashes and the
    extension stay.
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
    """Return the `most` paths in collections that are most similar to `asked`, nearest first.

    Paths are compared without their collection; if `asked` has no folder, also without theirs. A
    similar path differs by at most five edits, and by fewer than `asked` has characters.
    """
    if len(asked) > _LONGEST_CHARS:
        return []
    bare = without_quotes(asked)
    if bare.startswith(SCHEME):
        bare = key_of(bare).partition("/")[2]
    wanted = composed(parted(bare)[0]).lower()
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
    """Return the number of edits between `wanted` and each near text, by the text's position."""
    farthest = min(_FARTHEST, len(wanted) - 1)
    if farthest < 0:
        return {}
    found = process.extract(
        wanted, texts, scorer=Levenshtein.distance, score_cutoff=farthest, limit=None
    )
    return {at: int(distance) for _, distance, at in found}

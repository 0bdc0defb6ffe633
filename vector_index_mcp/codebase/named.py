"""Answers a query that is nothing but a file's path, perhaps with a line: with that place.

All chunks of a file have the words of its path, so a search could only prefer the shortest.
"""

import math
import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher, get_close_matches
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from vector_index_mcp.codebase.lead import led
from vector_index_mcp.engine.spelling import composed
from vector_index_mcp.engine.types import Hit, StoredChunk

if TYPE_CHECKING:  # imports LanceDB, which printing results should not wait for
    from vector_index_mcp.engine.store import Store

_LINES = re.compile(r"(?::(\d{1,18})(?:[:-]\d{1,18}){0,2}|#L(\d{1,18})(?:-L?\d{1,18})?)$")
_BEGINNING = re.compile(r"(?:[A-Za-z]:)?(?:\.{0,2}/)*")  # of a path that begins elsewhere
_FILE = "file://"
_QUOTES = "\"'`"
_LONGEST_CHARS = 4_096
_LIKELY = 0.95  # whoever writes a path means that file, or one of those with that name
_MOST_FILES = 3
_MOST_OF_FOLDER = 12  # of which three are shown, those that have text
_MOST_COMPARED, _MOST_NAMES, _MOST_PATHS = 5_000, 20, 200  # names compared, of these, and paths
_ALIKE = 0.8  # of 0 to 1, as difflib measures it: one letter of five may be wrong
_NAME = "path"  # in explanations


class Place(NamedTuple):
    """A path as somebody typed it, with slashes and without its root, and a line of it."""

    path: str
    line: int
    """The line; 0 if none was typed."""

    def is_in(self, key: str) -> bool:
        """Whether this may be the path of the file `key`, from any folder above it on."""
        return f"/{composed(key)}".endswith(f"/{self.path}")


def place_of(text: str) -> Place:
    """Return the place that a query names, if it is a path: the caller knows which files exist."""
    if len(text) > _LONGEST_CHARS:
        return Place("", 0)
    word = text.strip().strip(_QUOTES)
    lines = _LINES.search(word)
    path = word[: lines.start()] if lines else word
    path = unquote(path.removeprefix(_FILE)) if path.startswith(_FILE) else path
    path = path.replace("\\", "/")
    begin = _BEGINNING.match(path)
    path = composed(path[begin.end() :] if begin else path)
    return Place(path, int(lines[1] or lines[2]) if lines else 0)


def line_in(place: Place, key: str, first: int, last: int) -> int | None:
    """Return which of the lines `first` to `last` of a file is the place's, from 0; or None."""
    is_here = first <= place.line <= last and place.is_in(key)
    return place.line - first if is_here else None


def may_be_path(place: Place) -> bool:
    """Return whether a place may be one.

    A bare name without an extension is a path only if a line was typed with it: else it is a word
    as well.
    """
    return bool(place.path) and ("/" in place.path or "." in place.path or place.line > 0)


def files_at(place: Place, keys: Iterable[str]) -> list[str]:
    """Return the keys of the files that a place may mean, the best first; [] for no path.

    The path may begin below the project's folder, or above it.
    """
    if place.path.endswith("/") or not may_be_path(place):
        return []
    known = list(keys)
    if whole := [key for key in known if composed(key) == place.path]:
        return whole
    if inside := [key for key in known if place.is_in(key)]:
        return sorted(inside, key=lambda key: (key.count("/"), key))
    around = [k for k in known if "/" in k and f"/{place.path}".endswith(f"/{composed(k)}")]
    return [max(around, key=len)] if around else []


def files_in(place: Place, keys: Iterable[str]) -> list[str]:
    """Return the keys of the first files in the folder that a place names, the topmost first.

    A bare name is a folder only if a slash was typed behind it: else it is a word as well.
    """
    if "/" not in place.path or place.line:
        return []
    folder = f"/{place.path.rstrip('/')}/"
    inside = (key for key in keys if folder in f"/{composed(key)}")
    return sorted(inside, key=lambda key: (key.count("/"), key))[:_MOST_OF_FOLDER]


def alike(place: Place, keys: Iterable[str]) -> str:
    """Return the file whose name and path are spelled most like the place's; empty if none are.

    Only a path with an extension that some file has is taken for a slip of the hand.
    """
    name = place.path.rpartition("/")[2]
    ending = PurePosixPath(name).suffix
    if not ending or any(map(str.isspace, place.path)):
        return ""
    of_name: dict[str, list[str]] = {}
    for key in sorted((key for key in keys if key.endswith(ending)), key=lambda k: k.count("/")):
        of_name.setdefault(key.rpartition("/")[2], []).append(key)
    names = get_close_matches(name, [*of_name][:_MOST_COMPARED], _MOST_NAMES, _ALIKE)
    if "/" not in place.path:
        return of_name[names[0]][0] if names else ""
    near = [key for each in names for key in of_name[each]][:_MOST_PATHS]
    return max(near, key=lambda key: SequenceMatcher(None, place.path, key).ratio(), default="")


async def opened(
    place: Place, keys: Sequence[str], hits: Sequence[Hit], limit: int, store: "Store"
) -> list[Hit] | None:
    """Return `hits` behind the chunks at a place of the files `keys`.

    The chunk at the place is that of its line, or the first. Files that end before the line are
    left out, unless all do, and so are those without text.

    Returns:
        At most `limit` hits; None if no file has text.

    Raises:
        StoreError: If the index cannot be read.
    """
    found = await store.rows(keys)
    files = [sorted((c for c, _ in found[key]), key=_index_of) for key in keys if found.get(key)]
    if not files:
        return None
    files = [chunks for chunks in files if place.line <= chunks[-1].end_line] or files
    files = files[:_MOST_FILES]
    shown = list(hits)
    for chunks in reversed(files):
        first = next((chunk for chunk in chunks if place.line <= chunk.end_line), chunks[-1])
        behind = [chunk for chunk in chunks if chunk.chunk_index > first.chunk_index]
        logit = _logit(_LIKELY / len(files))
        shown = led(first, behind, shown, limit, name=_NAME, logit=logit)
    return shown


def _index_of(chunk: StoredChunk) -> int:
    return chunk.chunk_index


def _logit(likely: float) -> float:
    return math.log(likely / (1 - likely))

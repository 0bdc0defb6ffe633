"""Places in files as people and programs write them, and the files that they mean. Pure."""

import posixpath
import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from vector_index_mcp.engine.text.spelling import composed

_LINES = re.compile(r"(?::(\d{1,18})(?:[:-]\d{1,18}){0,2}|#L(\d{1,18})(?:-L?\d{1,18})?)$")
_BEGINNING = re.compile(r"(?:[A-Za-z]:)?(?:\.{0,2}/)*")  # of a path that begins elsewhere
_FILE = "file://"
_DOCUMENTS = frozenset(
    "AUTHORS BUGS CHANGELOG CHANGES CODEOWNERS CONTRIBUTING COPYING HISTORY INSTALL LICENCE "
    "LICENSE MAINTAINERS NEWS NOTICE README SECURITY THANKS TODO UPGRADING VERSION".split()
)
"""Names of files that often have an extension."""
_PLAIN_FILES = frozenset(
    "Brewfile Caddyfile ChangeLog Containerfile Dockerfile Doxyfile Earthfile Fastfile Gemfile "
    "Jenkinsfile Justfile Kconfig Makefile Pipfile Podfile Procfile Rakefile Snakefile Tiltfile "
    "Vagrantfile".split()
)
_WORKING_FOLDERS = frozenset("app build code src srv work workspace".split())  # of containers
_QUOTES = "\"'`"
_LONGEST_CHARS = 4_096
_MOST_OF_FOLDER = 12  # of which three are shown, those that have text
_MOST_COMPARED, _MOST_NAMES, _MOST_PATHS = 5_000, 20, 200  # names compared, of these, and paths
_ALIKE = 0.8  # of 0 to 1, as difflib measures it: one letter of five may be wrong


class Place(NamedTuple):
    """A path as somebody typed it, with slashes and without its root, and a line of it."""

    path: str
    line: int
    """The line; 0 if none was typed."""
    symbol: str = ""
    """What the file defines there; empty if nothing was typed."""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def is_in(self, key: str) -> bool:
        """Whether this may be the path of the file `key`, from any folder below the project on."""
        return f"/{composed(key)}".endswith(f"/{self.path}")

    def may_be(self, key: str) -> bool:
        """Whether this may be the path of the file `key`, from any folder above or below on."""
        return self.is_in(key) or f"/{self.path}".endswith(f"/{composed(key)}")

    def below(self, root: Path) -> "Place":
        """Return this place with a path from `root` on, if it lies in there."""
        inside = self.path.removeprefix(f"{_rootless(root.as_posix())}/")
        return self._replace(path=inside)


class Spot(NamedTuple):
    """A place in a file of the project."""

    key: str
    line: int
    """The line; 0 for the whole file."""
    symbol: str = ""
    """What the file defines there; empty for a line, or the whole file."""


def place_of(text: str) -> Place:
    """Return the place that a query names, if it is a path: the caller knows which files exist."""
    if len(text) > _LONGEST_CHARS or "\n" in text:
        return Place("", 0)
    word = text.strip().strip(_QUOTES)
    lines = _LINES.search(word)
    path = word[: lines.start()] if lines else word
    return place_at(path, int(lines[1] or lines[2]) if lines else 0)


def without_line(path: str) -> str:
    """Return a path without the line that is written behind it, if one is."""
    return _LINES.sub("", path)


def place_at(path: str, line: int, symbol: str = "") -> Place:
    """Return the place of a line, 0 for none, and a path or an address of a file."""
    path = unquote(path.removeprefix(_FILE)) if path.startswith(_FILE) else path
    return Place(_rootless(path.replace("\\", "/")), line, symbol)


def _rootless(path: str) -> str:
    begin = _BEGINNING.match(path)
    below = path[begin.end() :] if begin else path
    return composed(posixpath.normpath(below) if "/." in below else below)


def may_be_path(place: Place) -> bool:
    """Return whether a place may be one.

    A bare name without an extension is a path only if a line was typed with it, or if it is written
    as names of files are (`Makefile`, `LICENSE`): else it is a word as well.
    """
    path = place.path
    return bool(path) and ("/" in path or "." in path or place.line > 0 or is_written_as_file(path))


def is_written_as_file(name: str) -> bool:
    """Return whether a word is a usual name of files without an extension; it may be a constant."""
    return name in _PLAIN_FILES or name in _DOCUMENTS


def files_at(place: Place, keys: Iterable[str], project: str) -> list[str]:
    """Return the keys of the files that a place may mean, the best first; [] for no path.

    The path may begin below the project's folder, whose name is `project`, or above it.
    """
    if place.path.endswith("/") or not may_be_path(place):
        return []
    known = list(keys)
    if whole := [key for key in known if composed(key) == place.path]:
        return whole
    if inside := [key for key in known if place.is_in(key)]:
        return sorted(inside, key=lambda key: (key.count("/"), key))
    if around := [key for key in known if _ends_with(place, key, project)]:
        return [max(around, key=len)]
    if not is_written_as_file(place.path):
        return []
    longer = [key for key in known if place.is_in(key.rpartition(".")[0])]
    topmost = min((key.count("/") for key in longer), default=0)  # the project's own `README.md`
    return sorted(key for key in longer if key.count("/") == topmost)


def _ends_with(place: Place, key: str, project: str) -> bool:
    """Whether the place's path ends with that of the file.

    A name alone is too little: each project has a `setup.py` or a `package.json`.
    """
    if "/" in key:
        return f"/{place.path}".endswith(f"/{composed(key)}")
    *folders, name = place.path.split("/")
    here = {project, *_WORKING_FOLDERS}
    return bool(folders) and folders[-1] in here and name == composed(key)


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

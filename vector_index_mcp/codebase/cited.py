"""Finds the places that a message cites: a stack frame, a compiler's error, a line of grep. Pure.

Whoever pastes such a message wants to see these places. The words around them are often those of a
runtime or a compiler, of which the project has none.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from vector_index_mcp.codebase.places import (
    Place,
    Spot,
    files_at,
    is_written_as_file,
    place_at,
    place_of,
)
from vector_index_mcp.engine.text.spelling import composed

Readings = tuple[Place, ...]
"""What one part of a message may mean, the likeliest first."""

_COLOUR = re.compile(r"\x1b\[[\d;]{0,20}m")
_NUMBER = r"(\d{1,9})(?![\w/])"  # in `http://localhost:3000/src/app.js:12`, 3000 is no line
# `File "a.py", line 12`, and of Erlang `{file,"a.erl"},{line,12}`.
_QUOTED = rf'"([^"\n]{{1,4096}})"(?:, lines? |\}},\s{{0,3}}\{{line,){_NUMBER}'
_JVM = rf"(?<![\w$.<>])([\w$.<>]{{1,1024}})\(([\w$-]{{1,256}}\.\w{{1,16}}):{_NUMBER}"
# The folders of some frameworks are in brackets: `app/(shop)/page.tsx`. Where one ends, no path may
# begin, or a text of nothing else would be read again from each of them.
_PATH = (
    r"(?<![^\s\"'`(<>|,;:*?=])"
    r"(?P<path>(?:[A-Za-z]:[\\/])?(?:[^\s\"'`()<>|,;:*?=]|\([\w.@-]{1,50}\)/){1,4096})"
)
# `a.c:12`, `a.ts(12,5)`, `a.hs:(12,5)`, `A.java:[12,5]`, `(a.c.12)`, `A.cs:line 12`,
# `a.sh: line 12`, `a.php on line 12`, `a.sh: 12: `, `a.py|12 col 5|`, `a.py#L12`, `a.kt: (12, 5)`,
# `a.py,line=12`, `a.scss 12:5`, `a.ts (12:5)`, `a.js: Unexpected token (12:5)`, and of ESLint the
# path above its lines.
_LINE = (
    r"(?::[\[(]?|: ?(?:line |Zeile |ligne |\()|: (?=\d{1,9}:)|\(|\.(?=\d{1,9}\))"
    r"|,? (?:on |at )?lines? |,line=|\|(?=\d{1,9} col)|#L"
    r"|\s{1,8}\(?(?=\d{1,9}:\d{1,9}(?:[-)\s]|$))"
    r"|: [^\n()/\\]{1,200} \((?=\d{1,9}:\d{1,9}\)(?:\n|$)))"
    rf"{_NUMBER}"
)
_BEHIND_PATH = r"(?:\?[\w=&.%-]{0,200})?[\"'`]?"  # `App.tsx?t=1712:17:11`, or a quote around it
_TEST = r"::(?:\w{1,200}::){0,5}(\w{1,200})"  # `tests/test_a.py::TestA::test_b`, as pytest has it
_CITED = re.compile(f"{_QUOTED}|{_JVM}|{_PATH}(?:{_BEHIND_PATH}{_LINE}|{_TEST})")
# Traces of Python and of pytest (`a.py:12: in f`) end with the innermost call, others begin so.
_LAST_IS_INNERMOST = re.compile(
    r"most recent call last|:\d{1,9}: in (?!function\b|local\b|method\b|field\b|upvalue\b|main )\w",
    re.IGNORECASE,
)
_MARK = re.compile(r"^##\[\w{1,20}\]")  # of pipelines: `##[error]src/app.ts(12,5)`
_DART = "package:"  # in whose folder `lib` the path begins
_IMPORTED = "imported from "
_REQUIRE_STACK = "Require stack:"
_REQUIRED = re.compile(r"^- ([^\n]{1,4096})$", re.MULTILINE)
_MOST = 500
_LONGEST_BEFORE = 200  # characters of a line that may belong to a path with spaces
# Where systems keep what others have written.
_LIBRARIES = re.compile(
    r"(?:^|/)(?:node_modules|(?:site|dist)-packages|usr/(?:lib|lib64|include|local)|rustc"
    r"|\.(?:cargo|rustup|m2|gradle|nuget|pyenv|nvm|npm)|pkg/mod|gems|vendor|nix/store|homebrew"
    r"|hostedtoolcache|(?:program files|sdk)/go[\d.]*|lib/python[\d.]+"
    r"|(?:python\d+|anaconda\d?|miniconda\d?)/lib)/",
    re.IGNORECASE,
)
_PACKAGES = re.compile(r"(?:node_modules|(?:site|dist)-packages)/")
_RELEASE = re.compile(r"([^@]+?)[@-]v?\d+\.\d.*", re.DOTALL)  # `clap-4.4.0`


def cited(text: str) -> list[Readings]:
    """Return the places that a message cites, in its order.

    Of a trace that ends with the innermost call, that call is the first.
    """
    text = _COLOUR.sub("", text)
    readings = [_readings(text, found) for found in _CITED.finditer(text)]
    readings += [(place_at(path, 0),) for path in _importers(text)]
    places = [*dict.fromkeys(filter(None, readings))]
    return (places[::-1] if _LAST_IS_INNERMOST.search(text) else places)[:_MOST]


def _importers(text: str) -> list[str]:
    """Return the files that ask for a module which Node does not find: it tells no lines."""
    stack = _REQUIRED.findall(text.partition(_REQUIRE_STACK)[2])
    importing = [line for line in text.splitlines() if _IMPORTED in line]
    imported = [line.rpartition(_IMPORTED)[2] for line in importing]
    return [path.strip().strip("'\"") for path in (*imported, *stack)]


def places_in(text: str) -> list[Place]:
    """Return all places that a query may name: the one that it is, and those that it cites."""
    return [place_of(text), *(place for readings in cited(text) for place in readings)]


def line_meant(places: Iterable[Place], key: str, first: int, last: int) -> int | None:
    """Return which of the lines `first` to `last` of a file a place names, from 0; or None."""
    here = (p.line - first for p in places if first <= p.line <= last and p.may_be(key))
    return next(here, None)


def _readings(text: str, found: re.Match[str]) -> Readings:
    quoted, quoted_line, method, class_file, class_line, path, line, test = found.groups()
    if quoted:
        return (place_at(quoted, int(quoted_line)),)
    if class_file:
        return _of_class(method, class_file, int(class_line))
    path = _MARK.sub("", path)
    # `[a.c:12]` has a bracket around it, `pages/[id].tsx:12` in it.
    bare = path.lstrip("[{") if path.count("[") != path.count("]") else path
    place = place_at(bare, int(line or 0), test or "")
    if text.endswith(_DART, 0, found.start("path")):
        return (place._replace(path=f"lib/{place.path.partition('/')[2]}"),)
    if not ("/" in place.path or "." in place.path or is_written_as_file(place.path)):
        return ()  # `retry(3)` is a call
    return (*_with_spaces(text, *found.span("path"), place), place)


def _with_spaces(text: str, start: int, end: int, place: Place) -> Readings:
    """Return the whole line up to the end of a path, if that may be a path with spaces."""
    begin = max(text.rfind("\n", 0, start) + 1, start - _LONGEST_BEFORE)
    before = text[begin:start].lstrip()
    if not before or before[-1] != " ":
        return ()
    return (place_at(before + text[start:end], place.line, place.symbol),)


def _of_class(method: str, file: str, line: int) -> Readings:
    """Return the file of a class in the folders of its package.

    In Kotlin and Scala, the first of these folders are often left out.
    """
    package = method.split(".")[:-2]
    left_out = 1 if file.endswith(".java") else len(package) or 1
    return tuple(Place("/".join([*package[first:], file]), line) for first in range(left_out))


def spots_of(places: Sequence[Readings], keys: Sequence[str], root: Path) -> list[Spot]:
    """Return the lines of files that these places mean, without those in other projects.

    Args:
        places: The places.
        keys: The files of the project.
        root: The project's folder.
    """
    names = {place.name for readings in places for place in readings}
    of_name: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        if (name := composed(key.rpartition("/")[2])) in names:
            of_name[name].append(key)
    return list(dict.fromkeys(_spots(places, of_name, root)))


def _spots(
    places: Iterable[Readings], of_name: Mapping[str, Sequence[str]], root: Path
) -> Iterator[Spot]:
    for readings in places:
        for place in readings:
            if files := _files_of(place, of_name.get(place.name, ()), root):
                yield from (Spot(file, place.line, place.symbol) for file in files)
                break


def _files_of(place: Place, keys: Sequence[str], root: Path) -> list[str]:
    project, inside = root.name, place.below(root)
    library = _LIBRARIES.search(place.path) if inside == place else None
    if library is None:
        return files_at(inside, keys, project)
    if packages := [*_PACKAGES.finditer(place.path)]:
        return _of_package(place.path[packages[-1].end() :].split("/"), keys, project)
    if package := _released(place.path[library.end() :].split("/")):
        return _of_package(package, keys, project)
    return [key for key in keys if library[0] in f"/{key}" and place.may_be(key)]


def _released(path: Sequence[str]) -> list[str]:
    """Return a path from a package on, without its release; empty if it has no such folder."""
    for at, folder in enumerate(path[:-1], start=1):
        if release := _RELEASE.fullmatch(folder):
            return [release[1], *path[at:]]
    return []


def _of_package(path: Sequence[str], keys: Sequence[str], project: str) -> list[str]:
    """Return the file of the project that is installed at `path`, if it is that package.

    `flask/app.py` is `src/flask/app.py`, and `knex/lib/client.js` is `lib/client.js` of `knex`.
    """
    if whole := [key for key in keys if Place("/".join(path), 0).is_in(key)]:
        return sorted(whole, key=lambda key: key.count("/"))
    parts = 2 if path[0].startswith("@") else 1  # `@babel/core`
    name, inside = path[:parts][-1], path[parts:]
    is_this = project.casefold().startswith(name.casefold())  # `knex-3.1.0` as well
    return [key for key in keys if is_this and composed(key) == "/".join(inside)]

"""Finds the places that a message cites: a stack frame, a compiler's error, a line of grep. Pure.

Whoever pastes such a message wants to see these places. The words around them are often those of a
runtime or a compiler, of which the project has none.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from vector_index_mcp.codebase.named import Place, Spot, files_at, place_at, place_of
from vector_index_mcp.engine.spelling import composed

Cited = tuple[Place, ...]
"""What one part of a message may mean, the likeliest first."""

_NUMBER = r"(\d{1,9})(?![\w/])"  # in `http://localhost:3000/src/app.js:12`, 3000 is no line
_PYTHON = rf'"([^"\n]{{1,4096}})", line {_NUMBER}'
_JVM = rf"(?<![\w$.<>])([\w$.<>]{{1,1024}})\(([\w$-]{{1,256}}\.\w{{1,16}}):{_NUMBER}"
# `a.c:12`, `a.ts(12,5)`, `(a.c.12)`, `A.cs:line 12`, `a.php on line 12`, `a.sh: line 12`.
_LINE = rf"(?::(?: ?line )?|\(|\.(?=\d{{1,9}}\))|,? (?:on )?line ){_NUMBER}"
_PATH = r"(?<![^\s\"'`()<>|,;:*?])((?:[A-Za-z]:[\\/])?[^\s\"'`()<>|,;:*?]{1,4096})"
_TEST = r"::(?:\w{1,200}::){0,5}(\w{1,200})"  # `tests/test_a.py::TestA::test_b`, as pytest has it
_CITED = re.compile(f"{_PYTHON}|{_JVM}|{_PATH}(?:{_LINE}|{_TEST})")
_LAST_IS_INNERMOST = re.compile(r"most recent call last", re.IGNORECASE)
_OF_RUNTIMES = ("java.", "javax.", "jdk.", "kotlin.", "scala.", "sun.")
_INSTALLED = frozenset({"node_modules", "site-packages", "dist-packages"})
_TELLING_FOLDERS = 3  # of a path that hardly two packages have, with its name
_MOST = 20  # of a long trace, from its innermost call


def cited(text: str) -> list[Cited]:
    """Return the places that a message cites, the innermost call first."""
    found = dict.fromkeys(_readings(*each.groups()) for each in _CITED.finditer(text))
    places = [place for place in found if place]
    return (places[::-1] if _LAST_IS_INNERMOST.search(text) else places)[:_MOST]


def places_in(text: str) -> list[Place]:
    """Return all places that a query may name: the one that it is, and those that it cites."""
    return [place_of(text), *(place for readings in cited(text) for place in readings)]


def line_meant(places: Iterable[Place], key: str, first: int, last: int) -> int | None:
    """Return which of the lines `first` to `last` of a file a place names, from 0; or None."""
    here = (p.line - first for p in places if first <= p.line <= last and p.may_be(key))
    return next(here, None)


def _readings(
    python: str,
    python_line: str,
    method: str,
    jvm: str,
    jvm_line: str,
    path: str,
    line: str,
    test: str,
) -> Cited:
    if python:
        return (place_at(python, int(python_line)),)
    if jvm:
        return _of_class(method, jvm, int(jvm_line))
    # `[a.c:12]` has a bracket around it, `pages/[id].tsx:12` in it.
    bare = path.lstrip("[{") if path.count("[") != path.count("]") else path
    place = place_at(bare, int(line or 0), test or "")
    return (place,) if place.path else ()


def _of_class(method: str, file: str, line: int) -> Cited:
    """Return the file of a class in the folder of its package, and anywhere.

    The folders of Kotlin and Scala may leave out the beginning of a package's name.
    """
    package = method.split(".")[:-2]
    whole = Place("/".join([*package, file]), line)
    bare = () if method.startswith(_OF_RUNTIMES) or not package else (Place(file, line),)
    return whole, *bare


def spots_of(places: Iterable[Cited], keys: Sequence[str], project: str) -> list[Spot]:
    """Return the lines of files that these places mean, without those in other projects.

    Args:
        places: The places.
        keys: The files of the project.
        project: The name of the project's folder.
    """
    read = [list(readings) for readings in places]
    names = {place.name for readings in read for place in readings}
    of_name: defaultdict[str, list[str]] = defaultdict(list)
    for key in keys:
        if (name := composed(key.rpartition("/")[2])) in names:
            of_name[name].append(key)
    return list(dict.fromkeys(_spots(read, of_name, project)))


def _spots(
    places: Iterable[Iterable[Place]], of_name: dict[str, list[str]], project: str
) -> Iterator[Spot]:
    for readings in places:
        for place in readings:
            if files := _meant(place, of_name.get(place.name, ()), project):
                yield Spot(files[0], place.line, place.symbol)
                break


def _meant(place: Place, keys: Sequence[str], project: str) -> list[str]:
    folders = place.path.split("/")
    at = max((number for number, name in enumerate(folders) if name in _INSTALLED), default=-1)
    return (
        _of_package(folders[at + 1 :], keys, project) if at >= 0 else files_at(place, keys, project)
    )


def _of_package(path: Sequence[str], keys: Sequence[str], project: str) -> list[str]:
    """Return the file of the project that is installed at `path`, if it is that package.

    `flask/app.py` is `src/flask/app.py`, and `knex/lib/client.js` is `lib/client.js` of `knex`.
    """
    if whole := [key for key in keys if Place("/".join(path), 0).is_in(key)]:
        return sorted(whole, key=lambda key: key.count("/"))
    scope = 1 + path[0].startswith("@")  # `@babel/core`
    name, inside = path[scope - 1], path[scope:]
    is_this = project.casefold().startswith(name.casefold()) or len(inside) >= _TELLING_FOLDERS
    return [key for key in keys if is_this and composed(key) == "/".join(inside)]

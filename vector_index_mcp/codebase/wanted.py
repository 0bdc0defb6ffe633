"""What somebody wants searched: a query, and the files it is limited to.

A path that exists is that path, whatever its names are made of: `pages/[id].tsx` is a file. Only
what names nothing is read as a glob, and of the ways to read it the one that matches a file.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.codebase.limits import (
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
)
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.search import search
from vector_index_mcp.engine.spelling import composed
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, Vector
from vector_index_mcp.engine.words import MAX_WORD_CHARS, has_words
from vector_index_mcp.errors import QueryError, StoreError
from vector_index_mcp.files import beneath
from vector_index_mcp.files.glob import folder_of, keys_meant, regex_of, shown
from vector_index_mcp.files.language import languages_meant_by
from vector_index_mcp.indexing.ledger import INDEXED, Ledger

# Which characters of a glob may be meant literally; frameworks name files with each of them.
_READINGS = ("[]{}", "[]", "{}")


def _checked_query(query: str) -> Query:
    """What is to be looked for.

    Raises:
        QueryError: If that is nothing, or too much.
    """
    text = query.encode("utf-8", "replace").decode().strip()  # a terminal passes on any bytes
    if not text:
        raise QueryError("the query is empty; say in words or identifiers what to look for")
    _check_length("query", text, LONGEST_QUERY_CHARS)
    if not has_words(text):
        raise QueryError(
            "the query has no word that could be looked for, only punctuation or what has more "
            f"than {MAX_WORD_CHARS} characters; say in words what it is about, or use grep"
        )
    return Query(text)


def _languages_of(language: str) -> tuple[str, ...]:
    """The languages that somebody asked for; none for all.

    Raises:
        QueryError: If there is no such language.
    """
    _check_length("language", language, LONGEST_LANGUAGE_CHARS)
    languages = languages_meant_by(language) if language.strip() else ()
    if languages is None:
        raise QueryError(
            f"language is not known: {language!r}; use a name like python, typescript or csharp, "
            'or an extension like "py", or filter by path instead'
        )
    return languages


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for and where; made by `wanted`."""

    query: Query
    path: str
    """The file, folder or glob that was asked for; empty for all."""
    language: str
    """As it was asked for; empty for all."""
    languages: tuple[str, ...]
    """The languages that it means; empty for all."""

    async def find(
        self,
        store: Store,
        ledger: Ledger,
        root: Path,
        embed: Callable[[], Awaitable[Vector | None]],
        limit: int,
    ) -> tuple[list[Hit], str]:
        """The best `limit` chunks; if there are none, why, as far as that is known.

        Raises:
            QueryError: If the path names nothing, and as a glob it matches nothing by its form.
            StoreError: If the index cannot be read.
        """
        filters = replace(await _files_of(self.path, root, store, ledger), languages=self.languages)
        hits = await search(store, self.query, embed, limit, filters)
        return hits, "" if hits else await _why_nothing(filters, self.path, store, ledger)

    async def raise_if_path_fails(
        self, store: Store, embed: Callable[[], Awaitable[Vector | None]], error: StoreError
    ) -> None:
        """Find out whether a search failed because of the path it is limited to.

        Raises:
            QueryError: If it did: without the path, the index can be searched.
        """
        if not self.path.strip():
            return
        with suppress(StoreError):
            await search(store, self.query, embed, 1)
            raise QueryError(
                f"path={shown(self.path)} is too long or has too many alternatives to be searched "
                'for; examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
            ) from error


def wanted(query: str, path: str, language: str) -> Wanted:
    """What somebody asks for.

    Raises:
        QueryError: If there is nothing to look for, too much, or no such language.
    """
    _check_length("path", path, LONGEST_PATH_CHARS)
    return Wanted(_checked_query(query), path, language, _languages_of(language))


async def _files_of(path: str, root: Path, store: Store, ledger: Ledger) -> Filters:
    """The files that somebody asked for.

    Raises:
        QueryError: If there is no such file or folder, and as a glob it matches nothing by its
            form.
        StoreError: If the index cannot be read.
    """
    if not path.strip():
        return Filters()
    known = await anyio.to_thread.run_sync(ledger.keys)
    existing = await anyio.to_thread.run_sync(_existing, path, root, ledger, known)
    if existing is not None:
        return existing
    for literal in _READINGS:
        if all(char in path for char in literal) and _any_has(known, literal[0]):
            read_so = Filters(await anyio.to_thread.run_sync(regex_of, path, literal))
            if await store.holds(read_so):
                return read_so
    regex = await anyio.to_thread.run_sync(regex_of, path)
    return Filters(regex, folder=folder_of(path))


async def _why_nothing(filters: Filters, path: str, store: Store, ledger: Ledger) -> str:
    """Why a search so limited can find nothing; empty if it could have."""
    if filters.file:
        record = ledger.get(filters.file)
        if record is None:
            return f"{filters.file!r} is not indexed: it is ignored, or no regular file."
        if record.state != INDEXED:
            return f"{filters.file!r} is not indexed: {record.reason}."
    if filters == Filters() or await store.holds(filters):
        return ""
    of_any_language = Filters(filters.path, (), filters.file, filters.folder)
    if filters.languages and (not path.strip() or await store.holds(of_any_language)):
        among = f" that match path={shown(path)}" if path.strip() else ""
        return f"No indexed files{among} are in the language asked for."
    return f"No indexed file matches path={shown(path)}."


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        raise QueryError(f"{name} has {len(value):,} characters; {most:,} is the most")


def _any_has(keys: list[str], char: str) -> bool:
    return any(char in key for key in keys)


def _existing(path: str, root: Path, ledger: Ledger, known: list[str]) -> Filters | None:
    """The file or folder that `path` names, if there is one."""
    for key in _keys_meant(path, str(root)):
        if key == "":
            return Filters()
        if ledger.get(key) is not None:
            return Filters(file=key)
        mode = _mode(root, key)
        if mode is not None:
            return Filters(folder=key) if stat.S_ISDIR(mode) else Filters(file=key)
        if (found := _known_as(key, known)) is not None:
            return found
    return None


def _keys_meant(path: str, root: str) -> Iterator[str]:
    yield from keys_meant(path, root)
    if path.startswith("/"):
        with suppress(ValueError):  # no path can be written so
            yield from keys_meant(os.path.realpath(path), root)  # by a link, like /tmp on macOS


def _mode(root: Path, key: str) -> int | None:
    try:
        return beneath.status(root, key).st_mode
    except (OSError, ValueError):  # no such name can be
        return None


def _known_as(key: str, known: list[str]) -> Filters | None:
    """What the index has under `key`: a folder out of reach, or a name composed otherwise."""
    if "*" in key or "?" in key:  # seldom a name, and often asked for
        return None
    below = f"{key}/"
    if any(other.startswith(below) for other in known):
        return Filters(folder=key)
    if key.isascii():
        return None
    wanted, depth = composed(key), key.count("/") + 1
    for other in known:
        if not other.isascii() and f"{composed(other)}/".startswith(f"{wanted}/"):
            names = other.split("/")
            is_file = len(names) == depth
            return Filters(file=other) if is_file else Filters(folder="/".join(names[:depth]))
    return None

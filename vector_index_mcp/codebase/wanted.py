"""The request of a search: a query or a sample of code, and the files that it is limited to."""

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import anyio.to_thread

from vector_index_mcp.codebase import absent, named, respelling
from vector_index_mcp.codebase.filters import files_of, meant_instead, why_nothing
from vector_index_mcp.codebase.introduction import asks_for_whole, introduced
from vector_index_mcp.codebase.limits import (
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
)
from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.search import search
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, StoredChunk, Vector
from vector_index_mcp.engine.words import MAX_WORD_CHARS, has_words
from vector_index_mcp.errors import QueryError, StoreError
from vector_index_mcp.files.glob import shown
from vector_index_mcp.files.language import LANGUAGES, languages_meant_by
from vector_index_mcp.indexing.asking import Question
from vector_index_mcp.indexing.ledger import Ledger

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?:[:-]\d{1,9})*", re.DOTALL)
_UNLIKELY = 0.1
"""The likelihood below which no hit is likely to be right."""
_FEWEST_WORDS = 3


def _checked_query(query: str) -> Query:
    """Make a query of the user's text.

    Raises:
        QueryError: If it is empty or too long, or has no word to look for.
    """
    text = query.encode("utf-8", "replace").decode().strip()  # a terminal may pass invalid UTF-8
    if not text:
        raise QueryError("the query is empty; say in words or identifiers what to look for")
    _check_length("query", text, LONGEST_QUERY_CHARS)
    if not has_words(text):
        raise QueryError(
            "the query has no word that could be looked for, only punctuation or strings of more "
            f"than {MAX_WORD_CHARS} characters; say in words what to look for, or use grep"
        )
    return Query(text)


def _languages_of(language: str) -> tuple[str, ...]:
    """The languages that the user's word means; empty for all.

    Raises:
        QueryError: If no language has this name.
    """
    _check_length("language", language, LONGEST_LANGUAGE_CHARS)
    languages = languages_meant_by(language) if language.strip() else ()
    if languages is None:
        near = difflib.get_close_matches(language.strip().lower(), LANGUAGES, 1)
        raise QueryError(
            f"language is not known: {language!r}; use a name like python, typescript or csharp, "
            'or an extension like "py", or filter by path instead'
            + (f"; did you mean {near[0]!r}?" if near else "")
        )
    return languages


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of code, of which a search finds similar code."""

    path: str
    """The file, as the user wrote it."""
    line: int

    @classmethod
    def of(cls, text: str) -> "Sample | None":
        """The sample that `path:line` names; None for an empty text.

        Raises:
            QueryError: If the text has no line.
        """
        if not text.strip():
            return None
        _check_length("similar_to", text, LONGEST_PATH_CHARS)
        if not (found := _PLACE.fullmatch(text.strip())):
            raise QueryError(f'similar_to names no line: {shown(text)}; write "src/app.py:120"')
        return cls(found["path"], int(found["line"]))

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"

    async def chunk(
        self, store: Store, ledger: Ledger, root: Path
    ) -> tuple[StoredChunk, Vector | None]:
        """The chunk that contains the line, and its vector if it has one.

        Raises:
            QueryError: If no indexed chunk contains the line.
            StoreError: If the index cannot be read.
        """
        place = str(self)
        file = ""
        with suppress(QueryError):  # the path is neither a file nor a valid glob; reported below
            file = (await files_of(self.path, root, store, ledger)).file
        rows = (await store.rows([file])).get(file, []) if file else []
        if not rows:
            meant = await anyio.to_thread.run_sync(meant_instead, self.path, ledger.keys())
            hint = f"did you mean {shown(f'{meant}:{self.line}')}?"
            raise QueryError(
                f"similar_to names no indexed file: {shown(place)}; "
                + (hint if meant else 'write the path as results show it, "src/app.py:120"')
            )
        holding = [row for row in rows if row[0].start_line <= self.line <= row[0].end_line]
        if not holding:
            last = max(chunk.end_line for chunk, _ in rows)
            raise QueryError(
                f"similar_to names a line that no chunk holds: {shown(place)}; the file's text "
                f"ends at line {last}"
            )
        return min(holding, key=lambda row: (-row[0].revision, row[0].end_line - row[0].start_line))


_names: WeakKeyDictionary[Ledger, tuple[int, Mapping[str, str]]] = WeakKeyDictionary()
"""The names of each open index, as `_names_in` returns them, and the revision that has them."""


async def _names_in(store: Store, ledger: Ledger) -> Mapping[str, str]:
    """What `respelling.spellings` returns for an index; 20 ms for 12,000 chunks, once a change."""
    revision, known = _names.get(ledger, (-1, {}))
    if revision != ledger.revision:
        revision = ledger.revision
        symbols, keys = await store.contents.symbols(), [*ledger.keys()]
        known = await anyio.to_thread.run_sync(respelling.spellings, symbols, keys)
        _names[ledger] = revision, known
    return known


@dataclass(slots=True)
class Findings:
    """The best chunks, and the words of the query that no file contains."""

    hits: list[Hit] = field(default_factory=list)
    why_none: str = ""
    """Why there are no hits; empty if there are, or if the reason is unknown."""
    names: tuple[str, ...] = ()
    """The identifiers of the query that no searched file contains."""
    words: tuple[str, ...] = ()
    """The other words of the query that no searched file contains."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Names of the project that are spelled like one of these words, by the word."""
    respelled: str = ""
    """The name that was searched instead of the query's only word; empty for none."""
    without_text: tuple[str, ...] = ()
    """The files that the query names by their path and that have no text in the index."""
    unjudged: str = ""
    """Why the cross-encoder did not rank the hits; empty if it did, or did not have to."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The request of a search; made by `wanted`."""

    query: Query
    path: str = ""
    """The file, folder or glob, as the user wrote it; empty for all."""
    language: str = ""
    """The language, as the user wrote it; empty for all."""
    languages: tuple[str, ...] = ()
    """The languages that `language` means; empty for all."""
    kind: str = ""
    """One of `kinds.Kind`; empty for all."""
    sample: Sample | None = None
    """The code to find similar code of. `query` may then be empty, or narrow the search."""

    def is_unlikely(self, hits: Sequence[Hit]) -> bool:
        """Whether not even the first hit is likely to be right.

        Only for questions of several words: labels have few others, so that the likelihood of a hit
        for a single word says less, and that of code similar to other code says nothing.
        """
        is_judged = self.query.is_question and len(self.query.subject) >= _FEWEST_WORDS
        if not is_judged or self.sample is not None or not hits:
            return False
        return hits[0].likelihood < _UNLIKELY

    async def find(self, store: Store, question: Question, root: Path, limit: int) -> Findings:
        """Find the best `limit` chunks.

        Raises:
            QueryError: If no file has the path and it is no valid glob, or if the sample does not
                exist.
            StoreError: If the index cannot be read.
        """
        files = await files_of(self.path, root, store, question.ledger)
        filters = replace(files, languages=self.languages, kind=self.kind)
        if self.sample is not None:
            hits = await self._alike(store, question, root, limit, filters)
            return Findings(hits, await self._why_none(hits, filters, store, question, root))
        hits = await search(store, self.query, question.embed, limit, filters)
        paths: list[str] = []
        if replace(filters, folder="") == Filters():
            place = named.place_of(self.query.text)
            above = f"{filters.folder}/" if filters.folder else ""
            known = question.ledger.keys()
            paths = named.files_at(place, (key for key in known if key.startswith(above)))
            opened = await named.opened(place, paths, hits, limit, store) if paths else None
            if opened is not None:
                return Findings(opened)
        if filters in (Filters(), Filters(kind="docs")) and asks_for_whole(self.query):
            lead = await introduced(hits, limit, store, question.ledger)
            if lead is not None:
                return Findings(lead)
        found = Findings(hits, await self._why_none(hits, filters, store, question, root))
        found.without_text = tuple(paths)
        if not found.why_none:
            texts = [f"{hit.chunk.key} {hit.chunk.text}" for hit in hits]
            found.names, found.words = await absent.absent(store, self.query, texts, filters)
        if lacking := (*found.names, *found.words):
            names = await _names_in(store, question.ledger)
            guesses = await anyio.to_thread.run_sync(respelling.meant, lacking, names)
            found.meant = {
                word: name
                for word, name in guesses.items()
                if not await absent.lacks(store, name, filters)
            }
        if found.meant and len(self.query.tokens) == 1:
            [found.respelled] = found.meant.values()
            question.rephrase(found.respelled)
            found.hits = await search(store, Query(found.respelled), question.embed, limit, filters)
        return found

    async def _alike(
        self, store: Store, question: Question, root: Path, limit: int, filters: Filters
    ) -> list[Hit]:
        """The chunks that are most similar to the sample, without the sample itself."""
        assert self.sample is not None
        chunk, vector = await self.sample.chunk(store, question.ledger, root)
        if vector is None:
            question.lack = "the code in similar_to has no vector yet"

        async def embed() -> Vector | None:
            return vector

        query = self.query if self.query.text else Query(chunk.text)
        hits = await search(store, query, embed, limit + 1, filters)
        others = [hit for hit in hits if not _overlap(hit.chunk, chunk)]
        return others[:limit]

    async def _why_none(
        self, hits: Sequence[Hit], filters: Filters, store: Store, question: Question, root: Path
    ) -> str:
        return "" if hits else await why_nothing(filters, self.path, root, store, question.ledger)

    async def raise_if_path_fails(
        self, store: Store, embed: Callable[[], Awaitable[Vector | None]], error: StoreError
    ) -> None:
        """Check whether a search failed because of its path: without it, the search succeeds.

        Raises:
            QueryError: If the path is the reason.
        """
        if not self.path.strip():
            return
        with suppress(StoreError):
            await search(store, self.query, embed, 1)
            raise QueryError(
                f"path={shown(self.path)} is too long or has too many alternatives to be searched "
                'for; examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
            ) from error


def _overlap(one: StoredChunk, other: StoredChunk) -> bool:
    return (
        one.key == other.key
        and one.start_line <= other.end_line
        and other.start_line <= one.end_line
    )


def wanted(
    query: str, path: str = "", language: str = "", kind: str = "", similar_to: str = ""
) -> Wanted:
    """Make a request of the user's texts; see `Codebase.search`.

    Raises:
        QueryError: If there is nothing to look for, a text is too long, or a language is unknown.
    """
    _check_length("path", path, LONGEST_PATH_CHARS)
    sample = Sample.of(similar_to)
    asked = Query("") if sample is not None and not query.strip() else _checked_query(query)
    return Wanted(asked, path, language, _languages_of(language), kind, sample)


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        raise QueryError(f"{name} has {len(value):,} characters; {most:,} is the most")

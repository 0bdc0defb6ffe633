"""What somebody wants searched: a query or a sample of code, and the files it is limited to."""

import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from vector_index_mcp.codebase import absent
from vector_index_mcp.codebase.filters import files_of, why_nothing
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
from vector_index_mcp.files.language import languages_meant_by
from vector_index_mcp.indexing.asking import Question
from vector_index_mcp.indexing.ledger import Ledger

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?:[:-]\d{1,9})*", re.DOTALL)


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
class Sample:
    """A line of code that what is looked for resembles."""

    path: str
    """The file, as somebody wrote it."""
    line: int

    @classmethod
    def of(cls, text: str) -> "Sample | None":
        """The line that `path:line` names; None of an empty text.

        Raises:
            QueryError: If it names none.
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
        """The chunk that holds the line, and its vector if it has one.

        Raises:
            QueryError: If no indexed chunk does.
            StoreError: If the index cannot be read.
        """
        place = str(self)
        file = ""
        with suppress(QueryError):  # of what could be no glob either
            file = (await files_of(self.path, root, store, ledger)).file
        rows = (await store.rows([file])).get(file, []) if file else []
        if not rows:
            raise QueryError(f"similar_to names no indexed file: {shown(place)}")
        holding = [row for row in rows if row[0].start_line <= self.line <= row[0].end_line]
        if not holding:
            last = max(chunk.end_line for chunk, _ in rows)
            raise QueryError(
                f"similar_to names a line that no chunk holds: {shown(place)}; the file's text "
                f"ends at line {last}"
            )
        return min(holding, key=lambda row: (-row[0].revision, row[0].end_line - row[0].start_line))


@dataclass(slots=True)
class Findings:
    """The best chunks, and what of the query stands nowhere."""

    hits: list[Hit] = field(default_factory=list)
    why_none: str = ""
    """Why there are no hits, as far as that is known."""
    names: tuple[str, ...] = ()
    """The identifiers of the query that no searched file contains."""
    words: tuple[str, ...] = ()
    """Its other words of which that is true."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for and where; made by `wanted`."""

    query: Query
    path: str = ""
    """The file, folder or glob that was asked for; empty for all."""
    language: str = ""
    """As it was asked for; empty for all."""
    languages: tuple[str, ...] = ()
    """The languages that it means; empty for all."""
    kind: str = ""
    """One of `kinds.Kind`; empty for all."""
    sample: Sample | None = None
    """What is looked for is like this; `query` is then empty, or says more."""

    async def find(self, store: Store, question: Question, root: Path, limit: int) -> Findings:
        """The best `limit` chunks.

        Raises:
            QueryError: If the path names nothing, and as a glob it matches nothing by its form, or
                if there is no such sample.
            StoreError: If the index cannot be read.
        """
        files = await files_of(self.path, root, store, question.ledger)
        filters = replace(files, languages=self.languages, kind=self.kind)
        if self.sample is not None:
            hits = await self._alike(store, question, root, limit, filters)
            return Findings(hits, await self._why_none(hits, filters, store, question, root))
        hits = await search(store, self.query, question.embed, limit, filters)
        found = Findings(hits, await self._why_none(hits, filters, store, question, root))
        if not found.why_none:
            texts = [f"{hit.chunk.key} {hit.chunk.text}" for hit in hits]
            found.names, found.words = await absent.absent(store, self.query, texts, filters)
        return found

    async def _alike(
        self, store: Store, question: Question, root: Path, limit: int, filters: Filters
    ) -> list[Hit]:
        """The best chunks but the sample."""
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


def _overlap(one: StoredChunk, other: StoredChunk) -> bool:
    return (
        one.key == other.key
        and one.start_line <= other.end_line
        and other.start_line <= one.end_line
    )


def wanted(
    query: str, path: str = "", language: str = "", kind: str = "", similar_to: str = ""
) -> Wanted:
    """What somebody asks for.

    Raises:
        QueryError: If there is nothing to look for, too much, or no such language.
    """
    _check_length("path", path, LONGEST_PATH_CHARS)
    sample = Sample.of(similar_to)
    asked = Query("") if sample is not None and not query.strip() else _checked_query(query)
    return Wanted(asked, path, language, _languages_of(language), kind, sample)


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        raise QueryError(f"{name} has {len(value):,} characters; {most:,} is the most")

"""The request of a search: a query or a sample of code, and the files that it is limited to."""

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np

from vector_index_mcp.codebase.filters import files_of, meant_instead
from vector_index_mcp.codebase.limits import (
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
    LONGEST_REGEX_CHARS,
)
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import search
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.words import MAX_WORD_CHARS, has_words
from vector_index_mcp.engine.types import Hit, StoredChunk, Vector
from vector_index_mcp.errors import QueryError, StoreError, encodable, quoted
from vector_index_mcp.files.language import LANGUAGES, languages_meant_by
from vector_index_mcp.indexing.ledger import Ledger

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?:[:-]\d{1,9})*", re.DOTALL)
UNLIKELY = 0.1
"""The likelihood below which no hit is likely to be right."""
_FEWEST_WORDS = 3


def _checked_query(query: str, *, is_regex: bool) -> Query:
    """Make a query of the user's text.

    Raises:
        QueryError: If it is empty or too long, or has no word to look for.
    """
    typed = encodable(query)  # a terminal may pass invalid UTF-8
    text = typed.strip()
    if not text:
        raise QueryError("the query is empty; say in words or identifiers what to look for")
    if is_regex:  # a blank at its end counts
        _check_length("query", typed, LONGEST_REGEX_CHARS)
        return Query(typed, is_regex=True)
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
            raise QueryError(f'similar_to names no line: {quoted(text)}; write "src/app.py:120"')
        if not (line := int(found["line"])):
            raise QueryError(f"similar_to names line 0: {quoted(text)}; the first is 1")
        return cls(found["path"], line)

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
            hint = f"did you mean {quoted(f'{meant}:{self.line}')}?"
            raise QueryError(
                f"similar_to names no indexed file: {quoted(place)}; "
                + (hint if meant else 'write the path as results show it, "src/app.py:120"')
            )
        holding = [row for row in rows if row[0].start_line <= self.line <= row[0].end_line]
        if not holding:
            last = max(chunk.end_line for chunk, _ in rows)
            raise QueryError(
                f"similar_to names a line that no chunk holds: {quoted(place)}; the file's text "
                f"ends at line {last}"
            )
        return min(holding, key=lambda row: (-row[0].revision, row[0].end_line - row[0].start_line))


@dataclass(frozen=True, slots=True)
class Likeness:
    """Code of another project, to find similar code of."""

    vector: Vector
    """Of the chunk that contains it."""
    digest: str
    """The digest of the model that has made the vector."""
    about: str
    """The query of the user; may be empty."""

    def as_json(self) -> dict[str, Any]:
        """The values that `of` reads."""
        return {"vector": self.vector.tolist(), "digest": self.digest, "about": self.about}

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Likeness":
        """Read what `as_json` has made."""
        vector = np.asarray(values["vector"], dtype="<f4")
        return cls(vector, str(values["digest"]), str(values["about"]))


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
    like: Likeness | None = None
    """Such code of another project; `query` is used if the vectors cannot be compared."""

    def is_unlikely(self, hits: Sequence[Hit]) -> bool:
        """Whether not even the first hit is likely to be right.

        Only for questions of several words: the likelihood was fitted on such. For a single word it
        is less reliable, and for code that is similar to other code it means nothing.
        """
        is_judged = self.query.is_question and len(self.query.subject) >= _FEWEST_WORDS
        if not is_judged or self.sample is not None or self.like is not None or not hits:
            return False
        return hits[0].likelihood < UNLIKELY

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
                f"path={quoted(self.path)} is too long or has too many alternatives to be searched "
                'for; examples: "src/**", "*.py", "tests/", "src/*.{ts,tsx}"'
            ) from error


def wanted(
    query: str,
    path: str = "",
    language: str = "",
    kind: str = "",
    similar_to: str = "",
    *,
    regex: bool = False,
    like: Likeness | None = None,
) -> Wanted:
    """Make a request of the user's texts; see `Codebase.search`.

    Raises:
        QueryError: If there is nothing to look for, a text is too long, or a language is unknown.
    """
    _check_length("path", path, LONGEST_PATH_CHARS)
    sample = Sample.of(similar_to)
    has_query = sample is None or query.strip()
    asked = _checked_query(query, is_regex=regex) if has_query else Query("")
    return Wanted(asked, path, language, _languages_of(language), kind, sample, like)


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        raise QueryError(f"{name} has {len(value):,} characters; {most:,} is the most")

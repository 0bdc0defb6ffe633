"""One query over the documents, on its way to an answer: by words, by meaning, or by both."""

import math
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import anyio

from vector_index_mcp.documents import ranking
from vector_index_mcp.documents.catalog import Entry, entry_at
from vector_index_mcp.documents.contexts import context_of
from vector_index_mcp.documents.limits import LONGEST_QUERY_CHARS
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Candidate, Filters, Hit, StoredChunk
from vector_index_mcp.errors import NoVectorsError, QueryError, SettingsError
from vector_index_mcp.indexing.asking import Question, ask

NO_VECTORS = "Vector index not found. Run 'qmd embed' first to create embeddings."
_CANDIDATES_PER_RESULT = 5  # chunks; documents have several


class Mode(StrEnum):
    """How documents are looked for."""

    WORDS = "search"
    MEANING = "vsearch"
    BOTH = "query"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What somebody looks for."""

    query: str
    mode: Mode
    limit: int = 10
    min_score: float = 0.0
    collection: str = ""
    """The name of the only one to look in; empty for all."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that answers a query."""

    entry: Entry
    score: float
    """0 to 1."""
    chunk: StoredChunk
    """Its best one, as its file is now."""
    context: str
    is_stale: bool
    """Whether its file has changed since it was indexed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query has found."""

    wanted: Wanted
    stems: tuple[str, ...]
    """Of the query's words."""
    found: tuple[Found, ...]
    lack: str
    """Why meaning did not count although it was to; else empty."""
    seconds: float


async def search(documents: Documents, wanted: Wanted) -> Answer:
    """The best documents for a query.

    Args:
        documents: They must be running.
        wanted: What to look for. A collection that there is not has no documents.

    Raises:
        NoVectorsError: If it is to be found by meaning alone, and nothing has a vector yet.
        QueryError: If the query is too long.
        StoreError: If there is no index that could be read.
    """
    began = time.monotonic()
    text = _checked(wanted.query)
    stems = tuple(asked_stems(text))
    if not documents.configuration.collections:
        raise SettingsError(
            "there are no collections yet; add one with `collection add FOLDER --name NAME`"
        )
    if not text or wanted.limit < 1 or not _is_collection(documents, wanted.collection):
        return Answer(wanted, stems, (), "", time.monotonic() - began)
    finder = _Finder(wanted, stems)
    answered = await ask(documents.index, text, finder.find, wanted.limit, wait_for_model=True)
    if wanted.mode is Mode.MEANING and answered.lack:
        raise NoVectorsError(NO_VECTORS if finder.is_without_vectors else answered.lack)
    found = []
    for hit in answered.hits:
        entry = entry_at(answered.ledger, hit.chunk.key)
        if entry is not None and hit.score >= wanted.min_score:
            context = context_of(documents.configuration, entry.key)
            is_stale = entry.key in answered.stale
            found.append(Found(entry, hit.score, hit.chunk, context, is_stale))
    return Answer(wanted, stems, tuple(found), answered.lack, time.monotonic() - began)


def _checked(query: str) -> str:
    text = query.encode("utf-8", "replace").decode().strip()
    if len(text) > LONGEST_QUERY_CHARS:
        raise QueryError(
            f"the query has {len(text):,} characters; {LONGEST_QUERY_CHARS:,} is the most"
        )
    return text


def _is_collection(documents: Documents, name: str) -> bool:
    return not name or any(c.name == name for c in documents.configuration.collections)


class _Finder:
    """Searches a store in one of the ways."""

    def __init__(self, wanted: Wanted, stems: Sequence[str]) -> None:
        self.is_without_vectors = False
        """Whether the index turned out to have none."""
        self._mode = wanted.mode
        self._stems = stems
        self._filters = Filters(folder=wanted.collection)

    async def find(self, store: Store, question: Question, limit: int) -> list[Hit]:
        """The best chunk of each of the best documents."""
        most = max(ranking.CANDIDATES, _CANDIDATES_PER_RESULT * limit)
        lexical: list[Candidate] = []
        semantic: list[Candidate] = []

        async def match() -> None:
            lexical.extend(await store.matching(self._stems, most, self._filters))

        async def find_nearest() -> None:
            ledger = question.ledger
            self.is_without_vectors = ledger.unembedded_count >= ledger.chunk_count
            if (vector := await question.embed()) is not None:
                semantic.extend(await store.nearest(vector, most, self._filters))

        searches: dict[Mode, tuple[Callable[[], Coroutine[Any, Any, None]], ...]] = {
            Mode.WORDS: (match,),
            Mode.MEANING: (find_nearest,),
            Mode.BOTH: (match, find_nearest),
        }
        try:
            async with anyio.create_task_group() as tasks:
                for search_one in searches[self._mode]:
                    tasks.start_soon(search_one)
        except ExceptionGroup as group:  # when both fail, then for the same reason
            raise group.exceptions[0] from None
        if self._mode is Mode.MEANING:
            return ranking.by_meaning(semantic)[:limit]
        if self._mode is Mode.WORDS or not semantic:
            return ranking.by_words(lexical)[:limit]
        return (await self._by_both(store, question, lexical, semantic))[:limit]

    async def _by_both(
        self,
        store: Store,
        question: Question,
        lexical: list[Candidate],
        semantic: list[Candidate],
    ) -> list[Hit]:
        vector = await question.embed()
        if vector is None:
            return ranking.by_words(lexical)
        ids = {candidate.chunk.document_id for candidate in (*lexical, *semantic)}
        vectors = await store.vectors_of(ids)
        variant = ranking.Variant(len(self._stems), lexical, semantic, vector)
        return ranking.by_both([variant], vectors, question.ledger.chunk_count)


def rounded(score: float) -> float:
    """A score with two decimals, half up, as the contract's examples have it."""
    return math.floor(score * 100 + 0.5) / 100

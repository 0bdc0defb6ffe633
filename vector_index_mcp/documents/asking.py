"""Answers a query over the documents: by words, by meaning, or by both."""

import difflib
import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from vector_index_mcp.documents.absent import names_in, names_outside, pattern_of
from vector_index_mcp.documents.catalog import Entry, entries_of, entry_at
from vector_index_mcp.documents.conditions import date_of, has_conditions, understood
from vector_index_mcp.documents.contexts import context_of
from vector_index_mcp.documents.language_model import LanguageModel
from vector_index_mcp.documents.limits import LONGEST_QUERY_CHARS
from vector_index_mcp.documents.reach import out_of_reach
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.documents.snippet import Snippet, snippet_of
from vector_index_mcp.engine.prose.searching import Search
from vector_index_mcp.engine.prose.stems import asked_stems, stems_of
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, StoredChunk, Vector
from vector_index_mcp.errors import (
    EmbeddingError,
    NoVectorsError,
    QueryError,
    counted,
    encodable,
    quoted,
)
from vector_index_mcp.indexing.answering.asking import Answered, OnLoading, Question, ask
from vector_index_mcp.indexing.answering.judging import judged
from vector_index_mcp.indexing.ledger import Ledger

_log = logging.getLogger(__name__)

NO_VECTORS = "Vector index not found. Run 'qmd embed' first to create embeddings."
_CATCHING_UP = (
    "Documents may be missing: the index was opened just now, and is still compared with the disk"
)
_NO_COLLECTIONS = (
    "There are no collections yet; add one with `vector-index-mcp documents collection add FOLDER "
    "--name NAME`"
)
_NOT_EMBEDDED = "nothing is embedded yet; `vector-index-mcp documents embed` does that"
_NONE_MEETS = "No document meets all conditions of the query (tag:, before:, after:)"
BY_MEANING_ALONE = "No document has a word of the query; the results are the nearest in meaning"
_SNIPPET_CHARS = 300
_MOST_NAMES, _MOST_NAME_CHARS = 20, 100  # of collections, in a note
_RERANK_SECONDS = 5.0  # how long a query waits for a cross-encoder


class Mode(StrEnum):
    """The ways to search documents."""

    WORDS = "search"
    MEANING = "vsearch"
    BOTH = "query"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A query with its options."""

    query: str
    mode: Mode
    limit: int = 10
    min_score: float = 0.0
    collection: str = ""
    """The name of the only collection to search; empty for all."""


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a query found."""

    entry: Entry
    score: float
    """The relevance, 0 to 1."""
    chunk: StoredChunk
    """The best chunk of the document, with the present text of its file."""
    context: str
    is_stale: bool
    """Whether its file has changed since it was indexed."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The documents that a query found."""

    wanted: Wanted
    stems: tuple[str, ...]
    """The stems of the query's words."""
    found: tuple[Found, ...]
    note: str
    """What limits the answer, in sentences without a full stop at the end; otherwise empty."""
    seconds: float

    def snippet_of(
        self, found: Found, most_chars: int = _SNIPPET_CHARS, file_lines: int | None = None
    ) -> Snippet:
        """Return the best lines of a document that was found; see `snippet.snippet_of`."""
        return snippet_of(
            found.chunk.text,
            frozenset(self.stems),
            lambda line: frozenset(stems_of(line)),
            start_line=found.chunk.start_line,
            file_lines=file_lines,
            most_chars=most_chars,
        )


async def search(
    documents: Documents, wanted: Wanted, on_loading: OnLoading | None = None
) -> Answer:
    """Return the best documents for a query.

    Args:
        documents: The documents; they must be running.
        wanted: The query. An unknown collection has no documents.
        on_loading: Called when the search begins to wait until the model is loaded.

    Raises:
        NoVectorsError: If the mode is by meaning alone, and there are no vectors or no model.
        QueryError: If the query is too long.
        StoreError: If no index can be read.
    """
    began = time.monotonic()
    asked = await _understood(documents, wanted)
    if asked.is_empty or not _is_collection(documents, wanted.collection):
        found: tuple[Found, ...] = ()
        limits = [*asked.senseless, await _why_nothing(documents, asked)]
    else:
        found, limits = await _answered(documents, asked, on_loading)
    note = ". ".join(filter(None, limits))
    return Answer(wanted, asked.stems, found, note, time.monotonic() - began)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query, with its conditions (`tag:`, `before:`, `after:`) understood."""

    wanted: Wanted
    """The query without them."""
    stems: tuple[str, ...]
    keys: tuple[str, ...] | None
    """The documents that meet all conditions, of a listing the newest; None without conditions."""
    senseless: tuple[str, ...]
    """Why conditions count as words, in sentences."""

    @property
    def is_listing(self) -> bool:
        """Whether it has only conditions, so that the newest documents that meet them are wanted.

        Then nothing is searched, neither by words nor by meaning.
        """
        return self.keys is not None and not self.stems

    @property
    def is_empty(self) -> bool:
        """Whether no document can be an answer."""
        asks_nothing = not self.wanted.query and not self.is_listing
        return asks_nothing or self.keys == () or self.wanted.limit < 1


async def _understood(documents: Documents, wanted: Wanted) -> _Asked:
    query = _checked(wanted.query)
    # Conditions need the ledger of the first scan now; otherwise `ask` waits for that scan.
    ledger = await documents.known() if has_conditions(query) else Ledger()
    conditional = understood(query, lambda: entries_of(ledger))
    keys, stems = conditional.keys, tuple(asked_stems(conditional.text))
    if keys is not None and wanted.collection:
        keys = tuple(key for key in keys if key.startswith(f"{wanted.collection}/"))
    if keys and not stems:
        keys = _newest(ledger, keys, max(wanted.limit, 1))
    return _Asked(replace(wanted, query=conditional.text), stems, keys, conditional.senseless)


async def _answered(
    documents: Documents, asked: _Asked, on_loading: OnLoading | None
) -> tuple[tuple[Found, ...], list[str]]:
    """Return the documents that are found, and what limits the answer; see `search`."""
    wanted, finder = asked.wanted, _Finder(documents, asked)
    answered = await ask(
        documents.index,
        wanted.query,
        finder.find,
        wanted.limit,
        wait_for_model=True,
        on_loading=on_loading,
    )
    if wanted.mode is Mode.MEANING and answered.lack and not asked.is_listing:
        raise NoVectorsError(NO_VECTORS if finder.is_without_vectors else answered.lack)
    found = _documents_of(documents, answered, wanted.min_score)
    uses_meaning = wanted.mode is not Mode.WORDS and not asked.is_listing
    no_model = documents.embedder.reason
    return found, [
        await out_of_reach(documents, wanted.collection),
        *asked.senseless,
        *_limits(wanted, found, answered, no_model, uses_meaning=uses_meaning),
        _of_absent(finder, found),
    ]


async def _why_nothing(documents: Documents, asked: _Asked) -> str:
    """Return why there is nothing to search for, or in; empty if the answer shows it."""
    wanted, ledger = asked.wanted, await documents.known()
    if wanted.mode is Mode.MEANING and ledger.unembedded_count >= ledger.chunk_count:
        raise NoVectorsError(NO_VECTORS)
    return (
        _reason_for_none(documents, wanted)
        or await out_of_reach(documents, wanted.collection)
        or (_NONE_MEETS if asked.keys == () else "")
    )


def _documents_of(documents: Documents, answered: Answered, least: float) -> tuple[Found, ...]:
    """Return the documents of the hits that score `least` or more, and that are there still."""
    found = []
    for hit in answered.hits:
        entry = entry_at(answered.ledger, hit.chunk.key)
        if entry is not None and hit.score >= least:
            context = context_of(documents.configuration, entry.key)
            is_stale = entry.key in answered.stale
            found.append(Found(entry, hit.score, hit.chunk, context, is_stale))
    return tuple(found)


def _limits(
    wanted: Wanted,
    found: Sequence[Found],
    answered: Answered,
    no_model: str,
    *,
    uses_meaning: bool,
) -> list[str]:
    """Say why documents may be missing or stale, and for which of them meaning did not count."""
    limits = [_CATCHING_UP] if answered.was_catching_up else []
    if stale := sum(each.is_stale for each in found):
        is_found = "was found by its" if stale == 1 else "were found by their"
        limits.append(f"{counted(stale, 'document')} {is_found} text of before the last save")
    ledger = answered.ledger
    if uses_meaning and answered.lack:
        is_new = ledger.unembedded_count >= ledger.chunk_count and not no_model
        limits.append(
            f"Searched by words only, not by meaning: {_NOT_EMBEDDED if is_new else answered.lack}"
        )
    elif uses_meaning and ledger.lacking_count:
        limits.append(f"{counted(ledger.lacking_count, 'document')} cannot be found by meaning yet")
    # `vsearch` leaves out scores below 0.3, unless it is asked for others.
    if wanted.mode is Mode.MEANING and answered.hits and not found:
        best = rounded(max(hit.score for hit in answered.hits))
        limits.append(
            f"The best score is {best:.2f}, and {wanted.min_score:g} is the least wanted; lower "
            "the minimum score (`--min-score`, `minScore`) to see more"
        )
    return limits


def _of_absent(finder: "_Finder", found: Sequence[Found]) -> str:
    """Say which names or that no words are in any text, so that nobody takes others for a match."""
    if finder.has_no_word and found:
        return BY_MEANING_ALONE
    lacking = names_outside(finder.absent, [each.chunk.text for each in found])  # as they are now
    named = " or ".join(map(quoted, lacking))
    has = "; the results have other words of the query" if found else ""
    return f"No text outside of front matter contains {named}{has}" if named else ""


def _checked(query: str) -> str:
    text = encodable(query).strip()
    if len(text) > LONGEST_QUERY_CHARS:
        raise QueryError(
            f"the query has {len(text):,} characters; {LONGEST_QUERY_CHARS:,} are the most"
        )
    return text


def _newest(ledger: Ledger, keys: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the `most` newest of the documents `keys`, newest first."""
    entries = filter(None, (entry_at(ledger, key) for key in keys))
    return tuple(e.key for e in sorted(entries, key=date_of, reverse=True)[:most])


def _reason_for_none(documents: Documents, wanted: Wanted) -> str:
    """Why nothing can be found; empty if the answer shows it."""
    names = [each.name for each in documents.configuration.collections]
    if not names:
        return _NO_COLLECTIONS
    if not _is_collection(documents, wanted.collection):
        near = difflib.get_close_matches(wanted.collection[:_MOST_NAME_CHARS], names, 1)
        known = [*dict.fromkeys([*near, *names])]  # the one that may be meant comes first
        shown = ", ".join(map(repr, known[:_MOST_NAMES]))
        others = len(known) - _MOST_NAMES
        more = f" and {counted(others, 'other')}" if others > 0 else ""
        asked = wanted.collection[:_MOST_NAME_CHARS]
        return f"There is no collection {asked!r}; there are {shown}{more}"
    return ""


def _is_collection(documents: Documents, name: str) -> bool:
    """Whether there is a collection of this name; if it is empty, whether there is any."""
    configured = documents.configuration
    return configured.has(name) if name else bool(configured.collections)


class _Finder:
    """Searches a store in the mode of a query."""

    def __init__(self, documents: Documents, asked: _Asked) -> None:
        self.is_without_vectors = False
        """Whether `find` saw that the index has no vectors."""
        self.has_no_word = False
        """Whether `find` saw that no document has any word of the query."""
        self.absent: Sequence[str] = ()
        """The names in the query that `find` saw in no text of the index."""
        self._model_deadline: float | None = None
        self._documents = documents
        self._asked, self._wanted = asked, asked.wanted
        self._keys = asked.keys or ()
        self._filters = Filters(folder=self._wanted.collection, files=self._keys)

    async def find(self, store: Store, question: Question, limit: int) -> list[Hit]:
        """Return the best chunk of each of the best documents."""
        hits = await self._found(store, question, limit)
        if hits and self._asked.stems and self._wanted.mode is not Mode.WORDS:
            self.has_no_word = not await store.matching(self._asked.stems, 1, self._filters)
        await self._note_absent(store, hits, question.ledger)
        return hits

    async def _found(self, store: Store, question: Question, limit: int) -> list[Hit]:
        mode, ledger = self._wanted.mode, question.ledger
        if self._asked.is_listing:
            rows = await store.rows(self._keys)
            return [Hit(rows[key][0][0], 1.0) for key in self._keys if key in rows]
        self.is_without_vectors = ledger.unembedded_count >= ledger.chunk_count
        vector = None if mode is Mode.WORDS else await question.embed()
        if mode is Mode.MEANING and vector is None:
            return []
        search = Search(store, self._wanted.query, self._filters, limit)
        if vector is None:
            return await search.by_words()
        if mode is Mode.MEANING:
            return await search.by_meaning(vector)
        fusion = await search.by_both(vector, ledger.chunk_count, await self._reworded())
        return fusion.ranked(await self._judged(fusion.to_rerank))[:limit]

    async def _note_absent(self, store: Store, hits: Sequence[Hit], ledger: Ledger) -> None:
        texts = (f"{hit.chunk.key} {hit.chunk.text}" for hit in hits)
        names = names_outside(names_in(self._wanted.query), texts)
        names = names_outside(names, ledger.keys() if names else ())
        has_match = store.contents.has_match
        self.absent = [n for n in names if not await has_match(pattern_of(n), self._filters)]

    async def _reworded(self) -> list[tuple[str, Vector]]:
        """Return the query in the language model's words, each with its embedding."""
        model = self._documents.language_model
        if model is None:
            return []
        others = await model.variants(self._wanted.query, self._seconds_left(model))
        if not others:
            return []
        try:
            vectors = await self._documents.embedder.embed(others, are_queries=True)
        except EmbeddingError as error:
            _log.warning("the query is not searched in other words: %s", error)
            return []
        return [*zip(others, vectors, strict=True)]

    def _seconds_left(self, model: LanguageModel) -> float:
        """Return how long the query may still wait for the language model; it begins to now."""
        now = time.monotonic()
        if self._model_deadline is None:
            self._model_deadline = now + model.seconds
        return self._model_deadline - now

    async def _judged(self, hits: Sequence[Hit]) -> dict[str, float] | None:
        """Return a reranker's scores of hits by key; None without one, or if it does not answer."""
        model, embedder = self._documents.language_model, self._documents.embedder
        passages = [f"{hit.chunk.scope}\n{hit.chunk.text}" for hit in hits]
        query, scores = self._wanted.query, None
        if embedder.has_reranker:
            judgement = await judged(embedder, query, passages, _RERANK_SECONDS, waits_to_load=True)
            scores = judgement.scores
            if judgement.lack:
                _log.warning("documents are not ranked by the cross-encoder: %s", judgement.lack)
        elif passages and model is not None:
            scores = await model.scores(query, passages, self._seconds_left(model))
        if scores is None:
            return None
        return {hit.chunk.key: score for hit, score in zip(hits, scores, strict=True)}


def rounded(score: float) -> float:
    """Return a score rounded half up to two decimals, as in the contract's examples."""
    return math.floor(score * 100 + 0.5) / 100

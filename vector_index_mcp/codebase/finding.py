"""Finds the chunks that a request wants, and which words of its query no file contains."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import anyio.to_thread

from vector_index_mcp.codebase import absent, respelling
from vector_index_mcp.codebase.filters import files_of, why_nothing
from vector_index_mcp.codebase.introduction import introduced, introducing
from vector_index_mcp.codebase.lead import first_about
from vector_index_mcp.codebase.named import Namer
from vector_index_mcp.codebase.patterned import matched
from vector_index_mcp.codebase.running_tests import asks_for_tests, saying_how
from vector_index_mcp.codebase.wanted import Sample, Wanted
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.search import no_vector, search
from vector_index_mcp.engine.ranking.similar import similar
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import NO_FILTERS, Filters, Hit, StoredChunk, Vector
from vector_index_mcp.errors import quoted
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing.answering.asking import Question
from vector_index_mcp.indexing.derived import Derived

_MOST_NARROWED = 30  # similar chunks that a query chooses from
_NEAR_A_PATH = 0.05  # of a file that does not exist: what has its words is hardly meant
_MOST_OVERLAPPING = 3  # chunks that have lines of a chunk: itself and its neighbours

_Names = Mapping[str, str]
"""The names of a project, as `respelling.spellings` returns them."""


@dataclass(slots=True)
class Findings:
    """The best chunks, and the words of the query that no file contains."""

    hits: list[Hit] = field(default_factory=list)
    why_none: str = ""
    """Why there are no hits; empty if there are, or if the reason is unknown."""
    absent: tuple[str, ...] = ()
    """The identifiers of the query that no searched file contains."""
    missing: tuple[str, ...] = ()
    """The other words of the query that no searched file contains."""
    is_nowhere: bool = False
    """Whether no searched file contains any word of the query, which is a question."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Names of the project that are spelled like one of these words, by the word."""
    respelled: str = ""
    """The name that was searched instead of the query's only word; empty for none."""
    remark: str = ""
    """What else there is to say of the hits, in a sentence; empty for nothing."""
    without_text: tuple[str, ...] = ()
    """The files that the query names by their path and that have no text in the index."""
    no_file: str = ""
    """The path that the query is and that no file has; empty for none."""
    unjudged: str = ""
    """Why the cross-encoder did not rank the hits; empty if it did, or did not have to."""
    is_pattern: bool = False
    """Whether they are what the query matches as a regular expression, not found by meaning."""


class Finder:
    """Answers the requests to one project."""

    def __init__(self, project: Folder) -> None:
        self._project = project
        self._names: Derived[_Names] = Derived()  # 20 ms for 12,000 chunks

    async def find(self, wanted: Wanted, store: Store, question: Question, limit: int) -> Findings:
        """Find the best `limit` chunks.

        Raises:
            QueryError: If no file has the path and it is no valid glob, or if the sample does not
                exist.
            StoreError: If the index cannot be read.
        """
        files = await files_of(wanted.path, self._project.path, store, question.ledger)
        filters = replace(files, languages=wanted.languages, kind=wanted.kind)
        request = _Search(wanted, store, question, self._project, limit, filters, self._names)
        if wanted.sample is not None:
            return await request.similar_to(wanted.sample)
        if wanted.like is not None and wanted.like.digest == question.model_digest:
            about = Query(wanted.like.about).subject
            return await request.most_similar(wanted.like.vector, about)
        return await request.matching()


@dataclass(frozen=True, slots=True)
class _Search:
    """One request to one store."""

    wanted: Wanted
    store: Store
    question: Question
    project: Folder
    limit: int
    filters: Filters
    names: Derived[_Names]

    async def similar_to(self, sample: Sample) -> Findings:
        """Find the chunks that are most similar to the sample, without the sample itself.

        Without a vector of the sample, those count that have most of its words. If there is a query
        too, those that have most of the query's words come first.
        """
        chunk, vector = await sample.chunk(self.store, self.question.ledger, self.project.path)
        about = self.wanted.query.subject
        if vector is not None:
            return await self.most_similar(vector, about, chunk)
        self.question.lack = "the code in similar_to has no vector yet"
        most = self._most_compared(about)
        hits = await search(self.store, Query(chunk.text), no_vector, most, self.filters)
        return await self._beside(chunk, hits, about)

    async def most_similar(
        self, vector: Vector, about: Sequence[str], sample: StoredChunk | None = None
    ) -> Findings:
        """Find the chunks nearest to `vector`, those that have most words of `about` first.

        Args:
            vector: That of a chunk of this or another project.
            about: Words, as `Query.subject` has them.
            sample: The chunk, if it is one of this project.
        """
        hits = await similar(self.store, vector, self._most_compared(about), self.filters)
        return await self._beside(sample, hits, about)

    def _most_compared(self, about: Sequence[str]) -> int:
        most = max(_MOST_NARROWED, self.limit) if about else self.limit
        return most + _MOST_OVERLAPPING

    async def _beside(
        self, sample: StoredChunk | None, hits: Sequence[Hit], about: Sequence[str]
    ) -> Findings:
        """Take `hits` without the sample itself, and what has most words of `about` first."""
        others = list(hits)
        if sample is not None:
            others = [
                replace(hit, also=tuple(each for each in hit.also if not _overlap(each, sample)))
                for hit in hits
                if not _overlap(hit.chunk, sample)
            ]
        others = first_about(others, about, "query", _MOST_NARROWED) if about else others
        others = others[: self.limit]
        why = await self._why_none(others)
        if not (others or why) and self.question.ledger.chunk_count <= len(hits):
            why = "Nothing else is indexed."
        return Findings(others, why)

    async def matching(self) -> Findings:
        """Find the chunks that match the query, behind a place or a text that it means."""
        pattern = self.wanted.query.pattern
        if pattern is None:
            return await self._for_text()
        matches, remark = await matched(pattern, self.limit, self.store, self.filters)
        if matches:
            return Findings(matches, is_pattern=True, remark=remark)
        if pattern.is_wanted:
            return Findings(why_none=await self._why_none([]) or remark, is_pattern=True)
        if pattern.is_sure:
            self.question.rephrase(pattern.plain)
        wanted = replace(self.wanted, query=self.wanted.query.as_answered(is_pattern=False))
        found = await replace(self, wanted=wanted)._for_text()
        found.remark = found.remark or remark
        return found

    async def _for_text(self) -> Findings:
        """See `matching`, for a query that is no pattern, or one that matches nothing."""
        hits = await self._hits(self.wanted.query)
        text, ledger = self.wanted.query.text, self.question.ledger
        namer = Namer(text, hits, self.limit, self.store, ledger, self.filters, self.project)
        named = await namer.named()
        led = (
            named.hits
            or await self._behind_introduction(hits)
            or await self._behind_how_tests_run(hits)
        )
        if led or named.remark or named.no_file:
            meant = {named.no_file: named.meant} if named.meant else {}
            shown = led or hits
            if named.no_file and not meant:
                shown = [replace(h, likelihood=min(h.likelihood, _NEAR_A_PATH)) for h in shown]
            return Findings(shown, meant=meant, remark=named.remark, no_file=named.no_file)
        found = Findings(hits, await self._why_none(hits), without_text=named.without_text)
        if not (found.why_none or (found.without_text and "/" in text)):
            texts = [f"{hit.chunk.key} {hit.chunk.text}" for hit in hits]
            lack = await absent.absent(self.store, self.wanted.query, texts, self.filters)
            found.absent, found.missing, found.is_nowhere = lack.names, lack.others, lack.is_all
            found.meant = await self._meant([*found.absent, *found.missing])
            found.remark = await self._left_out([*found.absent, *found.missing])
        asked = self.wanted.query
        if found.meant and len(asked.tokens) == 1 and [*found.meant] == asked.identifiers:
            [found.respelled] = found.meant.values()
            self.question.rephrase(found.respelled)
            found.hits = await self._hits(Query(found.respelled))
        return found

    async def _hits(self, query: Query) -> list[Hit]:
        return await search(self.store, query, self.question.embed, self.limit, self.filters)

    async def _behind_introduction(self, hits: Sequence[Hit]) -> list[Hit] | None:
        may_be = self.filters in (NO_FILTERS, Filters(kind="docs"))
        paths = introducing(self.wanted.query) if may_be else None
        if paths is None:
            return None
        return await introduced(hits, self.limit, self.store, self.question.ledger, paths)

    async def _behind_how_tests_run(self, hits: Sequence[Hit]) -> list[Hit] | None:
        if self.filters != NO_FILTERS or not asks_for_tests(self.wanted.query):
            return None
        return await saying_how(hits, self.limit, self.store, self.question.ledger)

    async def _why_none(self, hits: Sequence[Hit]) -> str:
        if hits:
            return ""
        ledger = self.question.ledger
        return await why_nothing(self.filters, self.wanted.path, self.project, self.store, ledger)

    async def _left_out(self, absent_words: Sequence[str]) -> str:
        """A sentence about those of these words that the limits of the search leave out."""
        if self.filters == NO_FILTERS:
            return ""
        words = await absent.left_out(self.store, self.wanted.query, absent_words)
        named = " and ".join(f"`{word}`" for word in words)
        verb = "stands" if len(words) == 1 else "stand"
        where = f"in files outside of {self._limits}, which were not searched"
        return f"{named} {verb} {where}." if words else ""

    @property
    def _limits(self) -> str:
        """What the search is limited to."""
        wanted = self.wanted
        given = {"path": wanted.path, "language": wanted.language, "kind": wanted.kind}
        return ", ".join(f"{name} {quoted(value)}" for name, value in given.items() if value)

    async def _meant(self, absent_words: Sequence[str]) -> dict[str, str]:
        """Return names that are spelled like one of these words and stand in a searched file."""
        if not absent_words:
            return {}
        names = await self.names.of(self.question.ledger, self._all_names)
        guesses = await anyio.to_thread.run_sync(respelling.meant, absent_words, names)
        lacks = partial(absent.lacks, self.store, filters=self.filters)
        return {word: name for word, name in guesses.items() if not await lacks(name)}

    async def _all_names(self) -> _Names:
        symbols, keys = await self.store.contents.symbols(), [*self.question.ledger.keys()]
        return await anyio.to_thread.run_sync(respelling.spellings, symbols, keys)


def _overlap(one: StoredChunk, other: StoredChunk) -> bool:
    return (
        one.key == other.key
        and one.start_line <= other.end_line
        and other.start_line <= one.end_line
    )

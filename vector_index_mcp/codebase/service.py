"""The index of one software project, and the search in it.

This module does not know who asks and how: the server calls its methods while `running` lasts.
"""

import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from vector_index_mcp.codebase.absent import elsewhere, outside
from vector_index_mcp.codebase.answer import Answer, note
from vector_index_mcp.codebase.finding import Finder, Findings
from vector_index_mcp.codebase.judge import Judge
from vector_index_mcp.codebase.recent import Asker, RecentQueries, asked
from vector_index_mcp.codebase.wanted import Likeness, Sample, Wanted, wanted
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Hit, StoredChunk
from vector_index_mcp.errors import (
    DamagedIndexError,
    QueryError,
    StorageError,
    StoreError,
    counted,
)
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.indexing import place
from vector_index_mcp.indexing.answering.asking import Answered, OnLoading, Question, ask
from vector_index_mcp.indexing.backlog import backlog_of
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.service import LiveIndex

_LEAST_SCORE = 0.005  # smaller scores are shown as 0.00
_MOST_NEAREST = 3


class Codebase:
    """The searchable project in one folder. It works only within `running`."""

    def __init__(
        self,
        project: Folder,
        lancedb_uri: str,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        crew: Crew | None = None,
        rerank_seconds: float = 1.0,
    ) -> None:
        """Make one.

        Args:
            project: The folder, without a name.
            lancedb_uri: Where its index lies; a relative path starts at the project.
            options: What a user may set about the index.
            embedder: Makes vectors.
            cache: Keeps vectors between runs.
            crew: Prepares files; None for a new one.
            rerank_seconds: How long a search waits for a cross-encoder, if one is configured.
        """
        where = place.Place.in_project(project.path, lancedb_uri)
        self.project = project
        self.index = LiveIndex([project], where, options, embedder, cache, crew)
        self.recent = RecentQueries()
        self._finder = Finder(project)
        self._judge = Judge(embedder, rerank_seconds)

    @property
    def root(self) -> Path:
        """The project's folder."""
        return self.project.path

    @property
    def is_busy(self) -> bool:
        """Whether there is work; changes that are followed as they come are none."""
        return self.index.progress.is_lengthy

    async def pending(self) -> int:
        """Return how many changed paths are not indexed yet."""
        return (await backlog_of(self.index)).pending

    @property
    def state(self) -> str:
        """The `status` of `get_status`."""
        return self.index.state.current

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """Keep the index open and answer questions while the context lasts."""
        async with self.index.running(role):
            yield

    async def search(
        self,
        query: str,
        limit: int,
        *,
        path: str = "",
        language: str = "",
        kind: str = "",
        similar_to: str = "",
        regex: bool = False,
        like: Likeness | None = None,
        offset: int = 0,
        wait_for_model: bool = False,
        on_loading: OnLoading | None = None,
        asker: Asker = Asker.CLIENT,
    ) -> Answer:
        """The best chunks for `query`.

        Args:
            query: Words, identifiers or a sentence.
            limit: How many hits at most.
            path: The file or folder to search, or a glob that the hits' paths match; empty for all.
            language: The programming language of the files; empty for all.
            kind: The kind of files, one of `kinds.Kind`; empty for all.
            similar_to: `path:line` of code; search for similar code elsewhere. Empty for none.
            regex: Whether `query` is a regular expression; if not, it is one if it looks like one.
            like: Code of another project; search for similar code here.
            offset: How many of the best hits to skip.
            wait_for_model: Whether to wait until the model is loaded. Otherwise the model is loaded
                in the background, and this search finds by words only.
            on_loading: Called when that wait begins.
            asker: The kind of client; kept with the query in `recent`.

        Raises:
            QueryError: If the query is empty or too long, or a filter is invalid.
            StoreError: If there is no index, or none that can be read.
        """
        began = time.monotonic()
        what = wanted(query, path, language, kind, similar_to, regex=regex, like=like)
        found = Findings()

        async def find(store: Store, question: Question, most: int) -> list[Hit]:
            nonlocal found
            try:
                most_judged = self._judge.most(what, most)
                found = await self._finder.find(what, store, question, most_judged)
            except StoreError as error:
                if not isinstance(error, StorageError | DamagedIndexError):
                    await what.raise_if_path_fails(store, question.embed, error)
                raise
            hits, found.unjudged = await self._judge.ranked(what, found.hits)
            return hits[:most]

        answered = await ask(
            self.index,
            what.query.text,
            find,
            limit + offset,
            wait_for_model=wait_for_model,
            on_loading=on_loading,
        )
        what = replace(what, query=what.query.as_answered(is_pattern=found.is_pattern))
        answer = await self._answer(what, answered, found, offset, began)
        self.recent.note(asked(answer, asker))
        return answer

    async def _answer(
        self, what: Wanted, answered: Answered, found: Findings, offset: int, began: float
    ) -> Answer:
        """Put together the answer to a question that was asked at `began`."""
        ledger, hits = answered.ledger, answered.hits
        now = [f"{hit.chunk.key} {hit.chunk.text}" for hit in hits]
        names = outside(found.absent, now, what.query)
        missing = outside(found.missing, now, what.query)
        is_nowhere = found.is_nowhere and missing == found.missing
        if names and not found.respelled:
            hits = _nearest(hits)
        skipped = "" if hits[offset:] else _all_skipped(len(hits), offset)
        hits = hits[offset:]
        backlog = await backlog_of(self.index)
        return Answer(
            wanted=what,
            hits=hits,
            stale=answered.stale,
            is_hybrid=not (found.is_pattern or answered.lack),
            is_pattern=found.is_pattern,
            masked=frozenset(hit.chunk.key for hit in hits if _has_masked(ledger, hit)),
            absent=names,
            missing=missing,
            no_file=found.no_file,
            meant={
                w: found.meant[w] for w in (*names, *missing, found.no_file) if w in found.meant
            },
            respelled=found.respelled if names else "",
            is_unlikely=not names and (what.is_unlikely(answered.hits) or is_nowhere),
            why_none=skipped or found.why_none,
            note=note(
                answered.lack,
                ledger,
                backlog,
                answered.untrue,
                found.unjudged,
                [
                    found.remark,
                    await self._elsewhere(names, found.without_text, ledger),
                ],
            ),
            seconds=time.monotonic() - began,
        )

    async def _elsewhere(
        self, names: Collection[str], files: Collection[str], ledger: Ledger
    ) -> str:
        """See `absent.elsewhere`; empty if the project's drive does not answer."""
        if not (names or files):
            return ""
        look = partial(elsewhere, names, files, ledger, self.project)
        try:
            return await self.index.looks.check_in([self.project], look)
        except TimeoutError:
            return ""

    async def sample(self, similar_to: str) -> tuple[StoredChunk, Likeness | None]:
        """The chunk at `path:line`, and what other projects find similar code by, if it has that.

        Raises:
            QueryError: If no indexed chunk contains that line.
            StoreError: If there is no index, or none that can be read.
        """
        sample = Sample.of(similar_to)
        if sample is None:
            raise QueryError("similar_to is empty; write a place as path:line")
        async with self.index.reading() as (index, ledger):
            chunk, vector = await sample.chunk(index.store, ledger, self.root)
            model = index.manifest.model
        if vector is None or model is None:
            return chunk, None
        return chunk, Likeness(vector, model.digest, "")


def _all_skipped(count: int, offset: int) -> str:
    """Say that an offset leaves nothing of so many results; empty if there are none."""
    if not count:
        return ""
    are = "is" if count == 1 else "are"
    return f"There {are} only {counted(count, 'result')}, and offset {offset} leaves none."


def _nearest(hits: Sequence[Hit]) -> list[Hit]:
    """The hits to show if no file contains an identifier: those with a score that is not 0.00.

    If all scores are shown as 0.00, the first few hits.
    """
    return [hit for hit in hits if hit.likelihood >= _LEAST_SCORE] or [*hits[:_MOST_NEAREST]]


def _has_masked(ledger: Ledger, hit: Hit) -> bool:
    record = ledger.get(hit.chunk.key)
    return record is not None and record.masked > 0

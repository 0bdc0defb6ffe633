"""The index of the notes, by which they are found by meaning.

It is loaded when somebody first asks for that: LanceDB alone takes as much memory as the whole
service should, and most agents look for words. From then on it follows the files like any other.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from vector_index_mcp.engine.prose import ranking, searching
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, StoredChunk
from vector_index_mcp.errors import BusyError, ModelNotFoundError
from vector_index_mcp.indexing.asking import Question, ask
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.notes import calls
from vector_index_mcp.notes.store.opening import PROJECTS

_FIRST_SECONDS = 30.0  # that a question waits for an index that is being made
_VECTORS_SECONDS = 2.0  # and for the vectors of what others have just written
_CANDIDATES_PER_RESULT = 5  # chunks; documents have several
_MOST_CANDIDATES = 6_400  # two long documents may have thousands of chunks that say the same


@dataclass(frozen=True, slots=True)
class Nearest:
    """A file that says what was asked for."""

    path: str
    """Below the folder of all projects."""
    score: float
    """0 to 1."""
    chunk: StoredChunk
    """Its best one."""
    is_stale: bool
    """Whether the file has changed since it was indexed."""


def folder_of(store: calls.Store, given: calls.Given) -> str | None:
    """Where is to be looked: the folder of a project, empty for all; None if there is nothing.

    Raises:
        Refusal: If that cannot be found out.
    """
    if given["all_projects"]:
        return "" if store.disk.is_folder(PROJECTS) else None
    project = calls.found_project(store, given)
    return None if project is None else project.folder.removeprefix(f"{PROJECTS}/")


@dataclass(frozen=True, slots=True)
class Answered:
    """What a question by meaning has found."""

    found: list[Nearest]
    lack: str
    """Why meaning did not count; empty if it did."""
    without_vectors: int
    """Pieces of the notes, of all projects, that are not embedded yet."""


async def nearest(
    index: LiveIndex, query: str, folder: str, limit: int, *, by_words: bool, is_behind: bool
) -> Answered:
    """The best files for a query.

    Args:
        index: Must be running.
        query: In any words.
        folder: Of the only project to look in; empty for all.
        limit: How many files at most.
        by_words: Whether words count, too.
        is_behind: Whether notes have been written since somebody last asked.

    Raises:
        StoreError: If there is no index that could be read.
    """
    stems = tuple(asked_stems(query))
    filters = Filters(folder=folder)

    async def ranked(store: Store, question: Question, most: int) -> tuple[Sequence[Hit], bool]:
        """The files among so many candidates, and whether there may be others behind them."""
        vector = await question.embed()
        if vector is None or not by_words:
            if vector is not None:
                found = await store.nearest(vector, most, filters)
                return ranking.by_meaning(found), len(found) == most
            found = await store.matching(stems, most, filters) if by_words else []
            return ranking.by_words(found), len(found) == most
        variant = await searching.variant(store, stems, vector, most, filters)
        fusion = await searching.fused(store, [variant], question.ledger.chunk_count)
        return fusion.ranked(), most in (len(variant.lexical), len(variant.semantic))

    async def find(store: Store, question: Question, wanted: int) -> Sequence[Hit]:
        most = max(ranking.CANDIDATES, _CANDIDATES_PER_RESULT * wanted)
        while True:
            hits, is_more = await ranked(store, question, most)
            # The chunks of one long document must not take the places of all others.
            if len(hits) >= wanted or not is_more or most >= _MOST_CANDIDATES:
                return hits[:wanted]
            most *= 4

    await _caught_up(index, is_behind=is_behind)
    answered = await ask(index, query, find, limit, wait_for_model=True)
    found = [
        Nearest(hit.chunk.key, hit.score, hit.chunk, hit.chunk.key in answered.stale)
        for hit in answered.hits
    ]
    progress = index.progress
    return Answered(found, answered.lack, progress.chunks - progress.embedded)


async def _caught_up(index: LiveIndex, *, is_behind: bool) -> None:
    """Let an index take in all notes, which are few, with what was written a moment ago."""
    with anyio.move_on_after(_FIRST_SECONDS):
        run = await index.catching_up()
        # What the answer says is lacking, it need not wait for.
        with contextlib.suppress(BusyError, ModelNotFoundError):
            if is_behind or index.progress.is_busy:
                run = await index.trigger(force_reindex=False)
            if run is not None:
                await run.finished.wait()
            # Once the model works, a question need not wait for all that somebody else writes.
            is_working = index.progress.embedder_state == "ready" and index.progress.embedded > 0
            with anyio.move_on_after(_VECTORS_SECONDS if is_working else _FIRST_SECONDS):
                await index.embed()

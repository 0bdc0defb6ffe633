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
_CANDIDATES_PER_RESULT = 5  # chunks; documents have several


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


async def nearest(
    index: LiveIndex, query: str, folder: str, limit: int, *, by_words: bool, is_behind: bool
) -> tuple[list[Nearest], str]:
    """The best files for a query, and why their meaning did not count; empty if it did.

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
    most = max(ranking.CANDIDATES, _CANDIDATES_PER_RESULT * limit)

    async def find(store: Store, question: Question, wanted: int) -> Sequence[Hit]:
        vector = await question.embed()
        if vector is None:
            if not by_words:
                return []
            return ranking.by_words(await store.matching(stems, most, filters))[:wanted]
        if not by_words:
            return ranking.by_meaning(await store.nearest(vector, most, filters))[:wanted]
        variants = [await searching.variant(store, stems, vector, most, filters)]
        fusion = await searching.fused(store, variants, question.ledger.chunk_count)
        return fusion.ranked()[:wanted]

    await _caught_up(index, is_behind=is_behind)
    answered = await ask(index, query, find, limit, wait_for_model=True)
    found = [
        Nearest(hit.chunk.key, hit.score, hit.chunk, hit.chunk.key in answered.stale)
        for hit in answered.hits
    ]
    return found, answered.lack


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
            await index.embed()

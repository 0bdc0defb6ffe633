"""Searches the notes by meaning, in an index of their files.

The index is loaded at the first such search: LanceDB alone takes as much memory as the whole
service should, and most agents search by words. From then on the index follows the files.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from vector_index_mcp.engine.prose.searching import Search
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Filters, Hit, StoredChunk
from vector_index_mcp.errors import BusyError, ModelNotFoundError, StorageError
from vector_index_mcp.indexing.answering.asking import Question, ask
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.notes import calls
from vector_index_mcp.notes.layout import PROJECTS

_FIRST_SECONDS = 30.0  # how long a query waits for an index that is being built
_VECTORS_SECONDS = 2.0  # how long it waits for the vectors of texts that were just written


@dataclass(frozen=True, slots=True)
class Nearest:
    """A file that answers the query."""

    path: str
    """The file's path below the folder of all projects."""
    score: float
    """0 to 1."""
    chunk: StoredChunk
    """The file's best chunk."""
    is_stale: bool
    """Whether the file has changed since it was indexed."""


def folder_of(store: calls.Store, given: calls.Given) -> str | None:
    """Return the folder to search, empty for all projects; None if there is nothing to search.

    Raises:
        Refusal: If the store cannot be read.
    """
    if given["all_projects"]:
        return "" if store.disk.is_folder(PROJECTS) else None
    project = calls.found_project(store, given)
    return None if project is None else project.folder.removeprefix(f"{PROJECTS}/")


@dataclass(frozen=True, slots=True)
class Answered:
    """The result of a search by meaning."""

    found: list[Nearest]
    """Best first."""
    lack: str
    """Why the query was not compared by meaning; empty if it was."""
    without_vectors: int
    """How many chunks, of all projects, are not embedded yet."""


async def nearest(
    index: LiveIndex, query: str, folder: str, limit: int, *, by_words: bool, is_behind: bool
) -> Answered:
    """Return the best files for a query.

    Args:
        index: The index, which must be running.
        query: The query.
        folder: The folder of the project to search; empty for all projects.
        limit: The most files to return.
        by_words: Whether the query's words count as well.
        is_behind: Whether notes have been written since the last search.

    Raises:
        StoreError: If the index cannot be read.
    """

    async def find(store: Store, question: Question, wanted: int) -> Sequence[Hit]:
        vector = await question.embed()
        search = Search(store, query, Filters(folder=folder), wanted)
        if vector is None:
            return await search.by_words() if by_words else []
        if not by_words:
            return await search.by_meaning(vector)
        fusion = await search.by_both(vector, question.ledger.chunk_count)
        return fusion.ranked()[:wanted]

    await _caught_up(index, is_behind=is_behind)
    answered = await ask(index, query, find, limit, wait_for_model=True)
    found = [
        Nearest(hit.chunk.key, hit.score, hit.chunk, hit.chunk.key in answered.stale)
        for hit in answered.hits
    ]
    progress = index.progress
    return Answered(found, answered.lack, progress.chunks - progress.embedded)


async def _caught_up(index: LiveIndex, *, is_behind: bool) -> None:
    """Wait until the index contains all notes, which are few, also those written just now."""
    with anyio.move_on_after(_FIRST_SECONDS):
        run = await index.catching_up()
        # The search goes on without these; its answer reports what is lacking.
        with contextlib.suppress(BusyError, ModelNotFoundError, StorageError):
            if is_behind or index.progress.is_busy:
                run = await index.trigger(force_reindex=False)
            if run is not None:
                await run.finished.wait()
            # Once the model works, a query need not wait for everything that others write.
            is_working = index.progress.embedder_state == "ready" and index.progress.embedded > 0
            with anyio.move_on_after(_VECTORS_SECONDS if is_working else _FIRST_SECONDS):
                await index.embed()

"""Searches a store by words and by vectors at the same time, and ranks what both find."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.rank import best, followed_by
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import NO_FILTERS, Candidate, Filters, Hit, Vector
from vector_index_mcp.errors import first_of

FEWEST_CANDIDATES = 100  # with so many, 97 % of the right files are found (benchmarks/quality.py)
_WIDER = 5  # for more hits than candidates, so many times as many candidates are ranked as well
# Up to these sizes, splitting a query and ranking its candidates take 3 ms; a query of 50,000
# characters takes 100 ms, and runs in a thread, which costs 0.2 ms.
SHORT_CHARS = 500
_FEW_CANDIDATES = 200

_T = TypeVar("_T")


async def search(
    store: Store,
    query: Query,
    embed: Callable[[], Awaitable[Vector | None]],
    limit: int,
    filters: Filters = NO_FILTERS,
) -> list[Hit]:
    """Return the best `limit` chunks for `query`.

    The first hits do not depend on `limit`: more candidates would change the order of the best. So
    what further candidates add comes after the hits of the first `FEWEST_CANDIDATES`.

    Args:
        store: The store to search.
        query: Words, identifiers or a sentence.
        embed: Returns the query's embedding, or None to search the full text alone. It is awaited
            while the full text is being searched.
        limit: How many hits at most.
        filters: Which chunks count.

    Raises:
        StoreError: If the index cannot be read.
    """
    is_long = len(query.text) > SHORT_CHARS
    depths = [FEWEST_CANDIDATES]
    while depths[-1] < limit:
        depths.append(depths[-1] * _WIDER)
    matched = partial(worked_out, is_long, lambda: query.matched)
    lexical, semantic = await both_searches(
        store, matched, embed, depths[-1], filters, with_cosines=True
    )
    is_long = is_long or depths[-1] > _FEW_CANDIDATES

    def ranked() -> list[Hit]:
        hits: list[Hit] = []
        for depth in depths:
            wider = best(query, lexical[:depth], semantic[:depth], limit + len(hits))
            hits = followed_by(hits, wider)[:limit]
        return hits

    return await worked_out(is_long, ranked)


async def no_vector() -> None:
    """Stand in for the embedding of a query that is searched by its words alone."""


async def both_searches(
    store: Store,
    words: Callable[[], Awaitable[Sequence[str]]],
    embed: Callable[[], Awaitable[Vector | None]],
    limit: int,
    filters: Filters = NO_FILTERS,
    *,
    with_cosines: bool = False,
) -> tuple[list[Candidate], list[Candidate]]:
    """Run full-text search and vector search at the same time.

    Args:
        store: The store to search.
        words: Returns the words to match.
        embed: Returns the query's vector, or None to search the full text alone.
        limit: How many candidates of each search at most.
        filters: Which chunks count.
        with_cosines: Whether to compare the vectors of what full-text search finds, too, if they
            lie on this machine.

    Returns:
        The candidates of full-text search and those of vector search, each best first.

    Raises:
        StoreError: If the index cannot be read.
    """
    lexical: list[Candidate] = []
    semantic: list[Candidate] = []
    asked: Vector | None = None

    async def match() -> None:
        matched = await words()
        lexical.extend(await store.matching(matched, limit, filters, with_vectors=with_cosines))

    async def find_nearest() -> None:
        nonlocal asked
        if (asked := await embed()) is not None:
            semantic.extend(await store.nearest(asked, limit, filters))

    await all_of(match, find_nearest)
    return [compared(each, asked) for each in lexical], semantic


def compared(found: Candidate, asked: Vector | None) -> Candidate:
    """Return the candidate with its cosine, if its vector and the query's are known."""
    if found.vector is None or asked is None:
        return found
    return replace(found, cosine=float(found.vector @ asked))


async def all_of(*searches: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run several searches at the same time; raise the first error if any fails."""
    try:
        async with anyio.create_task_group() as tasks:
            for each in searches:
                tasks.start_soon(each)
    except ExceptionGroup as group:  # if several fail, they fail for the same reason
        raise first_of(group) from None


async def worked_out(is_long: bool, work: Callable[[], _T]) -> _T:
    """Return what `work` returns; run it in a thread if it takes long enough to block others."""
    return await anyio.to_thread.run_sync(work) if is_long else work()

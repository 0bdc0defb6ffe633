"""A query to hits: full text and vectors, each over-fetched, ranked together."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread

from vector_index_mcp.engine.query import Query
from vector_index_mcp.engine.rank import best
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import NO_FILTERS, Candidate, Filters, Hit, Vector

OVERFETCH = 5  # candidates asked of each search per hit wanted
FEWEST_CANDIDATES = 100  # both hold 97 % of the files looked for (benchmarks/quality.py)
# Up to here, splitting a query and ranking what it finds takes 3 ms; a log of 50,000 characters
# takes 100. A thread costs 0.2 ms.
_SHORT_CHARS = 500
_FEW_CANDIDATES = 200

_T = TypeVar("_T")


async def search(
    store: Store,
    query: Query,
    embed: Callable[[], Awaitable[Vector | None]],
    limit: int,
    filters: Filters = NO_FILTERS,
) -> list[Hit]:
    """The best `limit` chunks for `query`.

    Args:
        store: Where to look.
        query: Words, identifiers or a sentence.
        embed: Gives the query's embedding; None searches the full text alone. It is awaited while
            the full text is being searched.
        limit: How many hits at most.
        filters: Which chunks count.

    Raises:
        StoreError: If the index cannot be read.
    """
    is_long = len(query.text) > _SHORT_CHARS
    candidates = max(FEWEST_CANDIDATES, OVERFETCH * limit)
    matched = partial(_worked_out, is_long, lambda: query.matched)
    lexical, semantic = await both_searches(store, matched, embed, candidates, filters)
    is_long = is_long or candidates > _FEW_CANDIDATES
    return await _worked_out(is_long, lambda: best(query, lexical, semantic, limit))


async def both_searches(
    store: Store,
    words: Callable[[], Awaitable[Sequence[str]]],
    embed: Callable[[], Awaitable[Vector | None]],
    limit: int,
    filters: Filters = NO_FILTERS,
) -> tuple[list[Candidate], list[Candidate]]:
    """What full-text and vector search find, each best first; they run at the same time.

    Args:
        store: Where to look.
        words: Gives the words to match.
        embed: Gives the vector to be near to; None searches the full text alone.
        limit: How many candidates of each at most.
        filters: Which chunks count.

    Raises:
        StoreError: If the index cannot be read.
    """
    lexical: list[Candidate] = []
    semantic: list[Candidate] = []

    async def match() -> None:
        lexical.extend(await store.matching(await words(), limit, filters))

    async def find_nearest() -> None:
        if (vector := await embed()) is not None:
            semantic.extend(await store.nearest(vector, limit, filters))

    await all_of(match, find_nearest)
    return lexical, semantic


async def all_of(*searches: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run several at the same time."""
    try:
        async with anyio.create_task_group() as tasks:
            for each in searches:
                tasks.start_soon(each)
    except ExceptionGroup as group:  # when several fail, then for the same reason
        raise group.exceptions[0] from None


async def _worked_out(is_long: bool, work: Callable[[], _T]) -> _T:
    """What `work` gives; in a thread if it takes longer than anybody should be kept waiting."""
    return await anyio.to_thread.run_sync(work) if is_long else work()

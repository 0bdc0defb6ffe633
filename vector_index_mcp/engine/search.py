"""A query to hits: full text and vectors, fused, spread over files."""

from vector_index_mcp.engine import rank
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import Hit, Vector
from vector_index_mcp.engine.words import query_words

OVERFETCH = 5  # candidates asked of each ranking per hit wanted
FEWEST_CANDIDATES = 60


async def search(store: Store, query: str, vector: Vector | None, limit: int) -> list[Hit]:
    """The best `limit` chunks for `query`.

    Args:
        store: Where to look.
        query: Words, identifiers or a sentence.
        vector: The query's embedding; None searches the full text alone.
        limit: How many hits at most.

    Raises:
        StoreError: If the index cannot be read.
    """
    candidates = max(FEWEST_CANDIDATES, OVERFETCH * limit)
    rankings = [await store.matching(query_words(query), candidates)]
    if vector is not None:
        rankings.append(await store.nearest(vector, candidates))
    return rank.spread(rank.fuse(rankings), limit)

"""Finds the chunks that are most similar to another one, by their vectors alone.

Ranking as for a query does not fit: a whole chunk as a query has hundreds of words, files are put
in order by what a question asks for, and of each file only the best chunk comes first, although the
twin of a function often stands beside it. Measured with `benchmarks/similar.py`.
"""

import math

from vector_index_mcp.engine.ranking.rank import of_newest_revisions
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import NO_FILTERS, Candidate, Filters, Hit, Vector, Why

_LEAST, _MOST = 0.001, 0.999  # cosines whose logits are finite


async def similar(
    store: Store, vector: Vector, limit: int, filters: Filters = NO_FILTERS
) -> list[Hit]:
    """Return the `limit` chunks nearest to a vector, the most similar one first.

    Their likelihoods are their cosines, at least 0.

    Args:
        store: The store to search.
        vector: The vector of a chunk.
        limit: How many hits at most.
        filters: Which chunks count.

    Raises:
        StoreError: If the index cannot be read.
    """
    [found] = of_newest_revisions(await store.nearest(vector, limit, filters))
    best = max((each.score for each in found), default=1.0)
    return [_hit(each, max(best, _LEAST)) for each in found]


def _hit(found: Candidate, best: float) -> Hit:
    cosine = min(max(found.score, _LEAST), _MOST)
    why = Why(
        words=0.0,
        meaning=found.score,
        factors={},
        chunk=found.score / best,
        file={},
        likelihood={"similarity": math.log(cosine / (1 - cosine))},
    )
    return Hit(found.chunk, max(0.0, found.score) / best, cosine, why=why)

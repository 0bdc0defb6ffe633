"""Puts a chunk that answers a query by itself before the hits of a search. Pure."""

import math
from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.engine.likelihood import likelihood
from vector_index_mcp.engine.types import Hit, StoredChunk, Why

_MOST_OTHERS = 3  # further chunks of the file that the hit names


def led(
    first: StoredChunk,
    others: Sequence[StoredChunk],
    hits: Sequence[Hit],
    limit: int,
    *,
    name: str,
    logit: float,
) -> list[Hit]:
    """Return at most `limit` hits: `first`, then those of `hits` that are not `first`.

    Args:
        first: The chunk that answers the query.
        others: Other chunks of its file; it names a few of them.
        hits: What the search has found, best first.
        limit: How many hits at most.
        name: What the reason is called in explanations.
        logit: How likely `first` is right, in logits.
    """
    parts = {name: logit}
    because = Why(0.0, None, {}, chunk=1.0, file=parts, likelihood=parts)
    lead = Hit(first, 1.0, likelihood(parts), tuple(others[:_MOST_OTHERS]), because)
    rest = [hit for hit in hits if hit.chunk.document_id != first.document_id]
    return [lead, *(_behind(hit, name, logit) for hit in rest)][:limit]


def _behind(hit: Hit, name: str, logit: float) -> Hit:
    """Lower a hit's likelihood: it is right at most as often as what leads is wrong."""
    if hit.why is None:
        return hit
    before = hit.why.likelihood
    excess = max(0.0, math.fsum(before.values()) + logit)
    parts = {**before, name: before.get(name, 0.0) - excess}
    because = replace(hit.why, likelihood=parts)
    return replace(hit, likelihood=likelihood(parts), why=because)

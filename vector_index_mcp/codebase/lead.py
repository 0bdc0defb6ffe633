"""Puts a chunk that answers a query by itself before the hits of a search. Pure."""

import math
from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.engine.likelihood import likelihood
from vector_index_mcp.engine.types import Hit, StoredChunk, Why

_MOST_OTHERS = 3  # further chunks of the file that the hit names


def led(
    firsts: Sequence[tuple[StoredChunk, Sequence[StoredChunk]]],
    hits: Sequence[Hit],
    limit: int,
    *,
    name: str,
    likely: float,
) -> list[Hit]:
    """Return at most `limit` hits: `firsts`, then those of `hits` that are not among them.

    Args:
        firsts: The chunks that answer the query, each with other chunks of its file, of which its
            hit names a few. Not empty.
        hits: What the search has found, best first.
        limit: How many hits at most.
        name: What the reason is called in explanations.
        likely: How likely one of `firsts` is right, between 0 and 1.
    """
    parts = {name: _logit(likely / len(firsts))}
    because = Why(0.0, None, {}, chunk=1.0, file=parts, likelihood=parts)
    leads = [
        Hit(first, 1.0, likelihood(parts), tuple(others[:_MOST_OTHERS]), because)
        for first, others in firsts
    ]
    ids = {first.document_id for first, _ in firsts}
    rest = [hit for hit in hits if hit.chunk.document_id not in ids]
    return [*leads, *(_behind(hit, name, _logit(likely)) for hit in rest)][:limit]


def _logit(likely: float) -> float:
    return math.log(likely / (1 - likely))


def _behind(hit: Hit, name: str, logit: float) -> Hit:
    """Lower a hit's likelihood: it is right at most as often as what leads is wrong."""
    if hit.why is None:
        return hit
    before = hit.why.likelihood
    excess = max(0.0, math.fsum(before.values()) + logit)
    parts = {**before, name: before.get(name, 0.0) - excess}
    because = replace(hit.why, likelihood=parts)
    return replace(hit, likelihood=likelihood(parts), why=because)

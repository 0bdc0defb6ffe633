"""Puts a chunk that answers a query by itself before the hits of a search. Pure."""

import math
from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.engine.ranking.likelihood import likelihood, logit
from vector_index_mcp.engine.text.spelling import folded
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
    parts = {name: logit(likely / len(firsts))}
    because = Why(0.0, None, {}, chunk=1.0, file=parts, likelihood=parts)
    leads = [
        Hit(first, 1.0, likelihood(parts), tuple(others[:_MOST_OTHERS]), because, leads=True)
        for first, others in firsts
    ]
    ids = {first.document_id for first, _ in firsts}
    rest = [hit for hit in hits if hit.chunk.document_id not in ids]
    # What comes behind is right at most as often as what leads is wrong.
    return [*leads, *(_lowered(hit, name, logit(1 - likely)) for hit in rest)][:limit]


def first_about(hits: Sequence[Hit], subject: Sequence[str], name: str, most: int) -> list[Hit]:
    """Return the hits that have most words of `subject` first, none with a score above another's.

    Args:
        hits: Best first.
        subject: Words, as `Query.subject` has them.
        name: What the reason is called in explanations.
        most: How many hits are put in that order; the others follow. It must not depend on how many
            are wanted, or the pages of an answer overlap.
    """

    def held(hit: Hit) -> int:
        text = folded(f"{hit.chunk.key} {hit.chunk.text}")
        return sum(word in text for word in subject)

    shown: list[Hit] = []
    lowest = math.inf
    for hit in (*sorted(hits[:most], key=held, reverse=True), *hits[most:]):
        shown.append(_lowered(hit, name, lowest))
        lowest = min(lowest, math.fsum(hit.why.likelihood.values())) if hit.why else lowest
    return shown


def _lowered(hit: Hit, name: str, most: float) -> Hit:
    """Lower a hit's likelihood to `most`, in logits."""
    if hit.why is None:
        return hit
    before = hit.why.likelihood
    excess = max(0.0, math.fsum(before.values()) - most)
    parts = {**before, name: before.get(name, 0.0) - excess} if excess else before
    because = replace(hit.why, likelihood=parts)
    return replace(hit, likelihood=likelihood(parts), why=because)

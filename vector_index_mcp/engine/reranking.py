"""A ranking and what a cross-encoder says of its best hits to one order. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.engine.types import Hit, Why

JUDGED = 30
"""How many of the best hits a cross-encoder judges: among so many the right one nearly always is,
and each costs it as much as an embedding."""


def by_both(hits: Sequence[Hit], judged: Sequence[float]) -> list[Hit]:
    """`hits` in the order of the mean of both their ranks; of equals, the better hit comes first.

    Ranks and not scores: those of a cross-encoder mean something else with every model, and one
    that was trained on questions to the web gives most code a thousandth; which of two it prefers
    does mean something. The mean and not its order alone: ours knows of paths, of what a chunk
    defines and of what else stands in its file, of all of which it sees nothing.

    Each place keeps its score and its likelihood: how often a first or a third hit with such
    evidence around it is right has been measured, what a judgement adds to that has not.

    Args:
        hits: Best first.
        judged: How well each of them answers; higher is better.
    """
    count = len(hits)
    preferred = sorted(range(count), key=lambda number: -judged[number])
    ranks = {number: rank for rank, number in enumerate(preferred)}
    order = sorted(range(count), key=lambda number: number + ranks[number])
    return [
        replace(
            hits[number],
            score=place.score,
            likelihood=place.likelihood,
            why=_judged(hits[number].why, place.why, judged[number]),
        )
        for number, place in zip(order, hits, strict=True)
    ]


def _judged(why: Why | None, of_place: Why | None, score: float) -> Why | None:
    """What speaks for a hit, with the likelihood of its new place."""
    if why is None or of_place is None:
        return why
    return replace(why, likelihood=of_place.likelihood, judged=score)

"""Combines a ranking with a cross-encoder's scores of its best hits. Pure."""

from collections.abc import Sequence
from dataclasses import replace

from vector_index_mcp.engine.types import Hit, Why

JUDGED = 30
"""How many of the best hits a cross-encoder judges. The right one is nearly always among so many,
and judging a hit takes as long as embedding one."""


def by_both(hits: Sequence[Hit], judged: Sequence[float]) -> list[Hit]:
    """Return `hits` ordered by the mean of both ranks; of equals, the better hit comes first.

    Ranks are used, not scores, because a score means something else with every cross-encoder: one
    trained on web questions scores most code at a thousandth. Its order is still useful. The order
    of the ranking counts as well, because it uses paths, definitions and the rest of the file,
    which a cross-encoder does not see.

    Each place keeps its score and its likelihood. Benchmarks have measured how often a hit at such
    a place is right, but not what a cross-encoder's judgement adds to that.

    Args:
        hits: The hits of the ranking, best first.
        judged: The cross-encoder's score of each hit; higher is better.
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
    """Return a hit's explanation with the likelihood of its new place."""
    if why is None or of_place is None:
        return why
    return replace(why, likelihood=of_place.likelihood, judged=score)

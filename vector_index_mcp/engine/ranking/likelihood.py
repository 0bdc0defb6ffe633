"""Estimates how likely a hit is the right one, from 0 to 1, comparable between queries. Pure.

A ranking's score only compares hits of one query: its best hit has 1, even if nothing answers the
query. Here, a logistic regression over a few features estimates how often hits with such features
were right. benchmarks/likelihood.py fits it and measures how true its estimates are.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from vector_index_mcp.engine.ranking.linear import weighed
from vector_index_mcp.engine.ranking.signals import Context, defines, share_of_names
from vector_index_mcp.engine.types import Candidate, StoredChunk


@dataclass(frozen=True, slots=True)
class Evidence:
    """The features that show whether a chunk answers the query; each from 0 to 1."""

    score: float
    """The chunk's score before other chunks of its file change it; the best chunk has 1."""
    coverage: float
    """How much of the query its text contains; rare words count more."""
    names: float
    """How much of the query its path, its scope and the names it defines contain."""
    cosine: float
    """The cosine of its vector and the query's; 0 if it is not known."""
    defines: float
    """Whether it defines an identifier of the query."""
    holds: float
    """Whether its text contains the identifier that is the query; less in another spelling."""
    is_symbol: float
    """Whether the query asks for an identifier and nothing else."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features, in logits."""

    base: float
    evidence: Evidence


# Fitted by benchmarks/likelihood.py on 84 packages: 7,155 questions, of which 3,458 have no answer.
# But for `defines`, whose weights are those of the labels alone: of names that are only used, any
# file that has one is right. Of several projects, that which defines a name has to come first.
BY_MEANING = Weights(-10.36, Evidence(5.45, 2.94, 0.0, 8.14, 1.08, 5.14, -2.3))
"""The weights where vectors were searched as well."""
BY_WORDS = Weights(-6.65, Evidence(4.01, 3.8, 1.28, 0.0, 0.77, 2.39, -1.3))
"""The weights where full text alone was searched."""
JUDGED_TOGETHER = 20
"""So many hits are brought into agreement, even if fewer are shown: all lists say the same."""
ORDER = "order"  # in explanations


def evidence_of(
    ctx: Context, chunk: StoredChunk, score: float, cosines: Mapping[str, float]
) -> Evidence:
    """Return the features of `chunk`.

    Args:
        ctx: The query and its candidates.
        chunk: One of the candidates.
        score: The chunk's score before other chunks of its file change it; the best has 1.
        cosines: The cosines of the candidates as far as they are known, by document_id.
    """
    return Evidence(
        score=score,
        coverage=ctx.share(ctx.held[chunk]),
        names=share_of_names(ctx, chunk),
        cosine=max(0.0, cosines.get(chunk.document_id, 0.0)),
        defines=float(defines(ctx, chunk) > 1),
        holds=ctx.holders[chunk],
        is_symbol=float(ctx.query.is_symbol),
    )


def contributions(evidence: Evidence, weights: Weights) -> dict[str, float]:
    """Return what each feature adds to the logit."""
    return {"base": weights.base} | weighed(evidence, weights.evidence)


def likelihood(parts: Mapping[str, float]) -> float:
    """Return how often a hit with these contributions is right, 0 to 1."""
    return 1 / (1 + math.exp(-math.fsum(parts.values())))


def in_agreement(hits: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
    """Return the contributions of hits in order with a term ORDER, so that no likelihood rises.

    The evidence of a hit does not know its place. Where it speaks for a hit more than for those
    before it, all of them have their mean; after JUDGED_TOGETHER hits, the least so far counts.
    Hits that are asked for with others or alone have the same likelihoods.
    """
    own = [likelihood(parts) for parts in hits]
    likely = falling(own[:JUDGED_TOGETHER])
    for each in own[JUDGED_TOGETHER:]:
        likely.append(min(each, likely[-1]))
    return [
        dict(parts) if after == before else {**parts, ORDER: logit(after) - logit(before)}
        for parts, before, after in zip(hits, own, likely, strict=True)
    ]


def falling(values: Iterable[float]) -> list[float]:
    """Return the values that never rise and are nearest to `values`, by the sum of squares.

    Isotonic regression, by pooling adjacent violators: Ayer, Brunk, Ewing, Reid, Silverman, An
    Empirical Distribution Function for Sampling with Incomplete Information (1955).
    """
    pools: list[tuple[float, int]] = []  # the mean of neighbours, and how many they are
    for value in values:
        mean, size = value, 1
        while pools and pools[-1][0] < mean:
            other, others = pools.pop()
            mean = (mean * size + other * others) / (size + others)
            size += others
        pools.append((mean, size))
    return [mean for mean, size in pools for _ in range(size)]


def logit(likely: float) -> float:
    """Return the logarithm of the odds of what is this likely."""
    return math.log(likely / (1 - likely))


def cosines_of(lexical: Iterable[Candidate], semantic: Sequence[Candidate]) -> dict[str, float]:
    """Return the cosines of all candidates as far as they are known, by document_id.

    There are none if vector search has proposed nothing.
    """
    if not semantic:
        return {}
    known = {each.chunk.document_id: each.cosine for each in lexical if each.cosine is not None}
    return known | {each.chunk.document_id: each.score for each in semantic}

"""Estimates how likely a hit is the right one, from 0 to 1, comparable between queries. Pure.

A ranking's score only compares hits of one query: its best hit has 1, even if nothing answers the
query. Here, a logistic regression over a few features estimates how often hits with such features
were right. benchmarks/likelihood.py fits it and measures how true its estimates are.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vector_index_mcp.engine.linear import weighed
from vector_index_mcp.engine.signals import Context, defines, share_of_names
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
    """The cosine of its vector and the query's; 0 if vector search did not propose it."""
    defines: float
    """Whether it defines an identifier of the query."""
    is_symbol: float
    """Whether the query asks for an identifier and nothing else."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of the features, in logits."""

    base: float
    evidence: Evidence


# Fitted by benchmarks/likelihood.py on 45 packages: 2,969 questions, of which 1,852 have no answer.
BY_MEANING = Weights(-8.13, Evidence(2.87, 3.20, 1.35, 7.62, 1.86, -1.80))
"""The weights where vectors were searched as well."""
BY_WORDS = Weights(-5.81, Evidence(2.69, 4.06, 3.05, 0.0, 1.24, -2.61))
"""The weights where full text alone was searched."""


def evidence_of(
    ctx: Context, chunk: StoredChunk, score: float, cosines: Mapping[str, float]
) -> Evidence:
    """Return the features of `chunk`.

    Args:
        ctx: The query and its candidates.
        chunk: One of the candidates.
        score: The chunk's score before other chunks of its file change it; the best has 1.
        cosines: The cosines of the candidates of vector search, by document_id.
    """
    return Evidence(
        score=score,
        coverage=ctx.share(ctx.held[chunk]),
        names=share_of_names(ctx, chunk),
        cosine=max(0.0, cosines.get(chunk.document_id, 0.0)),
        defines=float(defines(ctx, chunk) > 1),
        is_symbol=float(ctx.query.is_symbol),
    )


def contributions(evidence: Evidence, weights: Weights) -> dict[str, float]:
    """Return what each feature adds to the logit."""
    return {"base": weights.base} | weighed(evidence, weights.evidence)


def likelihood(parts: Mapping[str, float]) -> float:
    """Return how often a hit with these contributions is right, 0 to 1."""
    return 1 / (1 + math.exp(-math.fsum(parts.values())))


def cosines_of(semantic: Iterable[Candidate]) -> dict[str, float]:
    """Return the cosines of the candidates of vector search, by document_id."""
    return {candidate.chunk.document_id: candidate.score for candidate in semantic}

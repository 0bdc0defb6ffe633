"""How likely it is that a hit is the right one, from 0 to 1: the same from query to query. Pure.

The score that a ranking goes by tells only which hit is the better one; its best has 1, also where
nothing answers. Here a logistic regression over what shows that a hit answers says how often hits
like it did. benchmarks/likelihood.py fits it and measures how true it is.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from vector_index_mcp.engine.linear import weighed
from vector_index_mcp.engine.signals import Context, defines, share_of_names
from vector_index_mcp.engine.types import Candidate, StoredChunk


@dataclass(frozen=True, slots=True)
class Evidence:
    """What shows that a chunk answers the query; each from 0 to 1."""

    score: float
    """Of the chunk alone, as a share of the best one's."""
    coverage: float
    """How much of the query its text holds, rare words counting more."""
    names: float
    """How much of the query stands in its path, its scope and what it defines."""
    cosine: float
    """Of its vector and the query's; 0 if vectors did not propose it."""
    defines: float
    """Whether it defines an identifier of the query."""
    is_symbol: float
    """Whether the query asks for an identifier and nothing else."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the evidence, in logits."""

    base: float
    evidence: Evidence


# Fitted by benchmarks/likelihood.py on 45 packages: 2,969 questions, of which 1,852 have no answer.
BY_MEANING = Weights(-8.13, Evidence(2.87, 3.20, 1.35, 7.62, 1.86, -1.80))
"""Where vectors were searched as well."""
BY_WORDS = Weights(-5.81, Evidence(2.69, 4.06, 3.05, 0.0, 1.24, -2.61))


def evidence_of(
    ctx: Context, chunk: StoredChunk, score: float, cosines: Mapping[str, float]
) -> Evidence:
    """What shows that `chunk` answers.

    Args:
        ctx: The query over its candidates.
        chunk: One of them.
        score: Of the chunk alone, as a share of the best one's.
        cosines: Of the candidates that vectors proposed, by document_id.
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
    """What each part of the evidence adds, in logits."""
    return {"base": weights.base} | weighed(evidence, weights.evidence)


def likelihood(parts: Mapping[str, float]) -> float:
    """How often a hit is right whose evidence contributes these."""
    return 1 / (1 + math.exp(-math.fsum(parts.values())))


def cosines_of(semantic: Iterable[Candidate]) -> dict[str, float]:
    """What vectors proposed, by document_id."""
    return {candidate.chunk.document_id: candidate.score for candidate in semantic}

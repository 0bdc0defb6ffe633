"""Orders the chunks of one file with a linear model over a few features. Pure.

Each chunk's own score is most of it. But the answer mostly stands inside of a definition, and some
chunks have many words of a question and seldom the answer: the head of a file, with its imports and
what it says of itself; a long comment, apart from what it describes; a crowd of short definitions.
benchmarks/learn_chunks.py fits the model, and tests it on packages that it has not seen.
"""

import re
from dataclasses import dataclass

from vector_index_mcp.engine.kinds import DOCS, kinds_of
from vector_index_mcp.engine.ranking import linear
from vector_index_mcp.engine.text.comments import is_all_comments
from vector_index_mcp.engine.types import StoredChunk


@dataclass(frozen=True, slots=True)
class ChunkEvidence:
    """The features of one chunk: what speaks for it or against it, beside others of its file."""

    alone: float
    """Its score before other chunks of its file change it; the best of all candidates has 1."""
    head: float
    """Whether it is the first chunk of a file of code."""
    inside: float
    """Whether it is code that lies inside of a definition."""
    comment: float
    """Whether a chunk of code has nothing but comments, or the list of what a module exports."""
    crowd: float
    """How many names it defines: 0 for none, 1 for `CROWD` or more."""


# `module.exports = { a, b: b }`, `export { a, b } from "./c"`, `__all__ = ["a", "b"]`
_EXPORTS = re.compile(
    r"(?:module\.)?exports *= *\{[\w$\s,.:'\"]*\};?"
    r"|export *\{[^{}]*\}[^\n]*|__all__ *= *[\[(][^\])]*[\])]"
)
CROWD = 10
"""So many definitions in one chunk count as a crowd."""

# Fitted by benchmarks/learn_chunks.py: the first three on the files of right answers to questions
# about 72 packages (2,130 files, by meaning), the last two on those of 47 (1,556, by words alone).
# By meaning, on 687 files of 19 packages, these would be -2.47 (comment) and -1.20 (crowd).
WEIGHTS = ChunkEvidence(alone=2.39, head=-0.82, inside=0.38, comment=-2.07, crowd=-1.06)
"""The weights of the features, in logits; by words alone, the first three are almost the same."""


def evidence_of(chunk: StoredChunk, alone: float) -> ChunkEvidence:
    """Return the features of `chunk`.

    Args:
        chunk: One of the candidates.
        alone: Its score before other chunks of its file change it.
    """
    is_code = DOCS not in kinds_of(chunk.key, chunk.language)
    return ChunkEvidence(
        alone,
        head=float(is_code and chunk.chunk_index == 0),
        inside=float(is_code and bool(chunk.scope)),
        comment=float(is_code and _defines_nothing(chunk.text)),
        crowd=min(len(chunk.symbols), CROWD) / CROWD,
    )


def _defines_nothing(text: str) -> bool:
    return is_all_comments(text) or _EXPORTS.fullmatch(text.strip()) is not None


def logit(evidence: ChunkEvidence) -> float:
    """Return the weighted sum of a chunk's features."""
    return linear.total(evidence, WEIGHTS)

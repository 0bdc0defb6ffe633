"""Orders the files of a question's candidates with a linear model over a few features. Pure.

A chunk's score shows how well a few lines answer. But a large central file has a chunk that
mentions anything, while a small file about nothing else is the better answer. So files are ordered
first, and then the chunks of each (`chunk_order`). The model has only a handful of features, so
that a reader can check it. benchmarks/learn.py fits it on labelled questions and tests it on
packages that it has not seen.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from vector_index_mcp.engine.ranking import chunk_order, linear
from vector_index_mcp.engine.ranking.chunk_order import ChunkEvidence
from vector_index_mcp.engine.ranking.signals import Context, kind_of_file, names
from vector_index_mcp.engine.types import Hit, StoredChunk

NEXT_OF_FILE = 0.02
FURTHER_OF_FILE = 0.5
"""The second chunk of a file has 0.02 of the score of its first, and each further one half as much.

So other files come first, except where the best file is far more likely than they are: then a
second place of that file is worth more (benchmarks/README.md, "A second place of the best file").
"""


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """The features of one file: what speaks for it or against it."""

    score: float
    """The score of its best chunk, as a share of the best of all candidates."""
    second: float
    """The score of its second best chunk (see `Found.alone`): one chunk may match by chance."""
    meaning: float
    """The scaled cosine of its nearest chunk, 0 to 1, lowered for tests, docs and the like."""
    coverage: float
    """How much of the query its chunks contain together, 0 to 1; rare words count more."""
    names: float
    """How much of the query the names of the file, its folder and its definitions contain."""
    size: float
    """The natural logarithm of its number of chunks: a large file mentions anything."""


# Fitted by benchmarks/learn.py on 1,873 questions over 72 packages, but for the weight of names.
# There it would be 1.44, because most of these questions avoid the names of files. 1.98 was fitted
# to 639 questions, half of which were written without such a rule (benchmarks/README.md).
BY_MEANING = FileEvidence(
    score=3.38, second=1.75, meaning=2.81, coverage=2.2, names=1.98, size=-0.63
)
"""The weights where vectors were searched as well, in logits."""
BY_SOME_MEANING = replace(BY_MEANING, meaning=0.3)
"""The weights where some candidates have no vector, and count by their words instead."""
BY_WORDS = FileEvidence(score=4.36, second=1.77, meaning=0.0, coverage=0.68, names=2.37, size=-0.41)
"""The weights where full text alone was searched, in logits; fitted to those 639 questions."""


@dataclass(frozen=True, slots=True)
class Found:
    """All candidates of a query, ranked chunk by chunk, before their files are ordered."""

    context: Context
    hits: Sequence[Hit]
    """Best first."""
    alone: Mapping[str, float]
    """By document_id: a chunk's score before other chunks of its file change it; the best has 1."""
    words: Mapping[str, float]
    """By document_id, for candidates of full-text search: the BM25 score; the best has 1."""
    nearness: Mapping[str, float]
    """By document_id, for candidates of vector search: the cosine, scaled to 0…1. A candidate that
    has no vector has its value of `words` here."""

    def evidence(self) -> dict[str, FileEvidence]:
        """Return the features of each file, by its key, in the order of their best chunks."""
        of_file: dict[str, list[Hit]] = {}
        for hit in self.hits:
            of_file.setdefault(hit.chunk.key, []).append(hit)
        return {key: self._evidence_of(hits) for key, hits in of_file.items()}

    def _evidence_of(self, hits: Sequence[Hit]) -> FileEvidence:
        ids = [hit.chunk.document_id for hit in hits]
        held = {prefix for hit in hits for prefix in self.context.held[hit.chunk]}
        return FileEvidence(
            score=hits[0].score,
            second=_second(self.alone[id_] for id_ in ids),
            meaning=max(self.nearness.get(id_, 0.0) for id_ in ids)
            * kind_of_file(self.context, hits[0].chunk),
            coverage=self.context.share(held),
            names=self.context.share(names([hit.chunk for hit in hits])),
            size=math.log(max(1, hits[0].chunk.total_chunks)),
        )

    def evidence_in_file(self, chunk: StoredChunk) -> ChunkEvidence:
        """Return the features that count beside other chunks of the same file."""
        return chunk_order.evidence_of(chunk, self.alone[chunk.document_id])

    @property
    def weights(self) -> FileEvidence:
        """The weights of the features of a file."""
        if not self.nearness:
            return BY_WORDS
        have_vectors = all(hit.chunk.has_vector for hit in self.hits)
        return BY_MEANING if have_vectors else BY_SOME_MEANING


def in_order(found: Found, evidence: Mapping[str, FileEvidence]) -> list[Hit]:
    """Return the candidates with the best file first: the best chunk of each file, then the rest.

    Args:
        found: The candidates.
        evidence: The features of each of their files.

    Returns:
        Hits whose scores show how likely each is compared with the first, which has 1.
    """
    weights = found.weights
    logits = {key: linear.total(of_file, weights) for key, of_file in evidence.items()}
    highest = max(logits.values(), default=0.0)
    better: Counter[str] = Counter()
    ordered = []
    for hit in _chunks_in_order(found):
        key = hit.chunk.key
        likely = math.exp(logits[key] - highest)
        ordered.append(replace(hit, score=likely * _share_of_next(better[key])))
        better[key] += 1
    return sorted(ordered, key=lambda hit: (-hit.score, hit.chunk.key, hit.chunk.chunk_index))


def _share_of_next(better: int) -> float:
    """Return the share of a file's score that a chunk has after so many better ones."""
    return NEXT_OF_FILE * FURTHER_OF_FILE ** (better - 1) if better else 1.0


def _chunks_in_order(found: Found) -> list[Hit]:
    """Return the candidates so that the chunks of each file are in order."""

    def logit_in_file(hit: Hit) -> float:
        return chunk_order.logit(found.evidence_in_file(hit.chunk))

    return sorted(found.hits, key=logit_in_file, reverse=True)


def _second(values: Iterable[float]) -> float:
    """Return the second highest value; 0 if there is only one."""
    return next(iter(sorted(values, reverse=True)[1:]), 0.0)

"""Which file comes first: what speaks for each one, weighed by a table that was learned. Pure.

The score of a chunk tells how well a few lines answer. A large central file has a chunk that
mentions anything; a small file that is about nothing else is the better answer. So files are put in
order before their chunks are: by a linear model over a handful of features, no more than a reader
can look at. benchmarks/learn.py fits it on labelled questions and judges it on packages that it
has not seen.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from operator import mul

from vector_index_mcp.engine.signals import Context, names
from vector_index_mcp.engine.types import Hit

NEXT_OF_FILE = 0.005
"""What is left of a score for each better chunk of the same file: another file says more."""


@dataclass(frozen=True, slots=True)
class FileEvidence:
    """What speaks for one file, or against it."""

    score: float
    """Of its best chunk, as a share of the best of all."""
    second: float
    """Of its second best chunk, for itself alone: a single place may have been met by chance."""
    meaning: float
    """How near the second nearest of its chunks is, 0 to 1."""
    coverage: float
    """How much of the query its chunks hold together, 0 to 1, rare words counting more."""
    names: float
    """How much of the query stands in the names of the file, its folder and what it defines."""
    size: float
    """The natural logarithm of its number of chunks: a large file mentions anything."""


# Fitted by benchmarks/learn.py on 639 questions over 18 packages, of which 343 were written without
# rules about names and sizes: most other labels avoid the names of files and ask for small ones.
BY_MEANING = FileEvidence(4.28, 1.81, 0.36, 1.52, 1.98, -0.52)
"""In logits, where vectors were searched as well."""
BY_WORDS = FileEvidence(4.36, 1.77, 0.0, 0.68, 2.37, -0.41)


@dataclass(frozen=True, slots=True)
class Found:
    """All candidates of a question, ranked for themselves."""

    context: Context
    hits: Sequence[Hit]
    """Best first."""
    alone: Mapping[str, float]
    """By document_id: the score of a chunk whatever else its file has; the best has 1."""
    words: Mapping[str, float]
    """By document_id of what full text proposed: its BM25 score, the best has 1."""
    nearness: Mapping[str, float]
    """By document_id of what vectors proposed: its cosine, scaled to 0…1; empty without vectors."""

    def evidence(self) -> dict[str, FileEvidence]:
        """What speaks for each file, by its key, in the order of their best chunks."""
        of_file: dict[str, list[Hit]] = {}
        for hit in self.hits:
            of_file.setdefault(hit.chunk.key, []).append(hit)
        return {key: self._evidence_of(hits) for key, hits in of_file.items()}

    def _evidence_of(self, hits: Sequence[Hit]) -> FileEvidence:
        ids = [hit.chunk.document_id for hit in hits]
        held = {stem for hit in hits for stem in self.context.held[hit.chunk]}
        return FileEvidence(
            score=hits[0].score,
            second=_second(self.alone[id_] for id_ in ids),
            meaning=_second(self.nearness.get(id_, 0.0) for id_ in ids),
            coverage=self.context.share(held),
            names=self.context.share(names([hit.chunk for hit in hits])),
            size=math.log(max(1, hits[0].chunk.total_chunks)),
        )

    @property
    def weights(self) -> FileEvidence:
        """Those of what speaks for a file."""
        return BY_MEANING if self.nearness else BY_WORDS


def in_order(found: Found, evidence: Mapping[str, FileEvidence]) -> list[Hit]:
    """The candidates of a question with the best file first: one chunk of each, then the next ones.

    Args:
        found: The candidates.
        evidence: What speaks for each of their files.

    Returns:
        Hits whose scores tell how likely each is beside the first, which has 1.
    """
    logits = {key: logit(of_file, found.weights) for key, of_file in evidence.items()}
    highest = max(logits.values(), default=0.0)
    better: Counter[str] = Counter()
    ordered = []
    for hit in found.hits:
        key = hit.chunk.key
        likely = math.exp(logits[key] - highest)
        ordered.append(replace(hit, score=likely * NEXT_OF_FILE ** better[key]))
        better[key] += 1
    return sorted(ordered, key=lambda hit: (-hit.score, hit.chunk.key, hit.chunk.chunk_index))


def logit(evidence: FileEvidence, weights: FileEvidence) -> float:
    """How much speaks for a file."""
    return math.fsum(map(mul, astuple(evidence), astuple(weights)))


def _second(values: Iterable[float]) -> float:
    """The second highest; 0 if there is only one."""
    return next(iter(sorted(values, reverse=True)[1:]), 0.0)

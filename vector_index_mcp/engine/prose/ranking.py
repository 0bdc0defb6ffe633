"""The candidates of both searches to one ranking of documents. Pure.

What each step is worth is measured by benchmarks/documents.py.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vector_index_mcp.engine.types import Candidate, Hit, StoredChunk, Vector, Vectors

CANDIDATES = 100
"""Chunks asked of each search, at least."""
RERANKED = 30
"""Documents whose own score is blended with a reranker's, or with that of their neighbours."""
_RRF_K = 60  # Cormack, Clarke, Büttcher, Reciprocal Rank Fusion (SIGIR 2009)
_WEIGHT_OF_QUERY, _WEIGHT_OF_VARIANT = 2.0, 1.0
_SMOOTHED = 60  # chunks that lend each other their scores
_NEIGHBOURS = 5
# What a document's own score counts for, by its rank after fusion.
_SHARES = ((3, 0.75), (10, 0.60), (RERANKED, 0.40))
_TOO_LONG = 2.0  # for a part of a vector: those of ours are of unit length
_WORDS_WEIGHT = 1.5  # of full text beside meaning, once both are on one scale
SHARE_OF_MEANING = 1 / (1 + _WORDS_WEIGHT)
"""Of the highest score: what a chunk has whose vector is the query's, and none of its words."""
# A word that stands in a chunk of usual length adds about its IDF to a BM25 score. The IDF of a
# query's words is about half of ln(1 + chunks), and BM25 saturates at k1 + 1 = 2.2 times that.
_SATURATED = 2.2 * 0.5


@dataclass(frozen=True, slots=True)
class Variant:
    """One wording of a query, and what the two searches found for it."""

    words: int
    """How many were looked for, with repeats."""
    lexical: Sequence[Candidate]
    """Of full-text search, best first."""
    semantic: Sequence[Candidate]
    """Of vector search, best first."""
    vector: Vector


def by_words(candidates: Iterable[Candidate]) -> list[Hit]:
    """Documents by the BM25 score b of their best chunk, as b / (1 + b)."""
    found = ((hit.chunk, max(hit.score, 0.0)) for hit in _best(candidates))
    return [Hit(chunk, score / (1 + score)) for chunk, score in found]


def by_meaning(candidates: Iterable[Candidate]) -> list[Hit]:
    """Documents by the cosine of their best chunk; one below 0 counts as 0."""
    return [Hit(hit.chunk, min(max(hit.score, 0.0), 1.0)) for hit in _best(candidates)]


class Fusion:
    """Documents by words and meaning together.

    Reciprocal rank fusion says which are the best 30, and in which order. A chunk's own score is
    its cosine plus its BM25 score on the same scale. Beside it counts what a reranker says, or
    else what the chunks say that are most like it, for texts alike answer the same questions: the
    cluster hypothesis, Jardine and van Rijsbergen, The Use of Hierarchic Clustering in Information
    Retrieval (1971).
    """

    def __init__(
        self, variants: Sequence[Variant], vectors: Mapping[str, Vector], chunks_in_index: int
    ) -> None:
        """Fuse what was found.

        Args:
            variants: The first one is the query itself.
            vectors: Of the chunks that were found and have one, by document_id.
            chunks_in_index: How many there are.
        """
        found = _newest(c for v in variants for c in (*v.lexical, *v.semantic))
        by_id = {c.chunk.document_id: c.chunk for c in found}
        chunks = dict(sorted(by_id.items()))  # so that sums do not depend on the searches' order
        self._best: dict[str, Hit] = {}
        self._lent: dict[str, float] = {}
        if chunks:
            # What has just been saved has no vector yet, and is found by its words.
            without = np.zeros_like(variants[0].vector)
            usable = {id_: v for id_, v in vectors.items() if np.abs(v).max() < _TOO_LONG}
            matrix = np.stack([usable.get(id_, without) for id_ in chunks])
            own = _own_scores(variants, [*chunks], matrix, chunks_in_index)
            self._best = {hit.chunk.key: hit for hit in _scored(chunks.values(), own)}
            self._lent = _lent_scores([*chunks.values()], own, matrix)
        self._order = [key for key in _fused(variants) if key in self._best]

    @property
    def fused(self) -> list[Hit]:
        """The best chunk of each document, in the order of the fusion."""
        return [self._best[key] for key in self._order]

    @property
    def to_rerank(self) -> list[Hit]:
        """Those that a reranker may judge."""
        return self.fused[:RERANKED]

    def ranked(self, judged: Mapping[str, float] | None = None) -> list[Hit]:
        """All documents, best first, with scores from 1 down to 0.

        Args:
            judged: What a reranker says of those `to_rerank`, 0 to 1, by key; None without one.
        """
        if not self._order:
            return []
        scale = 1 + _WORDS_WEIGHT  # the highest score of its own that a chunk can have
        lent = self._lent
        if judged is not None:
            lent = {key: scale * score for key, score in judged.items()}
        least = min(lent.values(), default=0.0)
        blended = []
        for rank, hit in enumerate(self.to_rerank):
            share = next(share for until, share in _SHARES if rank < until)
            score = share * hit.score + (1 - share) * lent.get(hit.chunk.key, least)
            blended.append(Hit(hit.chunk, score))
        blended.sort(key=_place)
        rest, last = self.fused[RERANKED:], blended[-1].score
        for rank, hit in enumerate(rest, 1):  # below all that was reranked
            blended.append(Hit(hit.chunk, last * (1 - rank / (len(rest) + 1))))
        return [Hit(hit.chunk, min(max(hit.score / scale, 0.0), 1.0)) for hit in blended]


def _own_scores(
    variants: Sequence[Variant], ids: Sequence[str], matrix: Vectors, chunks_in_index: int
) -> Vectors:
    """For each chunk, cosine and BM25 together, over all variants.

    Neither is stretched to the range that it has among the candidates: where the best match of
    words is poor, words have little say.
    """
    total, weights = np.zeros(len(ids), np.float32), 0.0
    for number, variant in enumerate(variants):
        scores = {c.chunk.document_id: c.score for c in _newest(variant.lexical)}
        lexical = np.array([scores.get(id_, 0.0) for id_ in ids], np.float32)
        highest = _SATURATED * max(variant.words, 1) * np.log1p(max(chunks_in_index, 1))
        weight = _WEIGHT_OF_VARIANT if number else _WEIGHT_OF_QUERY
        cosines = np.nan_to_num(matrix @ variant.vector)
        total += weight * (cosines + _WORDS_WEIGHT * lexical / highest)
        weights += weight
    return total / np.float32(weights)


def _lent_scores(chunks: Sequence[StoredChunk], own: Vectors, matrix: Vectors) -> dict[str, float]:
    """By document, the mean score of the chunks that are most like its own, by likeness."""
    order = np.argsort(-own, kind="stable")[:_SMOOTHED]
    lenders, scores, vectors = [chunks[n] for n in order], own[order], matrix[order]
    if len(lenders) > 1:
        likeness = np.maximum(vectors @ vectors.T, 0.0)
        np.fill_diagonal(likeness, 0.0)
        kept = min(_NEIGHBOURS, len(lenders) - 1)
        least = -np.partition(-likeness, kept - 1, axis=1)[:, kept - 1 : kept]
        likeness[likeness < least] = 0.0
        total = likeness.sum(axis=1)
        means = likeness @ scores / np.maximum(total, 1e-9)
        scores = np.where(total > 0, means, scores)
    return {hit.chunk.key: hit.score for hit in _scored(lenders, scores)}


def _fused(variants: Sequence[Variant]) -> list[str]:
    """The keys of all documents found, by reciprocal rank fusion."""
    scores: dict[str, float] = {}
    for number, variant in enumerate(variants):
        weight = _WEIGHT_OF_VARIANT if number else _WEIGHT_OF_QUERY
        for candidates in (variant.lexical, variant.semantic):
            for rank, hit in enumerate(_best(candidates), 1):
                key = hit.chunk.key
                scores[key] = scores.get(key, 0.0) + weight / (_RRF_K + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))


def _scored(chunks: Iterable[StoredChunk], scores: Vectors) -> list[Hit]:
    return _best(
        Candidate(chunk, float(score)) for chunk, score in zip(chunks, scores, strict=True)
    )


def _best(candidates: Iterable[Candidate]) -> list[Hit]:
    """The best chunk of each document in its newest generation, best first."""
    best: dict[str, Hit] = {}
    for chunk, score in ((c.chunk, c.score) for c in _newest(candidates)):
        known = best.get(chunk.key)
        if known is None or _is_better(score, chunk, known):
            best[chunk.key] = Hit(chunk, score)
    return sorted(best.values(), key=_place)


def _is_better(score: float, chunk: StoredChunk, known: Hit) -> bool:
    """Whether a chunk comes before one of the same document; of equals, the first one does."""
    is_earlier = chunk.chunk_index < known.chunk.chunk_index
    return score > known.score or (score == known.score and is_earlier)


def _newest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those of each document's newest generation, without scores that are no numbers."""
    candidates = [*candidates]
    newest: dict[str, int] = {}
    for candidate in candidates:
        chunk = candidate.chunk
        newest[chunk.key] = max(newest.get(chunk.key, chunk.revision), chunk.revision)
    return [
        candidate
        for candidate in candidates
        if candidate.chunk.revision == newest[candidate.chunk.key]
        and math.isfinite(candidate.score)
    ]


def _place(hit: Hit) -> tuple[float, str]:
    return -hit.score, hit.chunk.key

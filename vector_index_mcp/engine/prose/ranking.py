"""Ranks documents by the candidates of both searches. Pure.

benchmarks/documents.py measures what each step is worth.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vector_index_mcp.engine.types import Candidate, Hit, StoredChunk, Vector, Vectors

CANDIDATES = 100
"""The fewest chunks to take from each search."""
RERANKED = 30
"""How many documents get their score blended with a reranker's or with their neighbours'."""
_RRF_K = 60  # Cormack, Clarke, Büttcher, Reciprocal Rank Fusion (SIGIR 2009)
_WEIGHT_OF_QUERY, _WEIGHT_OF_VARIANT = 2.0, 1.0
_SMOOTHED = 60  # how many of the best chunks lend each other their scores
_NEIGHBOURS = 5  # how many chunks lend their scores to each
# The share of a document's own score, by its rank after fusion: (up to rank, share).
_SHARES = ((3, 0.75), (10, 0.60), (RERANKED, 0.40))
_TOO_LONG = 2.0  # a vector with a number this large is broken: all have unit length
_WORDS_WEIGHT = 1.5  # of full text compared with meaning, once both are on one scale
SHARE_OF_MEANING = 1 / (1 + _WORDS_WEIGHT)
"""The score of a chunk whose vector equals the query's, but which has none of its words."""
# A word in a chunk of usual length adds about its IDF to a BM25 score. The IDF of a query's words
# is about half of ln(1 + chunks), and BM25 saturates at k1 + 1 = 2.2 times the IDF.
_SATURATED = 2.2 * 0.5


@dataclass(frozen=True, slots=True)
class Variant:
    """One wording of a query, and the candidates that both searches found for it."""

    words: int
    """How many words were searched for, with repeats."""
    lexical: Sequence[Candidate]
    """The candidates of full-text search, best first."""
    semantic: Sequence[Candidate]
    """The candidates of vector search, best first."""
    vector: Vector


def by_words(candidates: Iterable[Candidate]) -> list[Hit]:
    """Rank documents by the BM25 score b of their best chunk; the hit's score is b / (1 + b)."""
    found = ((hit.chunk, max(hit.score, 0.0)) for hit in _best(candidates))
    return [Hit(chunk, score / (1 + score)) for chunk, score in found]


def by_meaning(candidates: Iterable[Candidate]) -> list[Hit]:
    """Rank documents by the cosine of their best chunk; a negative cosine counts as 0."""
    return [Hit(hit.chunk, min(max(hit.score, 0.0), 1.0)) for hit in _best(candidates)]


class Fusion:
    """Ranks documents by words and meaning together.

    Reciprocal rank fusion chooses and orders the best 30. A chunk's own score is its cosine plus
    its BM25 score on the same scale. It is blended with the score of a reranker or, without one,
    with the scores of the most similar chunks, because similar texts answer the same questions: the
    cluster hypothesis, Jardine and van Rijsbergen, The Use of Hierarchic Clustering in Information
    Retrieval (1971).
    """

    def __init__(
        self, variants: Sequence[Variant], vectors: Mapping[str, Vector], chunks_in_index: int
    ) -> None:
        """Fuse the candidates.

        Args:
            variants: The wordings of the query; the first one is the query itself.
            vectors: The vectors of the candidates that have one, by document_id.
            chunks_in_index: How many chunks the index has.
        """
        found = _newest(c for v in variants for c in (*v.lexical, *v.semantic))
        by_id = {c.chunk.document_id: c.chunk for c in found}
        chunks = dict(sorted(by_id.items()))  # so that sums do not depend on the order
        self._best: dict[str, Hit] = {}
        self._lent: dict[str, float] = {}
        if chunks:
            # A chunk that was just saved has no vector yet; only its words found it.
            without = np.zeros_like(variants[0].vector)
            usable = {id_: v for id_, v in vectors.items() if np.abs(v).max() < _TOO_LONG}
            matrix = np.stack([usable.get(id_, without) for id_ in chunks])
            own = _own_scores(variants, [*chunks], matrix, chunks_in_index)
            self._best = {hit.chunk.key: hit for hit in _scored(chunks.values(), own)}
            self._lent = _lent_scores([*chunks.values()], own, matrix)
        self._order = [key for key in _fused(variants) if key in self._best]

    @property
    def fused(self) -> list[Hit]:
        """The best chunk of each document, in the order of the fusion, with its own score."""
        return [self._best[key] for key in self._order]

    @property
    def to_rerank(self) -> list[Hit]:
        """The hits that a reranker may judge."""
        return self.fused[:RERANKED]

    def ranked(self, judged: Mapping[str, float] | None = None) -> list[Hit]:
        """Return all documents, best first, with scores from 1 down to 0.

        Args:
            judged: A reranker's scores of `to_rerank`, 0 to 1, by key; None without a reranker.
        """
        if not self._order:
            return []
        scale = 1 + _WORDS_WEIGHT  # the highest own score that a chunk can have
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
        for rank, hit in enumerate(rest, 1):  # all below the reranked ones
            blended.append(Hit(hit.chunk, last * (1 - rank / (len(rest) + 1))))
        return [Hit(hit.chunk, min(max(hit.score / scale, 0.0), 1.0)) for hit in blended]


def _own_scores(
    variants: Sequence[Variant], ids: Sequence[str], matrix: Vectors, chunks_in_index: int
) -> Vectors:
    """Return the own score of each chunk: cosine plus BM25, averaged over all variants.

    Neither is stretched to its range among the candidates. So if even the best match of words is
    poor, words count little.
    """
    total, weights = np.zeros(len(ids), np.float32), 0.0
    has_vector = matrix.any(axis=1)
    for number, variant in enumerate(variants):
        scores = {c.chunk.document_id: c.score for c in _newest(variant.lexical)}
        lexical = np.array([scores.get(id_, 0.0) for id_ in ids], np.float32)
        highest = _SATURATED * max(variant.words, 1) * np.log1p(max(chunks_in_index, 1))
        weight = _WEIGHT_OF_VARIANT if number else _WEIGHT_OF_QUERY
        cosines = np.nan_to_num(matrix @ variant.vector)
        # Without a vector, it counts as near as those usually are that have words of the query.
        alike = cosines[has_vector & (lexical > 0)]
        cosines[~has_vector] = alike.mean() if len(alike) else 0.0
        total += weight * (cosines + _WORDS_WEIGHT * lexical / highest)
        weights += weight
    return total / np.float32(weights)


def _lent_scores(chunks: Sequence[StoredChunk], own: Vectors, matrix: Vectors) -> dict[str, float]:
    """Return, by document, the mean score of the most similar chunks, weighted by similarity."""
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
    """Return the keys of all documents found, ordered by reciprocal rank fusion."""
    scores: dict[str, float] = {}
    for number, variant in enumerate(variants):
        weight = _WEIGHT_OF_VARIANT if number else _WEIGHT_OF_QUERY
        for candidates in (variant.lexical, variant.semantic):
            for rank, hit in enumerate(_best(candidates), 1):
                key = hit.chunk.key
                # A chunk without a vector is in one of both rankings; there it counts for both.
                times = 1 if hit.chunk.has_vector else 2
                scores[key] = scores.get(key, 0.0) + times * weight / (_RRF_K + rank)
    return sorted(scores, key=lambda key: (-scores[key], key))


def _scored(chunks: Iterable[StoredChunk], scores: Vectors) -> list[Hit]:
    return _best(
        Candidate(chunk, float(score)) for chunk, score in zip(chunks, scores, strict=True)
    )


def _best(candidates: Iterable[Candidate]) -> list[Hit]:
    """Return the best chunk of each document, best first; only its newest revision counts."""
    best: dict[str, Hit] = {}
    for chunk, score in ((c.chunk, c.score) for c in _newest(candidates)):
        known = best.get(chunk.key)
        if known is None or _is_better(score, chunk, known):
            best[chunk.key] = Hit(chunk, score)
    return sorted(best.values(), key=_place)


def _is_better(score: float, chunk: StoredChunk, known: Hit) -> bool:
    """Return whether a chunk is better than `known`; of equals, the earlier one is."""
    is_earlier = chunk.chunk_index < known.chunk.chunk_index
    return score > known.score or (score == known.score and is_earlier)


def _newest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates of each document's newest revision whose score is finite."""
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

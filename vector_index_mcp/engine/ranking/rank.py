"""Ranks the candidates of both searches in one order. Pure."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from vector_index_mcp.engine.kinds import DOCS, kinds_of
from vector_index_mcp.engine.ranking.file_order import FileEvidence, Found, in_order
from vector_index_mcp.engine.ranking.likelihood import (
    BY_MEANING,
    BY_WORDS,
    JUDGED_TOGETHER,
    contributions,
    cosines_of,
    evidence_of,
    in_agreement,
    likelihood,
)
from vector_index_mcp.engine.ranking.query import Query
from vector_index_mcp.engine.ranking.signals import SIGNALS, Weights, context
from vector_index_mcp.engine.ranking.why import why
from vector_index_mcp.engine.types import Candidate, Hit, StoredChunk

WEIGHTS = Weights()
# A cosine this far below the best counts 0. Chosen on 36 packages (benchmarks/README.md).
_SPAN = 0.4
_WEAK = 0.2  # the likelihood of the best hit below which another kind of file may answer
_PLACE_OF_DOCUMENT = 4  # the last of the five hits that are shown by default
MOST_OTHERS = 6
"""How many other chunks of its file a hit names at most; some may be hits themselves."""
STEPS = frozenset({"support", "spread", "files"})
"""The steps of a ranking beside SIGNALS; benchmarks can leave them out as well."""


def rank(
    query: Query,
    lexical: Sequence[Candidate],
    semantic: Sequence[Candidate],
    *,
    weights: Weights = WEIGHTS,
    without: Collection[str] = (),
) -> list[Hit]:
    """Return all candidates, best first.

    Args:
        query: The query.
        lexical: The candidates of full-text search, best first.
        semantic: The candidates of vector search, best first; empty if there was none.
        weights: How strong the signals are.
        without: Names of SIGNALS and STEPS to leave out.

    Returns:
        Hits with scores from 1 (the best) down to 0. If a file was replaced during the search, only
        its newest chunks count.
    """
    found = found_for(query, lexical, semantic, weights=weights, without=without)
    return _with_files_in_order(found, without)[0]


def best(
    query: Query, lexical: Sequence[Candidate], semantic: Sequence[Candidate], limit: int
) -> list[Hit]:
    """Return the first `limit` hits, each with its likelihood and other chunks of its file.

    A hit is often in the right file, but beside the right chunk. Of 136 questions with labelled
    lines, the first five hits contained those lines for 74 %; together with the next three chunks
    of each hit's file, for 89 % (benchmarks/labels, six packages).
    """
    found = found_for(query, lexical, semantic)
    hits, files = _with_files_in_order(found)
    by_file: dict[str, list[StoredChunk]] = {}
    for hit in hits:
        by_file.setdefault(hit.chunk.key, []).append(hit.chunk)
    cosines = cosines_of(lexical, semantic)
    judged = _judged(hits[: max(limit, JUDGED_TOGETHER)], found, cosines)
    if judged and likelihood(judged[0]) < _WEAK:
        in_order_of_code, hits = hits, _with_a_document(hits, found)
        if hits is not in_order_of_code:
            judged = _judged(hits[: max(limit, JUDGED_TOGETHER)], found, cosines)
    shown = []
    for hit, parts in zip(hits[:limit], judged, strict=False):
        others = [other for other in by_file[hit.chunk.key] if other is not hit.chunk]
        because = why(found, hit.chunk, files.get(hit.chunk.key), parts)
        also = tuple(others[:MOST_OTHERS])
        shown.append(replace(hit, likelihood=likelihood(parts), also=also, why=because))
    return shown


def _with_files_in_order(
    found: Found, without: Collection[str] = ()
) -> tuple[list[Hit], dict[str, FileEvidence]]:
    """Return all hits, and what speaks for their files; identifiers are ordered by chunks alone."""
    if not found.context.is_question or "files" in without:
        return list(found.hits), {}
    files = found.evidence()
    return in_order(found, files), files


def _with_a_document(hits: list[Hit], found: Found) -> list[Hit]:
    """Return the hits with a document in its place, if one matches best by words or by meaning.

    Documents count less than code, since most questions are answered by code. Where no code is
    likely, the question may be one of the others, and a guide or an FAQ answers it.
    """
    if not found.context.is_question:
        return hits
    for place, hit in enumerate(hits):
        chunk, id_ = hit.chunk, hit.chunk.document_id
        is_best = 1.0 in (found.words.get(id_), found.nearness.get(id_))
        if is_best and DOCS in kinds_of(chunk.key, chunk.language) and place > _PLACE_OF_DOCUMENT:
            before = hits[:_PLACE_OF_DOCUMENT]
            moved = replace(hit, score=hits[_PLACE_OF_DOCUMENT].score)
            return [
                *before,
                moved,
                *(each for each in hits[_PLACE_OF_DOCUMENT:] if each is not hit),
            ]
    return hits


def _judged(
    hits: Sequence[Hit], found: Found, cosines: Mapping[str, float]
) -> list[dict[str, float]]:
    """Return what makes each hit likely to be right, in logits."""
    judged = []
    for chunk in speaking_for(hits, found):
        evidence = evidence_of(found.context, chunk, found.alone[chunk.document_id], cosines)
        is_by_meaning = cosines and chunk.has_vector
        judged.append(contributions(evidence, BY_MEANING if is_by_meaning else BY_WORDS))
    return in_agreement(judged)


def speaking_for(hits: Iterable[Hit], found: Found) -> list[StoredChunk]:
    """Return, for each hit, the chunk that shows how likely it is right.

    For a question, that is the chunk of its file with the best score, whichever place of the file
    is shown: the file is as likely the right one. For a symbol, each hit speaks for itself.
    """
    if not found.context.is_question:
        return [hit.chunk for hit in hits]
    best_of: dict[str, StoredChunk] = {}
    for each in found.hits:
        best_of.setdefault(each.chunk.key, each.chunk)
    return [best_of[hit.chunk.key] for hit in hits]


def followed_by(first: Iterable[Hit], others: Iterable[Hit]) -> list[Hit]:
    """Return the hits of one ranking, then what another has besides.

    No hit has a higher score or likelihood than one before it.
    """
    found: dict[str, Hit] = {}
    score, likely = 1.0, 1.0
    for hit in chain(first, others):
        if hit.chunk.document_id not in found:
            score, likely = min(score, hit.score), min(likely, hit.likelihood)
            found[hit.chunk.document_id] = replace(hit, score=score, likelihood=likely)
    return list(found.values())


def found_for(
    query: Query,
    lexical: Sequence[Candidate],
    semantic: Sequence[Candidate],
    *,
    weights: Weights = WEIGHTS,
    without: Collection[str] = (),
) -> Found:
    """Return all candidates, ranked chunk by chunk; for the arguments see `rank`."""
    lexical, semantic = of_newest_revisions(lexical, semantic)
    share = weights.semantic_for_symbols if query.is_symbol else weights.semantic
    highest = max((c.score for c in lexical), default=0.0) or 1.0
    matched = {c.chunk.document_id: c.score / highest for c in lexical}
    nearness = _nearness(cosines_of(lexical, semantic))
    if nearness:  # without any, all count by their words
        nearness = _words_of_those_without_vectors(lexical, matched) | nearness
    scores = _fused(matched, nearness, share)
    found = sorted((c.chunk for c in (*lexical, *semantic)), key=_place)
    chunks = {chunk.document_id: chunk for chunk in found}
    ctx = context(query, weights, list(chunks.values()))
    for name, signal in SIGNALS.items():
        if name not in without:
            for id_, chunk in chunks.items():
                scores[id_] *= signal(ctx, chunk)
    alone = _scaled(scores)
    if "support" not in without:
        _support(scores, chunks, weights.support)
    if "spread" not in without:
        _spread(scores, chunks, weights.repeated)
    hits = [Hit(chunks[id_], score) for id_, score in _scaled(scores).items()]
    hits.sort(key=lambda hit: (-hit.score, *_place(hit.chunk)))
    return Found(ctx, hits, alone, matched, nearness)


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    highest = max(scores.values(), default=0.0) or 1.0
    return {id_: score / highest for id_, score in scores.items()}


def _place(chunk: StoredChunk) -> tuple[str, int]:
    """Return a key that orders equals, so that the order of the searches does not matter."""
    return chunk.key, chunk.chunk_index


def of_newest_revisions(*rankings: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return `rankings` without chunks of older revisions of a file that has newer ones."""
    newest: dict[str, int] = {}
    for ranking in rankings:
        for candidate in ranking:
            chunk = candidate.chunk
            newest[chunk.key] = max(newest.get(chunk.key, 0), chunk.revision)
    return [[c for c in ranking if c.chunk.revision == newest[c.chunk.key]] for ranking in rankings]


def _nearness(cosines: Mapping[str, float]) -> dict[str, float]:
    """Return cosines, scaled to 0…1, by document_id."""
    highest = max(cosines.values(), default=0.0)
    return {id_: max(0.0, 1 - (highest - cosine) / _SPAN) for id_, cosine in cosines.items()}


def _words_of_those_without_vectors(
    lexical: Sequence[Candidate], matched: Mapping[str, float]
) -> dict[str, float]:
    """Return what stands for the meaning of chunks that are not embedded yet, by document_id.

    They count by their words alone. If their meaning counted 0, any chunk with a vector would come
    before them: with vectors of 30 % of the files, NDCG@10 was 0.573, now 0.718, and 0.707
    by words alone (benchmarks/README.md).
    """
    lacking = (c.chunk.document_id for c in lexical if not c.chunk.has_vector)
    return {id_: matched[id_] for id_ in lacking}


def _fused(
    matched: Mapping[str, float], nearness: Mapping[str, float], share: float
) -> dict[str, float]:
    """Return scores by document_id: a convex combination of both scores, each scaled to 0…1.

    It beats reciprocal rank fusion once its one parameter is chosen: Bruch, Gai, Ingber, An
    Analysis of Fusion Functions for Hybrid Retrieval (TOIS 2023), section 5. BM25 scores need no
    lower bound but 0, their lowest value; cosines do (see `_SPAN`).
    """
    if not nearness:
        share = 0.0
    elif not matched:
        share = 1.0
    scores = {id_: (1 - share) * score for id_, score in matched.items()}
    for id_, near in nearness.items():
        scores[id_] = scores.get(id_, 0.0) + share * near
    return scores


def _support(scores: dict[str, float], chunks: dict[str, StoredChunk], weight: float) -> None:
    """Raise the best chunk of each file by the sum of the scores of the file's candidates.

    A file with five good chunks is more likely the right one than a file with a single one.
    """
    together: Counter[str] = Counter()
    best: dict[str, str] = {}
    for id_, chunk in chunks.items():
        key, score = chunk.key, scores[id_]
        together[key] += score  # type: ignore[assignment]  # a Counter of floats
        if key not in best or score > scores[best[key]]:
            best[key] = id_
    highest, most = max(scores.values(), default=0.0), max(together.values(), default=0)
    if most > 0:
        for key, id_ in best.items():
            scores[id_] += weight * highest * together[key] / most


def _spread(scores: dict[str, float], chunks: dict[str, StoredChunk], left: float) -> None:
    """Lower each chunk once for every better one of its file, so that other files come up."""
    better: Counter[str] = Counter()
    for id_ in sorted(chunks, key=lambda id_: -scores[id_]):
        key = chunks[id_].key
        scores[id_] *= left ** better[key]
        better[key] += 1

"""Candidate lists to one ranking. Pure."""

from collections.abc import Sequence

from vector_index_mcp.engine.types import Hit, StoredChunk

RRF_K = 60  # Cormack, Clarke, Buettcher: Reciprocal Rank Fusion (SIGIR 2009), section 3
MAX_PER_FILE = 3  # a fourth chunk of one file tells less than the first of another


def fuse(rankings: Sequence[Sequence[StoredChunk]]) -> list[Hit]:
    """Merge rankings by reciprocal rank fusion, best first.

    score(d) = sum over the rankings that hold d of 1 / (k + rank(d)), as a share of the highest
    possible sum, so that 1.0 is "first everywhere". A chunk met twice, because its file was being
    replaced while the search ran, counts once and in its newest generation.
    """
    newest: dict[str, int] = {}
    for ranking in rankings:
        for chunk in ranking:
            newest[chunk.key] = max(newest.get(chunk.key, 0), chunk.revision)
    chunks: dict[str, StoredChunk] = {}
    scores: dict[str, float] = {}
    for ranking in rankings:
        current = {c.document_id: c for c in ranking if c.revision == newest[c.key]}
        for rank, (document_id, chunk) in enumerate(current.items(), start=1):
            chunks[document_id] = chunk
            scores[document_id] = scores.get(document_id, 0.0) + 1.0 / (RRF_K + rank)
    highest = len(rankings) / (RRF_K + 1)
    hits = [Hit(chunks[i], min(1.0, score / highest)) for i, score in scores.items()]
    return sorted(hits, key=lambda hit: (-hit.score, hit.chunk.key, hit.chunk.chunk_index))


def spread(hits: Sequence[Hit], limit: int, per_file: int = MAX_PER_FILE) -> list[Hit]:
    """The first `limit` hits with at most `per_file` of one file.

    What the cap held back fills the end when nothing else is left.
    """
    taken: list[Hit] = []
    held_back: list[Hit] = []
    count: dict[str, int] = {}
    for hit in hits:
        key = hit.chunk.key
        count[key] = count.get(key, 0) + 1
        (taken if count[key] <= per_file else held_back).append(hit)
    return (taken + held_back)[:limit]

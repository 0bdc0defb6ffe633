"""Stored chunks and candidates as the searches propose them, for tests of what ranks them."""

from vector_index_mcp.engine.types import Candidate, StoredChunk


def stored(
    key,
    index=0,
    *,
    text="",
    scope="",
    symbols=(),
    language="python",
    revision=1,
    total_chunks=1,
    has_vector=True,
):
    """A chunk of the file `key`."""
    return StoredChunk(
        document_id=f"{key}::{index}",
        key=key,
        original_path=key,
        content_hash="",
        modified=0.0,
        chunk_index=index,
        total_chunks=total_chunks,
        text=text,
        chunk_hash="",
        start_line=1,
        end_line=1,
        language=language,
        scope=scope,
        symbols=tuple(symbols),
        revision=revision,
        has_vector=has_vector,
    )


def candidates(scores):
    """A search's proposals, best first, given as {chunk: score} or {key: score}."""
    proposed = [
        Candidate(stored(chunk) if isinstance(chunk, str) else chunk, score)
        for chunk, score in scores.items()
    ]
    return sorted(proposed, key=lambda candidate: -candidate.score)

"""Explains the place of a hit: the features that count for it, and their weights. Pure."""

from collections.abc import Mapping

from vector_index_mcp.engine.ranking.chunk_order import WEIGHTS
from vector_index_mcp.engine.ranking.file_order import FileEvidence, Found
from vector_index_mcp.engine.ranking.linear import weighed
from vector_index_mcp.engine.ranking.signals import SIGNALS
from vector_index_mcp.engine.types import StoredChunk, Why


def why(
    found: Found, chunk: StoredChunk, file: FileEvidence | None, likelihood: Mapping[str, float]
) -> Why:
    """Return the explanation of a chunk's place.

    Args:
        found: All candidates.
        chunk: One of them.
        file: The features of its file; None if files were not ordered.
        likelihood: What each feature adds to its likelihood, in logits.
    """
    id_ = chunk.document_id
    factors = {name: signal(found.context, chunk) for name, signal in SIGNALS.items()}
    return Why(
        words=found.words.get(id_, 0.0),
        meaning=found.nearness.get(id_) if chunk.has_vector else None,
        factors={name: factor for name, factor in factors.items() if factor != 1},
        chunk=found.alone[id_],
        file={} if file is None else _of_file(file, found.weights),
        likelihood=likelihood,
        in_file={} if file is None else weighed(found.evidence_in_file(chunk), WEIGHTS),
    )


def _of_file(file: FileEvidence, weights: FileEvidence) -> dict[str, float]:
    """Return what each feature of a file adds, without features that have no weight."""
    return {name: part for name, part in weighed(file, weights).items() if getattr(weights, name)}

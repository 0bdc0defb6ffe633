"""Why a hit stands where it does: what speaks for it, and what each part is worth. Pure."""

from collections.abc import Mapping

from vector_index_mcp.engine.file_order import FileEvidence, Found
from vector_index_mcp.engine.linear import weighed
from vector_index_mcp.engine.signals import SIGNALS
from vector_index_mcp.engine.types import StoredChunk, Why


def why(
    found: Found, chunk: StoredChunk, file: FileEvidence | None, likelihood: Mapping[str, float]
) -> Why:
    """What the place of a chunk comes from.

    Args:
        found: The candidates that it was ranked among.
        chunk: One of them.
        file: What speaks for its file; None if files were not put in order.
        likelihood: What its likelihood adds up from, in logits.
    """
    id_ = chunk.document_id
    factors = {name: signal(found.context, chunk) for name, signal in SIGNALS.items()}
    return Why(
        words=found.words.get(id_, 0.0),
        meaning=found.nearness.get(id_),
        factors={name: factor for name, factor in factors.items() if factor != 1},
        chunk=found.alone[id_],
        file={} if file is None else _of_file(file, found.weights),
        likelihood=likelihood,
    )


def _of_file(file: FileEvidence, weights: FileEvidence) -> dict[str, float]:
    """What speaks for a file, without what counts for nothing."""
    return {name: part for name, part in weighed(file, weights).items() if getattr(weights, name)}

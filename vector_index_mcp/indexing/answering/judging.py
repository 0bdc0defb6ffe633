"""Has a cross-encoder score the texts that a search has found, if it answers in time."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.errors import EmbeddingError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well texts answer a query."""

    scores: Sequence[float] | None = None
    """From 0 to 1, in the order of the texts; None if there are no scores."""
    lack: str = ""
    """Why the cross-encoder gave no scores; empty if it did, or if none was configured or needed.

    It continues a sentence about the cross-encoder: "it is still loading".
    """


async def judged(
    embedder: Embedder, query: str, texts: Sequence[str], seconds: float, *, waits_to_load: bool
) -> Judgement:
    """Score how well `texts` answer `query`. Never raises.

    Args:
        embedder: Has the cross-encoder, if one is configured.
        query: The query.
        texts: The texts to score.
        seconds: The longest wait for the scores.
        waits_to_load: Whether to wait also if the cross-encoder is not loaded yet. Otherwise this
            begins loading it and returns at once.
    """
    if not (texts and embedder.has_reranker):
        return Judgement()
    if embedder.reranker_state != "ready":
        embedder.start_reranker()
        if reason := embedder.reranker_reason:
            return Judgement(lack=f"{reason}; check VECTOR_INDEX_RERANK_MODEL")
        if not waits_to_load:
            return Judgement(lack="it is still loading")
    try:
        with anyio.fail_after(seconds):
            return Judgement(await embedder.scores(query, texts, seconds))
    except TimeoutError:
        return Judgement(lack=f"it took longer than {seconds:g} s")
    except EmbeddingError as error:
        _log.warning("the cross-encoder does not answer (%r)", error)
        return Judgement(lack="it failed; the log says why")

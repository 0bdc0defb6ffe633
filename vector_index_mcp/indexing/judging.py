"""What a cross-encoder says of what a search has found, if it says that in time."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.errors import EmbeddingError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How well texts answer a query."""

    scores: Sequence[float] | None = None
    """From 0 to 1, in the order of the texts; None if nobody has judged them."""
    lack: str = ""
    """Why not, of the cross-encoder; empty where there is no cross-encoder, or nothing to judge."""


async def judged(
    embedder: Embedder, query: str, texts: Sequence[str], seconds: float, *, waits_to_load: bool
) -> Judgement:
    """What the cross-encoder says of `texts`. Never raises.

    Args:
        embedder: Has the cross-encoder, if anybody has.
        query: What was asked.
        texts: What may answer it.
        seconds: How long to wait for it.
        waits_to_load: Whether that goes for a cross-encoder that is still to be loaded. Otherwise
            only the loading is begun.
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

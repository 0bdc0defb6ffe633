"""Lets an embedder use the cross-encoder of another one."""

from collections.abc import Sequence

from vector_index_mcp.engine.models.embedder import Embedder, EmbedderState


class JudgedApart:
    """The part of `Embedder` about the cross-encoder, passed on to another embedder."""

    def __init__(self, reranker: Embedder) -> None:
        """Prepare.

        Args:
            reranker: The embedder whose cross-encoder judges; it may have none.
        """
        self._reranker = reranker

    @property
    def pid(self) -> int | None:
        """The id of the worker that judges; None while there is none."""
        return self._reranker.pid

    @property
    def sharers(self) -> int:
        """How many services use that worker, this one included; 0 if it is not shared."""
        return self._reranker.sharers

    @property
    def has_reranker(self) -> bool:
        """Whether `scores` can be called."""
        return self._reranker.has_reranker

    @property
    def reranker_state(self) -> EmbedderState:
        """See `Embedder`."""
        return self._reranker.reranker_state

    @property
    def reranker_reason(self) -> str:
        """See `Embedder`."""
        return self._reranker.reranker_reason

    def start_reranker(self) -> None:
        """See `Embedder`."""
        self._reranker.start_reranker()

    async def scores(
        self, query: str, texts: Sequence[str], seconds: float | None = None
    ) -> list[float]:
        """Return how well each of `texts` answers `query`; see `Embedder`."""
        return await self._reranker.scores(query, texts, seconds)

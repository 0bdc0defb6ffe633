"""An embedder whose cross-encoder is that of another one: what embeds need not be what judges."""

from collections.abc import Sequence

from vector_index_mcp.engine.embedder import Embedder, EmbedderState


class JudgedApart:
    """The part of `Embedder` that has to do with the cross-encoder and its process."""

    def __init__(self, reranker: Embedder) -> None:
        """Prepare.

        Args:
            reranker: Judges how well texts answer a query; it may be one that cannot.
        """
        self._reranker = reranker

    @property
    def pid(self) -> int | None:
        """Of the worker that judges, while it runs."""
        return self._reranker.pid

    @property
    def sharers(self) -> int:
        """How many use that worker, we among them; 0 if it is ours alone."""
        return self._reranker.sharers

    @property
    def has_reranker(self) -> bool:
        """Whether `scores` can be asked."""
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
        """How well each of `texts` answers `query`; see `Embedder`."""
        return await self._reranker.scores(query, texts, seconds)

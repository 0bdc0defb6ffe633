"""What turns texts into vectors, as whoever needs vectors sees it. `embed` is the real one."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

from vector_index_mcp.engine.types import ModelIdentity, Vector, Vectors

EmbedderState: TypeAlias = Literal["off", "loading", "ready", "unavailable"]


class Embedder(Protocol):
    """What turns texts into vectors: the worker, or a fake in tests."""

    @property
    def state(self) -> EmbedderState:
        """`off` until it is needed, and after it has rested."""

    @property
    def reason(self) -> str:
        """Why it is unavailable, and the remedy; otherwise empty."""

    @property
    def precision(self) -> str:
        """The number format it computes in; empty until it is ready."""

    @property
    def pid(self) -> int | None:
        """Of the process that holds the model, if there is one."""

    @property
    def sharers(self) -> int:
        """How many use that process, we among them; 0 if it is ours alone."""

    @property
    def notice(self) -> str:
        """Where it embeds, if that is no worker, and what must be known about it; else empty."""

    def running(self) -> AbstractAsyncContextManager[object]:
        """The time in which the other methods may be used."""

    async def identity(self) -> ModelIdentity:
        """Which model it is. Known well before the model is loaded.

        Raises:
            ModelNotFoundError: If there is none.
        """

    async def identity_at_hand(self) -> ModelIdentity | None:
        """Which model it is; None unless known without starting anything. Never raises."""

    async def embed(self, texts: Sequence[str], *, urgent: bool = False) -> Vectors:
        """Embed `texts` as texts to be found; as queries, before all others, if `urgent`.

        Returns:
            float32 array of shape (len(texts), dimension); rows of unit length, in order.

        Raises:
            ModelNotFoundError: If there is no model.
            EmbeddingError: If these texts cannot be embedded, or the worker died on them.
        """

    async def asked(self, text: str) -> tuple[Vector, ModelIdentity] | None:
        """A query's embedding and its model, at once; None if that takes more. Never raises."""

    @property
    def has_reranker(self) -> bool:
        """Whether `scores` can be asked."""

    @property
    def reranker_state(self) -> EmbedderState:
        """`off` until it is needed, and whenever there is no worker."""

    @property
    def reranker_reason(self) -> str:
        """Why it is unavailable; otherwise empty."""

    async def scores(
        self, query: str, texts: Sequence[str], seconds: float | None = None
    ) -> list[float]:
        """How well each of `texts` answers `query`, 0 to 1, as a cross-encoder sees it.

        Args:
            query: What was asked.
            texts: What may answer it.
            seconds: How long anybody waits; None for as long as it takes.

        Raises:
            EmbeddingError: If there is no cross-encoder, or it cannot judge these texts in time.
        """

    def start_reranker(self) -> None:
        """Begin to load it, if that has not happened yet. Returns at once."""

    def start(self) -> None:
        """Begin to load the model, if that has not happened yet. Returns at once."""

    def retry(self) -> None:
        """Forget that there was no model, so that the next need looks again."""

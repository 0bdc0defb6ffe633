"""The interface of whatever turns texts into vectors; `embed` and `remote` implement it."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, TypeAlias

from vector_index_mcp.engine.types import ModelIdentity, Vector, Vectors

EmbedderState: TypeAlias = Literal["off", "loading", "ready", "unavailable"]


class Embedder(Protocol):
    """Turns texts into vectors: by the worker, by a server, or by a fake in tests."""

    @property
    def state(self) -> EmbedderState:
        """`off` until the model is needed, and again after the worker has ended idle."""

    @property
    def reason(self) -> str:
        """Why it is unavailable and what to do about it; empty if it is not unavailable."""

    @property
    def precision(self) -> str:
        """The number format that the model is computed in; empty until it is ready."""

    @property
    def pid(self) -> int | None:
        """The id of the process that holds the model; None if there is no such process."""

    @property
    def sharers(self) -> int:
        """How many services use that process, this one included; 0 if it is not shared."""

    @property
    def notice(self) -> str:
        """For a server: which one embeds, and what a user must know about it; else empty."""

    def running(self) -> AbstractAsyncContextManager[object]:
        """Return a context in which the other methods may be used."""

    async def identity(self) -> ModelIdentity:
        """Return which model it is; this is known well before the model is loaded.

        Raises:
            ModelNotFoundError: If there is no model.
        """

    async def identity_at_hand(self) -> ModelIdentity | None:
        """Return which model it is if that is known without starting anything. Never raises."""

    async def embed(self, texts: Sequence[str], *, are_queries: bool = False) -> Vectors:
        """Embed `texts`, as queries or as documents; queries overtake all documents.

        Returns:
            float32 array of shape (len(texts), dimension); rows of unit length, in order.

        Raises:
            ModelNotFoundError: If there is no model.
            WorkerDiedError: If the worker died, of these texts or for another reason.
            EmbeddingError: If these texts cannot be embedded.
        """

    async def query_at_hand(self, text: str) -> tuple[Vector, ModelIdentity] | None:
        """Return a query's embedding and its model if that takes milliseconds; else None.

        Never raises.
        """

    @property
    def has_reranker(self) -> bool:
        """Whether `scores` can be called."""

    @property
    def reranker_state(self) -> EmbedderState:
        """`off` until the cross-encoder is needed, and whenever there is no worker."""

    @property
    def reranker_reason(self) -> str:
        """Why the cross-encoder is unavailable; empty if it is not unavailable."""

    async def scores(
        self, query: str, texts: Sequence[str], seconds: float | None = None
    ) -> list[float]:
        """Return how well each of `texts` answers `query`: a cross-encoder's scores, 0 to 1.

        Args:
            query: The user's query.
            texts: The texts that may answer it.
            seconds: How long the caller waits; None for as long as it takes.

        Raises:
            EmbeddingError: If there is no cross-encoder, or it cannot judge these texts in time.
        """

    def start_reranker(self) -> None:
        """Begin to load the cross-encoder if nobody has yet. Returns at once."""

    def start(self) -> None:
        """Begin to load the model if nobody has yet. Returns at once."""

    def retry(self) -> None:
        """Forget that there was no model, so that the next request looks for it again."""

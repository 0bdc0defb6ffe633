"""The second writer: gives every committed chunk its vector, those of the newest change first."""

import logging
from collections.abc import Callable

import anyio

from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError, StoreError
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.pipeline import Pipeline
from vector_index_mcp.indexing.signal import Signal

_log = logging.getLogger(__name__)

# Whether there is a model by now: the first time, and at most after doubling. Each look starts a
# process, half a second of processor time.
_LOOK_FOR_MODEL_SECONDS = 60.0
_LONGEST_WITHOUT_A_LOOK_SECONDS = 900.0
_RETRY_SECONDS = 2.0


class Vectors:
    """Embeds what lacks a vector, as long as there is no text that should be searchable first."""

    def __init__(
        self,
        live: Live,
        pipeline: Pipeline,
        embedder: Embedder,
        is_text_first: Callable[[], bool],
    ) -> None:
        """Prepare; `embed_forever` does the work.

        Args:
            live: The index to write.
            pipeline: The stages of a batch.
            embedder: Makes the vectors.
            is_text_first: Whether text waits to be committed, before which nothing is embedded.
        """
        self.progressed = Signal()
        """Sent whenever chunks have got their vectors."""
        self._live = live
        self._pipeline = pipeline
        self._embedder = embedder
        self._is_text_first = is_text_first
        self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self._model_wanted = anyio.Event()
        self._model_is_checked = False
        self._model_check_wanted = False

    @property
    def are_lacking(self) -> bool:
        """Whether chunks wait for their vectors, or may turn out to."""
        return self._live.ledger.is_waiting or self._model_check_wanted

    def look_for_model(self) -> None:
        """Look again for a model that was not there."""
        self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self._embedder.retry()
        self._model_wanted.set()
        self._live.text_moved.send()

    def check_model(self) -> None:
        """Embed everything anew if the vectors are another model's; looked at once per process.

        Left to the first search or request, because the check starts the embedding worker.
        """
        if not self._model_is_checked and self._live.index.manifest.model is not None:
            self._model_check_wanted = True
            self._live.text_moved.send()

    async def expect_model(self) -> None:
        """Make an empty index ready for vectors, if it can be told whose they will be.

        Then those that the cache has are committed with their texts.
        """
        live = self._live
        if live.index.manifest.model is None and not live.ledger.chunk_count:
            model = await self._embedder.identity_at_hand()
            try:
                if model is not None and live.index.manifest.model is None:
                    await self._use_model(model)
            except StoreError as error:
                _log.warning("%s", error)
                live.report(error)

    async def embed_forever(self) -> None:
        """Embed what lacks a vector, until cancelled."""
        while True:
            if not self.are_lacking or self._is_text_first():
                await self._live.text_moved.wait()
                continue
            try:
                await self._embed()
            except ModelNotFoundError:
                with anyio.move_on_after(self._look_seconds):
                    await self._model_wanted.wait()  # a saved file is no reason to look again
                self._look_seconds = min(2 * self._look_seconds, _LONGEST_WITHOUT_A_LOOK_SECONDS)
                self._model_wanted = anyio.Event()
                self._embedder.retry()
            except (EmbeddingError, StoreError) as error:
                _log.warning("%s", error)
                if isinstance(error, StoreError):
                    self._live.report(error)
                await anyio.sleep(_RETRY_SECONDS)

    async def _embed(self) -> None:
        live = self._live
        with live.activity.of("the embedding model"):
            model = await self._embedder.identity()
        if not await self._use_model(model):
            return
        self._model_is_checked, self._model_check_wanted = True, False
        if live.ledger.is_waiting:
            await self._pipeline.embed_batch(live, model)
        self.progressed.send()
        await live.maintain_if_due()

    async def _use_model(self, model: ModelIdentity) -> bool:
        """Make the index ready for the vectors of `model`; those of another one are dropped.

        Returns:
            False if that has to wait: text comes first, and a rebuild ends with the model it
            began with.
        """
        live = self._live
        known = live.index.manifest.model
        is_same = known is not None and known.digest == model.digest
        if is_same and live.index.store.dimension == model.dimension:
            return True
        async with live.writing():
            if self._is_text_first():
                return False
            await live.index.set_model(model)
            live.ledger.note_dimension_changed()
        return True

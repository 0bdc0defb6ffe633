"""The task that gives every committed chunk its vector, those of the newest change first.

It is the second of the two tasks that write the index; the first one is `indexer`.
"""

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.store.upkeep import Moment
from vector_index_mcp.engine.text.fields import embedded_text
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError, StoreError
from vector_index_mcp.indexing.live import Live, Use
from vector_index_mcp.indexing.mirroring.origin import Origin
from vector_index_mcp.indexing.mirroring.vectors import samples_of
from vector_index_mcp.indexing.signal import Signal
from vector_index_mcp.indexing.vectors.cached_embedder import CachedEmbedder

_log = logging.getLogger(__name__)

_CHUNKS_PER_LOOK = 4_096  # looked up in the cache at once; what it has is stored in one commit
# The first and the longest time between two looks for a missing model; it doubles each time. A look
# starts a process, which costs half a second of processor time.
_LOOK_FOR_MODEL_SECONDS = 60.0
_LONGEST_WITHOUT_A_LOOK_SECONDS = 900.0
_FILES_PER_LOOK = 100  # put into the cache at once, with some 1,000 vectors
_RETRY_SECONDS = 2.0
_TRIES_BEFORE_FAILURE = 3  # in a row; then whoever waits for the vectors is told why there are none
_GLANCE_SECONDS = 2.0  # between two cheap checks whether a server has come back by itself


class Vectors:
    """Embeds chunks without a vector, while no text waits that has to be committed first."""

    def __init__(
        self,
        live: Live,
        cached: CachedEmbedder,
        is_text_first: Callable[[], bool],
    ) -> None:
        """Prepare; `embed_forever` does the work.

        Args:
            live: The index to write.
            cached: Makes the vectors, or has them in its cache.
            is_text_first: Whether text waits to be committed; nothing is embedded meanwhile.
        """
        origin = live.origin
        is_unkept = origin is not None and origin.is_proved and not origin.is_kept
        self._keeping = live.ledger.keys() if is_unkept else []
        self.progressed = Signal()
        """Sent whenever chunks have got vectors."""
        self.failure = ""
        """Why vectors cannot be made or stored, if it failed some times in a row; else empty."""
        self._failures = 0
        self._live = live
        self._cached, self._embedder = cached, cached.embedder
        self._is_text_first = is_text_first
        self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self._model_wanted = anyio.Event()
        self._model_is_checked = False
        self._model_check_wanted = False
        self._all_wanted_anew = False

    @property
    def are_lacking(self) -> bool:
        """Whether chunks wait for vectors, or may have to be embedded again."""
        is_wanted = self._model_check_wanted or self._all_wanted_anew
        return self._live.ledger.is_waiting or is_wanted or self._is_foreign

    @property
    def _is_foreign(self) -> bool:
        """Whether another machine has made the vectors, and they have to be compared now.

        Not before all its rows were compared with the files: samples are chosen from those rows.
        """
        ledger, origin = self._live.ledger, self._live.origin
        is_unproved = origin is not None and not origin.is_proved
        return is_unproved and not ledger.claimed_count and len(ledger) > 0

    def look_for_model(self, *, deadly: bool = False) -> None:
        """Look again for a model that was missing, and try again what failed.

        Args:
            deadly: See `CachedEmbedder.try_again`.
        """
        self.failure = ""
        self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self._embedder.retry()
        self._model_wanted.set()
        self._cached.try_again(deadly=deadly)
        self._live.ledger.note_tried_again()
        self._live.text_moved.send()

    def check_model(self, *, again: bool = False) -> None:
        """Check once per process which model made the vectors, and embed all again if they differ.

        The first search or request calls this, since the check starts the embedding worker.

        Args:
            again: Whether to check once more, because another model has embedded a query.
        """
        if (again or not self._model_is_checked) and self._live.index.manifest.model is not None:
            self._model_check_wanted = True
            self._live.text_moved.send()

    def make_all_anew(self) -> None:
        """Have all vectors dropped, cached ones as well, once the model is there to make new ones.

        And once all text is committed, since a rebuild would bring them back.
        """
        self._all_wanted_anew = True
        self._live.text_moved.send()

    async def expect_model(self) -> None:
        """Prepare an empty index for the model's vectors, if the model is known already.

        Then cached vectors are committed together with their texts. This is skipped if the cache is
        empty: identifying the model reads its weights, which would delay the first text by 0.1 s.
        """
        live = self._live
        if live.index.manifest.model is not None or live.ledger.chunk_count:
            return
        if not await self._cached.knows_nothing():
            model = await self._embedder.identity_at_hand()
            try:
                if model is not None and live.index.manifest.model is None:
                    await self._use_model(model)
            except StoreError as error:
                _log.warning("%s", live.remedies.message(error))
                live.report(error, Use.VECTORS)

    async def embed_forever(self) -> None:
        """Embed chunks without a vector, until cancelled."""
        while True:
            if self._is_text_first() or not (self.are_lacking or self._keeping):
                await self._live.text_moved.wait()
                continue
            try:
                await (self._embed() if self.are_lacking else self._keep_some())
                self.failure, self._failures = "", 0
            except ModelNotFoundError:
                self.progressed.send()  # it goes no further for now
                with anyio.move_on_after(self._look_seconds):
                    await self._model_back()  # a saved file does not end this wait
                self._look_seconds = min(2 * self._look_seconds, _LONGEST_WITHOUT_A_LOOK_SECONDS)
                self._model_wanted = anyio.Event()
                self._embedder.retry()
            except (EmbeddingError, StoreError) as error:
                _log.warning("%s", self._live.remedies.message(error))
                if isinstance(error, StoreError):
                    self._live.report(error, Use.VECTORS)
                self._note_failure(error)
                await anyio.sleep(_RETRY_SECONDS)

    def _note_failure(self, error: EmbeddingError | StoreError) -> None:
        self._failures += 1
        if self._failures >= _TRIES_BEFORE_FAILURE:
            self.failure = self._live.remedies.message(error)
            self.progressed.send()

    async def _model_back(self) -> None:
        """Wait until `look_for_model` is called, or the model is available again."""
        while self._embedder.state == "unavailable" and not self._model_wanted.is_set():
            with anyio.move_on_after(_GLANCE_SECONDS):
                await self._model_wanted.wait()

    async def _embed(self) -> None:
        live = self._live
        with live.activity.of("the embedding model"):
            model = await self._embedder.identity()
        if not await self._use_model(model):
            return
        self._model_is_checked, self._model_check_wanted = True, False
        if self._all_wanted_anew and not await self._drop_all(model):
            return
        if self._is_foreign:
            await self._prove(model)
        if live.ledger.is_waiting:
            await self.embed_batch(model)
            live.note_success(Use.VECTORS)
            self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self.progressed.send()
        is_end = not live.ledger.is_waiting
        await live.maintain_if_due(Moment.AT_THE_END if is_end else Moment.USUAL)

    async def _prove(self, model: ModelIdentity) -> None:
        """Compare samples of another machine's vectors; if they are wrong, drop all vectors."""
        live = self._live
        origin = live.origin
        with live.activity.of("the comparison of the shared index's vectors"):
            samples = await samples_of(live.index.store, live.ledger)
            is_true = await self._cached.makes(model, samples)
        if origin is None or live.origin is not origin:  # the index was rebuilt meanwhile
            return
        if not is_true:
            _log.warning(
                "vectors of the shared index differ from those that %s makes of the same texts; "
                "all are made again",
                model.name,
            )
            async with live.writing():
                await self._set_model(model)
        origin.is_proved, origin.is_kept = True, not is_true
        await self._note_origin(origin)
        self._keeping = live.ledger.keys() if is_true else []

    async def _note_origin(self, origin: Origin) -> None:
        live = self._live
        async with live.lock:  # so that no rebuild drops the origin meanwhile
            if live.origin is origin:
                with contextlib.suppress(OSError):  # the next start then compares once more
                    await anyio.to_thread.run_sync(origin.write, Path(live.index.uri))

    async def _keep_some(self) -> None:
        """Put some of another machine's vectors into the cache, as if they were made here.

        Without that, all chunks of a file would be embedded again after any change of it.
        """
        keys, self._keeping = self._keeping[:_FILES_PER_LOOK], self._keeping[_FILES_PER_LOOK:]
        model, store = self._live.index.manifest.model, self._live.index.store
        if model is not None:
            with self._live.activity.of("the keeping of the shared index's vectors"):
                await self._cached.keep(model, await store.contents.vectors(keys))
        if not self._keeping and (origin := self._live.origin) is not None:
            origin.is_kept = True
            await self._note_origin(origin)

    async def embed_batch(self, model: ModelIdentity) -> None:
        """Give vectors to some of the chunks that lack them, those of the last changes first.

        The index's lock is held only during the commit, not while the model computes.

        Args:
            model: The model of the embedder and of the index's vectors.

        Raises:
            ModelNotFoundError: If there is no model any more.
            StoreError: If a commit fails.
        """
        live, store, ledger = self._live, self._live.index.store, self._live.ledger
        keys = ledger.newest_unembedded(_CHUNKS_PER_LOOK)
        texts = await _texts_by_hash(store, keys)
        is_newest = lambda: ledger.newest_waiting in keys  # noqa: E731
        vectors = await self._cached.vectors_of(model, texts, is_newest)
        async with live.writing():
            if live.index.store is store:  # else a rebuild or repair has replaced it meanwhile
                with live.activity.of("the commit of vectors"):
                    await self._fill(keys, vectors)

    async def _fill(self, keys: Sequence[str], vectors: Mapping[str, Vector]) -> None:
        # The store checks the rows again: files may have changed while the model computed.
        lacked = await self._live.index.store.fill(keys, vectors)
        hopeless, ledger = self._cached.hopeless, self._live.ledger
        for key in keys:
            hashes = lacked.get(key, [])
            embedded = sum(h in vectors for h in hashes)
            waiting = sum(h not in vectors and h not in hopeless for h in hashes)
            given_up = ledger.waiting_of(key) - embedded - waiting
            ledger.note_embedded(key, embedded, given_up)

    async def _use_model(self, model: ModelIdentity) -> bool:
        """Prepare the index for the vectors of `model`; vectors of another model are dropped.

        Returns:
            False if that has to wait until all text is committed, since the model must not change
            during a rebuild.
        """
        live = self._live
        known = live.index.manifest.model
        is_same = known is not None and known.digest == model.digest
        if is_same and live.index.store.dimension == model.dimension:
            return True
        async with live.writing():
            if self._is_text_first():
                return False
            await self._set_model(model)
        return True

    async def _drop_all(self, model: ModelIdentity) -> bool:
        """Drop all vectors, and those of the same texts in the cache; see `_use_model`."""
        live = self._live
        async with live.writing():
            if self._is_text_first():
                return False
            await self._cached.forget(model, await live.index.store.contents.all_hashes())
            await self._set_model(model)
            self._all_wanted_anew = False
        return True

    async def _set_model(self, model: ModelIdentity) -> None:
        await self._live.index.set_model(model)
        self._live.ledger.note_dimension_changed()


async def _texts_by_hash(store: Store, keys: Sequence[str]) -> dict[str, str]:
    """The texts to embed for `keys`, by hash, in the order of the keys; a limited number."""
    order = {key: place for place, key in enumerate(keys)}
    lacking = [chunk for chunk in await store.unembedded(keys) if chunk.key in order]
    found = sorted(lacking, key=lambda chunk: order[chunk.key])
    return {
        each.chunk_hash: embedded_text(each.key, each.scope, each.text)
        for each in found[:_CHUNKS_PER_LOOK]
    }

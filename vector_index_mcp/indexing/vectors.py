"""The second writer: gives every committed chunk its vector, those of the newest change first."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio
import anyio.to_thread

from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.embedding_requests import requests_of_equal_work
from vector_index_mcp.engine.fields import embedded_text
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.engine.types import Vectors as Rows
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError, StoreError
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.signal import Signal
from vector_index_mcp.indexing.team_vectors import TeamVectors

_log = logging.getLogger(__name__)

_CHUNKS_PER_FILL = 256  # a commit costs 10 ms and a fragment; a new change ends a fill early
_CHUNKS_PER_LOOK = 4_096  # of these, those whose vector the cache has are filled in one commit
# Whether there is a model by now: the first time, and at most after doubling. Each look starts a
# process, half a second of processor time.
_LOOK_FOR_MODEL_SECONDS = 60.0
_LONGEST_WITHOUT_A_LOOK_SECONDS = 900.0
_RETRY_SECONDS = 2.0
# Of two vectors of one text. Measured: 0.9999 for bfloat16 and float32, 0.98 for servers that
# compute texts of different length together.
_LEAST_COSINE = 0.98
_GLANCE_SECONDS = 2.0  # a server may come back by itself; to see that costs nothing


class CachedEmbedder:
    """The embedder behind the cache: no text is embedded twice.

    It outlives the indexes that a service opens one after another.
    """

    def __init__(
        self,
        embedder: Embedder,
        cache: EmbeddingCache,
        activity: Activity,
        team: TeamVectors | None = None,
    ) -> None:
        """Make one.

        Args:
            embedder: Makes vectors.
            cache: Keeps them.
            activity: What is being done.
            team: Puts vectors that others have made into the cache; None for nobody.
        """
        self.embedder = embedder
        self.team = team or TeamVectors(None, cache)
        self.embedded = 0
        """Chunks the model embedded since the start; the cache's are not among them."""
        self.hopeless: set[str] = set()
        """Hashes of texts that alone make the embedder fail; they are not tried again."""
        self._cache = cache
        self._activity = activity

    async def knows_nothing(self) -> bool:
        """Whether no text has ever been embedded for this user, nor by a team."""
        return not self.team.is_used and await anyio.to_thread.run_sync(self._cache.is_new)

    async def vectors_of(
        self, model: ModelIdentity, texts: Mapping[str, str], is_newest: Callable[[], bool]
    ) -> dict[str, Vector]:
        """Vectors of some of `texts`, both by hash: all that the cache has, else a few new ones.

        Args:
            model: The embedder's.
            texts: What is to be embedded, the most urgent first.
            is_newest: Whether nothing more urgent waits; asked before every request to the model.

        Raises:
            ModelNotFoundError: If there is no model any more.
        """
        vectors = await anyio.to_thread.run_sync(self._cache.get, model, list(texts))
        if len(vectors) < min(_CHUNKS_PER_FILL, len(texts)):
            lacking = {
                h: text for h, text in texts.items() if h not in vectors and h not in self.hopeless
            }
            self.team.want(model, lacking)
            deliveries = self.team.deliveries
            unknown = {h: texts[h] for h in self._first(lacking)}
            computed = await self._embed(
                model, unknown, lambda: is_newest() and self.team.deliveries == deliveries
            )
            await anyio.to_thread.run_sync(self._cache.put, model, computed)
            self.team.forget(computed)
            vectors |= computed
        return vectors

    def _first(self, lacking: Iterable[str]) -> list[str]:
        """Those that are embedded next: the model makes first what the team does not have."""
        in_order = sorted(lacking, key=self.team.may_have)
        return in_order[:_CHUNKS_PER_FILL]

    async def read_from_team(self) -> None:
        """Look for vectors that others have made, until cancelled."""
        await self.team.read_forever(self.makes)

    async def makes(self, model: ModelIdentity, samples: Sequence[tuple[str, Vector]]) -> bool:
        """Whether `model` makes such vectors of texts.

        As queries, if that can be done at once; what does not agree then may only have been given
        another prompt, and is embedded as a text to be found.

        Raises:
            EmbeddingError: If that cannot be said now.
        """
        for at, (text, vector) in enumerate(samples):
            asked = await self.embedder.asked(text)
            is_agreed = asked is not None and asked[1].digest == model.digest
            if asked is None or not is_agreed or asked[0] @ vector < _LEAST_COSINE:
                doubtful = samples[at:]
                made = await self._embedded_by(model, [text for text, _ in doubtful])
                alike = (row @ vector for row, (_, vector) in zip(made, doubtful, strict=True))
                return all(cosine >= _LEAST_COSINE for cosine in alike)
        return True

    async def _embed(
        self, model: ModelIdentity, texts: dict[str, str], is_newest: Callable[[], bool]
    ) -> dict[str, Vector]:
        vectors: dict[str, Vector] = {}
        for hashes in requests_of_equal_work(texts):
            if not is_newest():
                break
            try:
                with self._activity.of("the embedding of chunks"):
                    computed = await self._embedded_by(model, [texts[h] for h in hashes])
                vectors.update(zip(hashes, computed, strict=True))
            except ModelNotFoundError:
                raise
            except EmbeddingError as error:
                _log.warning("%s; trying them one by one", error)
                vectors |= await self._embed_singly(model, {h: texts[h] for h in hashes})
        self.embedded += len(vectors)
        return vectors

    async def _embed_singly(self, model: ModelIdentity, texts: dict[str, str]) -> dict[str, Vector]:
        vectors: dict[str, Vector] = {}
        for key, text in texts.items():
            try:
                vectors[key] = (await self._embedded_by(model, [text]))[0]
            except ModelNotFoundError:
                raise
            except EmbeddingError:
                self.hopeless.add(key)
        return vectors

    async def _embedded_by(self, model: ModelIdentity, texts: Sequence[str]) -> Rows:
        """Vectors that `model` has made: a server may have another one at any moment.

        Raises:
            ModelNotFoundError: If it is another one now.
        """
        computed = await self.embedder.embed(texts)
        if (await self.embedder.identity()).digest != model.digest:
            raise ModelNotFoundError("the embedding model has changed")
        return computed


class Vectors:
    """Embeds what lacks a vector, as long as there is no text that should be searchable first."""

    def __init__(
        self, live: Live, cached: CachedEmbedder, is_text_first: Callable[[], bool]
    ) -> None:
        """Prepare; `embed_forever` does the work.

        Args:
            live: The index to write.
            cached: Makes the vectors, or remembers them.
            is_text_first: Whether text waits to be committed, before which nothing is embedded.
        """
        self.progressed = Signal()
        """Sent whenever chunks have got their vectors."""
        self._live = live
        self._cached, self._embedder = cached, cached.embedder
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

    def check_model(self, *, again: bool = False) -> None:
        """Embed everything anew if the vectors are another model's; looked at once per process.

        Left to the first search or request, because the check starts the embedding worker.

        Args:
            again: Whether to look once more, because a query was embedded by another model.
        """
        if (again or not self._model_is_checked) and self._live.index.manifest.model is not None:
            self._model_check_wanted = True
            self._live.text_moved.send()

    async def forget_all(self) -> None:
        """Drop all vectors, so that each chunk gets its vector anew.

        Raises:
            StoreError: If that cannot be written.
        """
        live = self._live
        async with live.writing():
            model = live.index.manifest.model
            if model is not None:
                await live.index.set_model(model)
                live.ledger.note_dimension_changed()
        live.text_moved.send()

    async def expect_model(self) -> None:
        """Make an empty index ready for vectors, if it is known whose they will be.

        Then those that the cache has are committed with their texts. Not if it has none: finding
        out which model it is reads the weights, 0.1 s before the first text is committed.
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
                _log.warning("%s", live.remedies.told(error))
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
                    await self._model_back()  # a saved file is no reason to look again
                self._look_seconds = min(2 * self._look_seconds, _LONGEST_WITHOUT_A_LOOK_SECONDS)
                self._model_wanted = anyio.Event()
                self._embedder.retry()
            except (EmbeddingError, StoreError) as error:
                _log.warning("%s", self._live.remedies.told(error))
                if isinstance(error, StoreError):
                    self._live.report(error)
                await anyio.sleep(_RETRY_SECONDS)

    async def _model_back(self) -> None:
        """Wait until somebody wants the model, or it is there again."""
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
        if live.ledger.is_waiting:
            await self.embed_batch(model)
            self._look_seconds = _LOOK_FOR_MODEL_SECONDS
        self.progressed.send()
        await live.maintain_if_due(is_end=not live.ledger.is_waiting)

    async def embed_batch(self, model: ModelIdentity) -> None:
        """Give vectors to some of the chunks that lack them, those of the last changes first.

        Args:
            model: The embedder's, whose vectors the index holds. The index's lock is held for the
                commit only, not while the model computes.

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
            if live.index.store is store:  # not replaced meanwhile, by a rebuild or a repair
                with live.activity.of("the commit of vectors"):
                    await self._fill(keys, vectors)

    async def _fill(self, keys: Sequence[str], vectors: Mapping[str, Vector]) -> None:
        # The store looks again: the files may have changed while the model computed.
        lacked = await self._live.index.store.fill(keys, vectors)
        hopeless, ledger = self._cached.hopeless, self._live.ledger
        for key in keys:
            hashes = lacked.get(key, [])
            embedded = sum(h in vectors for h in hashes)
            waiting = sum(h not in vectors and h not in hopeless for h in hashes)
            given_up = ledger.waiting_of(key) - embedded - waiting
            ledger.note_embedded(key, embedded, given_up)

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


async def _texts_by_hash(store: Store, keys: Sequence[str]) -> dict[str, str]:
    """What is to be embedded for `keys`, in their order; of one huge file only so much."""
    order = {key: place for place, key in enumerate(keys)}
    found = sorted(await store.unembedded(keys), key=lambda chunk: order[chunk.key])
    return {
        each.chunk_hash: embedded_text(each.key, each.scope, each.text)
        for each in found[:_CHUNKS_PER_LOOK]
    }

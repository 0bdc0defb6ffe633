"""An embedder behind a cache and a team's vectors, so that no text is embedded twice."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio.to_thread

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.models.embedding_requests import requests_of_equal_work
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.engine.types import Vectors as Rows
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError, WorkerDiedError
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.vectors.team import TeamVectors

_log = logging.getLogger(__name__)

# Chunks embedded before one commit, which costs 10 ms and a fragment. A new change ends it earlier.
_CHUNKS_PER_FILL = 256
# Least cosine of two vectors that one model has made of one text. Measured: 0.9999 between bfloat16
# and float32, 0.98 for servers that compute texts of different length together.
_LEAST_COSINE = 0.98
# A text is given up when this many workers died while it was their only text. One death proves
# nothing: another service's text may have ended the shared worker, or somebody has killed it.
_MOST_DEATHS = 3


class CachedEmbedder:
    """An embedder with the cache and a team's vectors in front of it.

    One object serves all indexes that a service opens one after another.
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
            cache: Keeps vectors between runs.
            activity: Notes what is being done.
            team: Puts vectors that teammates have made into the cache; None if nobody shares any.
        """
        self.embedder = embedder
        self.team = team or TeamVectors(None, cache)
        self.embedded = 0
        """How many chunks the model embedded since the start; the cache's do not count."""
        self.hopeless: set[str] = set()
        """Hashes of texts on which the model fails even alone; see `try_again`."""
        self._failed_with = ""
        """The digest of the model that failed on them."""
        self._deaths: Counter[str] = Counter()
        """How many workers ended while they embedded a text alone, by its hash."""
        self._cache = cache
        self._activity = activity

    async def knows_nothing(self) -> bool:
        """Whether the user's cache has never been filled, and no team shares vectors."""
        return not self.team.is_used and await anyio.to_thread.run_sync(self._cache.is_new)

    def try_again(self, *, deadly: bool = False) -> None:
        """Have texts tried again on which the model has failed: the reason may have been another.

        Args:
            deadly: Whether to try those as well that ended the worker, again and again.
        """
        if deadly:
            self._deaths.clear()
        self.hopeless &= {key for key, deaths in self._deaths.items() if deaths >= _MOST_DEATHS}

    async def vectors_of(
        self, model: ModelIdentity, texts: Mapping[str, str], is_newest: Callable[[], bool]
    ) -> dict[str, Vector]:
        """Return vectors of some of `texts`, by hash: all cached ones and a few new ones.

        Args:
            model: The embedder's model.
            texts: The texts to embed, by hash, the most urgent first.
            is_newest: Whether nothing more urgent waits. It is called before every request to the
                model; if it returns False, no more texts are embedded.

        Raises:
            ModelNotFoundError: If there is no model any more.
        """
        if model.digest != self._failed_with:
            self._failed_with = model.digest
            self.try_again(deadly=True)
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
        """The hashes to embed next: those first that the team does not have."""
        in_order = sorted(lacking, key=self.team.may_have)
        return in_order[:_CHUNKS_PER_FILL]

    async def read_from_team(self) -> None:
        """Fetch vectors that teammates have made, until cancelled."""
        await self.team.read_forever(self.makes)

    async def makes(self, model: ModelIdentity, samples: Sequence[tuple[str, Vector]]) -> bool:
        """Whether `model` makes the same vectors of the sample texts.

        First the samples are embedded as queries, if that can be done at once. Where the vectors
        differ, the reason may only be the prompt for queries: these and all later samples are
        embedded as documents.

        Raises:
            EmbeddingError: If the samples cannot be embedded now.
        """
        for at, (text, vector) in enumerate(samples):
            asked = await self.embedder.query_at_hand(text)
            is_asked = asked is not None and asked[1].digest == model.digest
            # `not … >=` instead of `<`, so that NaN counts as different.
            if asked is None or not is_asked or not asked[0] @ vector >= _LEAST_COSINE:
                doubtful = samples[at:]
                made = await self._embedded_by(model, [text for text, _ in doubtful])
                alike = (row @ vector for row, (_, vector) in zip(made, doubtful, strict=True))
                return all(cosine >= _LEAST_COSINE for cosine in alike)
        return True

    async def keep(self, model: ModelIdentity, vectors: Mapping[str, Vector]) -> None:
        """Put vectors of `model` that somebody else has made into the cache, by hash."""
        await anyio.to_thread.run_sync(self._cache.put, model, vectors)

    async def forget(self, model: ModelIdentity, hashes: Iterable[str]) -> None:
        """Remove vectors of `model` from the cache, by hash."""
        await anyio.to_thread.run_sync(self._cache.remove, model, hashes)

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
            except WorkerDiedError:
                self._deaths[key] += 1
                if self._deaths[key] == _MOST_DEATHS:
                    self.hopeless.add(key)
            except EmbeddingError:
                self.hopeless.add(key)
        return vectors

    async def _embedded_by(self, model: ModelIdentity, texts: Sequence[str]) -> Rows:
        """Embed texts and make sure that it was `model`: a server may change its model any time.

        Raises:
            ModelNotFoundError: If the embedder has another model now.
        """
        computed = await self.embedder.embed(texts)
        if (await self.embedder.identity()).digest != model.digest:
            raise ModelNotFoundError("the embedding model has changed")
        return computed

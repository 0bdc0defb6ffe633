"""The embedder behind the cache and a team's vectors: no text is embedded twice."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

import anyio.to_thread

from vector_index_mcp.engine.cache import EmbeddingCache
from vector_index_mcp.engine.embedder import Embedder
from vector_index_mcp.engine.embedding_requests import requests_of_equal_work
from vector_index_mcp.engine.types import ModelIdentity, Vector
from vector_index_mcp.engine.types import Vectors as Rows
from vector_index_mcp.errors import EmbeddingError, ModelNotFoundError
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.team_vectors import TeamVectors

_log = logging.getLogger(__name__)

_CHUNKS_PER_FILL = 256  # a commit costs 10 ms and a fragment; a new change ends a fill early
# Of two vectors of one text. Measured: 0.9999 for bfloat16 and float32, 0.98 for servers that
# compute texts of different length together.
_LEAST_COSINE = 0.98


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
            is_asked = asked is not None and asked[1].digest == model.digest
            # Not so for what is no number.
            if asked is None or not is_asked or not asked[0] @ vector >= _LEAST_COSINE:
                doubtful = samples[at:]
                made = await self._embedded_by(model, [text for text, _ in doubtful])
                alike = (row @ vector for row, (_, vector) in zip(made, doubtful, strict=True))
                return all(cosine >= _LEAST_COSINE for cosine in alike)
        return True

    async def keep(self, model: ModelIdentity, vectors: Mapping[str, Vector]) -> None:
        """Remember vectors of `model`, by hash, that somebody else has made."""
        await anyio.to_thread.run_sync(self._cache.put, model, vectors)

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

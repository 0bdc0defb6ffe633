"""The datasets of one folder: whoever serves them asks while they are `running`."""

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio

from vector_index_mcp.datasets.arguments import Asked
from vector_index_mcp.datasets.dataset import Dataset, Result
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import failed, not_found, timed_out
from vector_index_mcp.datasets.registry import LoadError, Registry
from vector_index_mcp.engine.embed import Embedder
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.errors import EmbeddingError, VectorIndexError
from vector_index_mcp.indexing.remedies import Remedies

_SEARCH_SECONDS = 10.0  # of the contract
_MODEL_SECONDS = 60.0  # and for a model that is being loaded: the first question waits for it
_AT_ONCE = 4  # searches: LanceDB uses all cores for each
_HUB = "sentence-transformers/"


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a question."""

    results: Sequence[Result]
    """Best first."""
    milliseconds: int
    notes: Sequence[str]
    """Which datasets are left out, and why."""


class Datasets:
    """The datasets of one folder. Constructing it does nothing yet."""

    def __init__(
        self, registry: Registry, embedder: Embedder, model: str, remedies: Remedies
    ) -> None:
        """Make one.

        Args:
            registry: Knows which datasets there are.
            embedder: Embeds questions.
            model: What `embedder` embeds with, as the settings name it.
            remedies: What to do about an error.
        """
        self.registry = registry
        self._embedder, self._model = embedder, model
        self._remedies = remedies
        self._under_way = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which questions are answered."""
        async with self._embedder.running(), anyio.create_task_group() as tasks:
            tasks.start_soon(self.registry.follow_forever)
            yield
            tasks.cancel_scope.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether something is left to be done that nobody waits for."""
        return self.registry.is_loading or bool(self._under_way)

    @property
    def state(self) -> str:
        """What it is doing, in one word."""
        return "LOADING" if self.registry.is_loading else "READY"

    async def listed(self) -> tuple[Sequence[Dataset], Sequence[LoadError]]:
        """The datasets that are served, and why others are not."""
        ready = await self.registry.ready()
        return [ready[id_] for id_ in sorted(ready)], await self.registry.errors()

    async def search(self, asked: Asked) -> Found:
        """The texts that answer a question best.

        Datasets that are named have to answer; of all of them, those that cannot are left out, and
        that is said.

        Raises:
            Refusal: If it cannot be answered; says why.
        """
        began = time.monotonic()
        self._under_way += 1
        try:
            return await self._found(asked, _chosen(await self.registry.ready(), asked.ids), began)
        finally:
            self._under_way -= 1

    async def search_one(self, described: Manifest, asked: Asked) -> tuple[Found, int]:
        """The same in a dataset that is none of the folder, and how many texts it has.

        Raises:
            BadDatasetError: If it cannot be served.
            Refusal: If it cannot be answered; says why.
            StoreError: If its table cannot be read.
        """
        async with self._embedder.running():
            dataset = await self.registry.opened(described)
            try:
                found = await self._found(asked, [dataset], time.monotonic())
            finally:
                dataset.release()
        return found, dataset.facts.count

    async def _found(self, asked: Asked, chosen: Sequence[Dataset], began: float) -> Found:
        notes: list[str] = []
        async with AsyncExitStack() as used:
            for dataset in chosen:
                await used.enter_async_context(dataset.used())
            if not chosen:
                return Found([], 0, ["there is no dataset"])
            vector, model = await self._embedded(asked.query, chosen)
            able = []
            for dataset in chosen:
                if not (lack := self._lack_of(dataset, len(vector), model)):
                    able.append(dataset)
                elif asked.ids:
                    raise failed(lack)
                else:
                    notes.append(lack)
            results = await self._searched(asked, able, vector, notes)
        return Found(results, round(1_000 * (time.monotonic() - began)), notes)

    async def _embedded(self, query: str, chosen: Sequence[Dataset]) -> tuple[Vector, str]:
        """What a question means, and which weights say so."""
        if not any(_plain(dataset.model) == _plain(self._model) for dataset in chosen):
            raise failed(self._lack_of(chosen[0], 0, ""))  # no model has to be loaded to say that
        try:
            with anyio.fail_after(_MODEL_SECONDS):
                [vector] = await self._embedder.embed([query], urgent=True)
                identity = await self._embedder.identity()
        except EmbeddingError as error:
            raise failed(self._remedies.told(error)) from error
        except TimeoutError:
            raise timed_out(_MODEL_SECONDS) from None
        return vector, identity.digest

    def _lack_of(self, dataset: Dataset, dimension: int, digest: str) -> str:
        """Why a dataset cannot answer; empty if it can."""
        name, model = dataset.manifest.id, dataset.model
        if _plain(model) != _plain(self._model):
            return (
                f"dataset '{name}' was made with the model {model}, and questions are embedded "
                f"with {self._model}; start with VECTOR_INDEX_EMBEDDING_MODEL={model}"
            )
        if dataset.digest and dataset.digest != digest:
            return (
                f"dataset '{name}' was made with other weights of the model {model} than those "
                "that are here; make it anew"
            )
        if dataset.facts.count and dataset.facts.dimension != dimension:
            return (
                f"dataset '{name}' has vectors of {dataset.facts.dimension} dimensions, and "
                f"{model} makes {dimension}"
            )
        return ""

    async def _searched(
        self, asked: Asked, chosen: Sequence[Dataset], vector: Vector, notes: list[str]
    ) -> Sequence[Result]:
        most = asked.top_k or max((d.manifest.default_top_k for d in chosen), default=1)
        stems = asked_stems(asked.query)
        found: dict[str, list[Result]] = {}
        at_once = anyio.Semaphore(_AT_ONCE)

        async def search(dataset: Dataset) -> None:
            id_ = dataset.manifest.id
            async with at_once:
                try:
                    found[id_] = await dataset.search(stems, vector, most)
                except VectorIndexError as error:
                    self.registry.distrust(dataset)
                    notes.append(f"dataset '{id_}' is read anew, since it failed: {error}")

        with anyio.move_on_after(_SEARCH_SECONDS) as patience:
            async with anyio.create_task_group() as tasks:
                for dataset in chosen:
                    tasks.start_soon(search, dataset)
        if patience.cancelled_caught:
            if not found:
                raise timed_out(_SEARCH_SECONDS)
            notes.append(f"{len(chosen) - len(found)} datasets took too long and are left out")
        if notes and not found and chosen:
            raise failed(notes[0])
        merged = [result for results in found.values() for result in results]
        return sorted(merged, key=lambda result: -result.score)[:most]


def _chosen(ready: Mapping[str, Dataset], ids: Sequence[str]) -> Sequence[Dataset]:
    """The datasets that are meant; all of them if none is named."""
    missing = next((id_ for id_ in ids if id_ not in ready), None)
    if missing is not None:
        raise not_found(missing, sorted(ready))
    return [ready[id_] for id_ in ids or sorted(ready)]


def _plain(model: str) -> str:
    """A model's name, however it is written."""
    return model.removeprefix(_HUB).casefold()

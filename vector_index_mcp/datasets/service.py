"""The service for the datasets of one folder: it lists, searches, makes and deletes them."""

import logging
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.datasets.arguments import Asked
from vector_index_mcp.datasets.dataset import Dataset, Result
from vector_index_mcp.datasets.finding import lack_of
from vector_index_mcp.datasets.making import Made
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.models import Models, plain
from vector_index_mcp.datasets.refusal import (
    LoadError,
    Refusal,
    failed,
    not_found,
    timed_out,
)
from vector_index_mcp.datasets.registry import Registry
from vector_index_mcp.datasets.workshop import Order, Workshop
from vector_index_mcp.engine.models.wording import is_of_model
from vector_index_mcp.engine.prose.stems import asked_stems
from vector_index_mcp.engine.types import Vector
from vector_index_mcp.errors import EmbeddingError, VectorIndexError, counted
from vector_index_mcp.indexing.remedies import Remedies

_log = logging.getLogger(__name__)

_SEARCH_SECONDS = 10.0  # for one search, as the contract says
_MODEL_SECONDS = 60.0  # for the query's vector: the first query waits until the model is loaded
_AT_ONCE = 4  # searches at the same time: LanceDB uses all cores for each


@dataclass(frozen=True, slots=True)
class Found:
    """The answer to a search."""

    results: Sequence[Result]
    """Best first."""
    milliseconds: int
    """How long the search took."""
    notes: Sequence[str]
    """Which datasets were left out, and why."""


class Datasets:
    """The service for the datasets of one folder. The constructor starts nothing."""

    def __init__(
        self, registry: Registry, models: Models, workshop: Workshop, remedies: Remedies
    ) -> None:
        """Set up the service.

        Args:
            registry: Knows which datasets there are.
            models: Embeds queries.
            workshop: Makes datasets from folders.
            remedies: What to do about each error.
        """
        self.registry = registry
        self.workshop = workshop
        self._models, self._remedies = models, remedies
        self._under_way = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the service: all other methods may be called while this context is open."""
        async with (
            self._models.running(),
            self.workshop.running(),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self.registry.follow_forever)
            yield
            tasks.cancel_scope.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether the service still has work to do, although perhaps no caller waits for it."""
        return self.registry.is_loading or self.workshop.is_busy or bool(self._under_way)

    @property
    def state(self) -> str:
        """What the service is doing: MAKING, LOADING or READY; NO FOLDER while there is none."""
        if self.workshop.is_busy:
            return "MAKING"
        if not self.registry.has_folder:
            return "NO FOLDER"
        return "LOADING" if self.registry.is_loading else "READY"

    @property
    def lack(self) -> str:
        """A sentence if there is no folder of datasets, or some are not loaded yet; or empty."""
        if not self.registry.has_folder:
            return lack_of(self.registry.root)
        if not (awaited := self.registry.awaited):
            return ""
        are = "is" if awaited == 1 else "are"
        return f"{counted(awaited, 'dataset')} {are} still being loaded; ask again soon"

    async def listed(self) -> tuple[Sequence[Dataset], Sequence[LoadError]]:
        """Return the datasets that can be searched, and why others cannot."""
        served, errors = await self.registry.served(), await self.registry.errors()
        models = {dataset.model for dataset in served.values()}
        lacks = await anyio.to_thread.run_sync(self._models.lacks, models)
        now = datetime.now(UTC)
        errors += [LoadError(p, lack, now) for p, d in served.items() if (lack := lacks[d.model])]
        able = [dataset for dataset in served.values() if not lacks[dataset.model]]
        return sorted(able, key=lambda each: each.manifest.id), errors

    async def make(self, order: Order) -> Made:
        """Make a dataset from a folder; it is served when this returns.

        Raises:
            BusyError: If too many datasets are being made, or this one is.
            SettingsError: If the dataset's id is taken or not valid.
            VectorIndexError: If the dataset cannot be made.
        """
        job = await self.workshop.begin(order)
        await job.ended.wait()
        if job.made is None:
            raise VectorIndexError(job.error)
        await self.registry.hurry()
        return job.made

    async def delete(self, id_: str) -> Path | None:
        """Delete a dataset. Files in its folder that do not belong to it stay.

        Returns:
            The dataset's folder if it still contains other files; otherwise None.

        Raises:
            OSError: If the dataset cannot be deleted.
            UnknownError: If there is no such dataset.
        """
        left = await anyio.to_thread.run_sync(self.registry.delete, id_)
        await self.registry.hurry()
        return left

    async def search(self, asked: Asked) -> Found:
        """Search datasets for the texts that answer a query best.

        If the query names datasets, all of them have to answer. If it names none, datasets that
        cannot answer are left out, and the answer's notes say so.

        Raises:
            Refusal: If the query cannot be answered; says why.
        """
        began = time.monotonic()
        self._under_way += 1
        try:
            return await self._found(asked, await self._chosen(asked.ids), began)
        finally:
            self._under_way -= 1

    async def _chosen(self, ids: Sequence[str]) -> Sequence[Dataset]:
        """Return the datasets with these ids; all of them if no id is given."""
        ready = await self.registry.ready_with(ids)
        missing = next((id_ for id_ in ids if id_ not in ready), None)
        if missing is not None:
            errors = {each.id: each.error for each in await self.registry.errors()}
            raise not_found(missing, sorted(ready), errors.get(missing, ""), self.lack)
        return [ready[id_] for id_ in ids or sorted(ready)]

    async def search_once(self, asked: Asked) -> Found:
        """Search datasets of a folder that nobody follows, once all of them are loaded.

        Raises:
            Refusal: If the query cannot be answered; says why.
        """
        async with self._models.running():
            await self.registry.follow()
            return await self.search(asked)

    async def search_one(self, described: Manifest, asked: Asked) -> tuple[Found, int]:
        """Search a dataset outside of the folder; also return how many texts it has.

        Raises:
            BadDatasetError: If the dataset cannot be served.
            Refusal: If the query cannot be answered; says why.
            StoreError: If the dataset's table cannot be read.
        """
        async with self._models.running():
            dataset = await self.registry.opened(described)
            try:
                found = await self._found(asked, [dataset], time.monotonic())
            finally:
                dataset.release()
        return found, dataset.facts.count

    async def _found(self, asked: Asked, chosen: Sequence[Dataset], began: float) -> Found:
        notes: list[str] = []
        lack = "" if asked.ids else self.lack
        async with AsyncExitStack() as used:
            for dataset in chosen:
                await used.enter_async_context(dataset.used())
            if not chosen:
                return Found([], 0, [lack or "there is no dataset to search"])
            meanings = await self._meanings(asked.query, chosen)
            able = []
            for dataset in chosen:
                meaning = meanings[plain(dataset.model)]
                name, reason = dataset.manifest.id, _obstacle(dataset, meaning)
                if not reason and meaning.vector is not None:
                    able.append((dataset, meaning.vector))
                elif asked.ids:
                    raise meaning.timeout or failed(
                        f"dataset '{name}' cannot be searched: {reason}"
                    )
                else:
                    notes.append(f"dataset '{name}' is left out: {reason}")
            timeouts = [meaning.timeout for meaning in meanings.values() if meaning.timeout]
            if len(timeouts) == len(meanings):
                raise timeouts[0]
            results = await self._searched(asked, able, notes)
        notes += filter(None, [lack])
        return Found(results, round(1_000 * (time.monotonic() - began)), notes)

    async def _meanings(self, query: str, chosen: Sequence[Dataset]) -> Mapping[str, "_Meaning"]:
        """Embed a query with the model of each dataset."""
        meanings = {plain(dataset.model): _Meaning(dataset.model) for dataset in chosen}

        async def find(meaning: _Meaning) -> None:
            try:
                with anyio.fail_after(_MODEL_SECONDS):
                    found = await self._models.embedded(meaning.model, query)
                meaning.vector, meaning.digest = found
            except EmbeddingError as error:
                meaning.reason = self._remedies.message(error)
            except TimeoutError:
                meaning.timeout = timed_out(_MODEL_SECONDS)
                meaning.reason = str(meaning.timeout)

        async with anyio.create_task_group() as tasks:
            for meaning in meanings.values():
                tasks.start_soon(find, meaning)
        return meanings

    async def _searched(
        self, asked: Asked, chosen: Sequence[tuple[Dataset, Vector]], notes: list[str]
    ) -> Sequence[Result]:
        most = asked.top_k or max((d.manifest.default_top_k for d, _ in chosen), default=1)
        stems = asked_stems(asked.query)
        found: dict[str, list[Result]] = {}
        unfinished = {dataset.manifest.id for dataset, _ in chosen}
        at_once = anyio.Semaphore(_AT_ONCE)

        async def search(dataset: Dataset, vector: Vector) -> None:
            id_ = dataset.manifest.id
            async with at_once:
                try:
                    found[id_] = await self._search_surely(dataset, stems, vector, most)
                except VectorIndexError as error:
                    _log.warning("%s: %s", dataset.folder, error)
                    notes.append(
                        f"dataset '{id_}' cannot be read; knowledge.listDatasets with "
                        "includeErrors shows why"
                    )
                unfinished.discard(id_)

        with anyio.move_on_after(_SEARCH_SECONDS) as patience:
            async with anyio.create_task_group() as tasks:
                for dataset, vector in chosen:
                    tasks.start_soon(search, dataset, vector)
        if patience.cancelled_caught and unfinished:
            if asked.ids or not found:
                raise timed_out(_SEARCH_SECONDS)
            are_left_out = "datasets took" if len(unfinished) > 1 else "dataset took"
            notes.append(
                f"{len(unfinished)} {are_left_out} over {_SEARCH_SECONDS:.0f} s and gave no results"
            )
        if notes and (asked.ids or not found):
            raise failed(notes[0])
        merged = [result for results in found.values() for result in results]
        return sorted(merged, key=lambda result: -result.score)[:most]

    async def _search_surely(
        self, dataset: Dataset, stems: Sequence[str], vector: Vector, most: int
    ) -> list[Result]:
        """Search a dataset; if that fails, load the dataset again and search once more.

        Raises:
            StoreError: If the second search fails, too.
        """
        try:
            return await dataset.search(stems, vector, most)
        except VectorIndexError as error:
            _log.warning("a search of %s failed; it is loaded again: %s", dataset.folder, error)
            await self.registry.distrust(dataset)
            await self.registry.hurry()
            anew = (await self.registry.ready()).get(dataset.manifest.id)
            if anew is None or anew.facts.dimension != len(vector):
                raise
        async with anew.used():
            return await anew.search(stems, vector, most)


@dataclass(slots=True)
class _Meaning:
    """A query's vector from one model, or why there is none."""

    model: str
    vector: Vector | None = None
    digest: str = ""
    """The digest of the model's weights."""
    reason: str = ""
    """Why there is no vector; empty if there is one."""
    timeout: Refusal | None = None
    """The refusal of a search that needs the vector, if making it took too long."""


def _obstacle(dataset: Dataset, meaning: _Meaning) -> str:
    """Return why a dataset cannot answer; empty if it can."""
    model, facts = dataset.model, dataset.facts
    if meaning.vector is None:
        return meaning.reason
    if dataset.digest and not is_of_model(dataset.digest, meaning.digest):
        return (
            f"it was made with other weights of the model {model} than this machine has; make it "
            "again"
        )
    if facts.count and facts.dimension != len(meaning.vector):
        return (
            f"it has vectors of {facts.dimension} dimensions, but {model} makes "
            f"{len(meaning.vector)} here; correct the model in its manifest, or make it again"
        )
    return ""

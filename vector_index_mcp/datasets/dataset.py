"""A dataset that is ready: its table, open for as long as somebody searches it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.datasets import rows
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import Facts, facts_of
from vector_index_mcp.engine.prose import ranking, searching
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.store import Metric
from vector_index_mcp.engine.types import NO_FILTERS, Hit, Vector


@dataclass(frozen=True, slots=True)
class Result:
    """A text that answers a question."""

    score: float
    """0 to 1."""
    title: str
    path: str
    snippet: str
    dataset: str
    """Its id."""


class Dataset:
    """A dataset whose table is open. Made by `open`; ends when nobody needs it any more."""

    def __init__(self, manifest: Manifest, facts: Facts, folder: Path, index: Index) -> None:
        self.manifest = manifest
        self.facts = facts
        self.folder = folder
        """Where its table lies."""
        self._index = index
        self._users = 1  # whoever has opened it

    @classmethod
    async def open(cls, manifest: Manifest, folder: Path) -> "Dataset":
        """Open the table in `folder`.

        Raises:
            BadDatasetError: If there is none, or it is of another version.
            StoreError: If it cannot be read.
        """
        facts = facts_of(folder)
        index = await Index.open(str(folder))
        if index is None or index.manifest.chunker != rows.CHUNKER:
            raise BadDatasetError("the converted dataset is of another version")
        return cls(manifest, facts, folder, index)

    @property
    def model(self) -> str:
        """Which model made its vectors."""
        return self.manifest.model or self.facts.model

    @property
    def digest(self) -> str:
        """Of the weights of that model; empty if nobody knows it."""
        model = self._index.manifest.model
        return model.digest if model is not None else ""

    @property
    def is_open(self) -> bool:
        """Whether somebody needs it still."""
        return self._users > 0

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """The time in which it is searched, and stays open whatever becomes of it."""
        self._users += 1
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """Need it no longer; the last one who does so closes it."""
        self._users -= 1
        if not self._users:
            self._index.close()

    async def search(self, stems: Sequence[str], vector: Vector, limit: int) -> list[Result]:
        """The texts that answer a question best, best first.

        Args:
            stems: Of the question's words.
            vector: What it means; of unit length.
            limit: How many at most.

        Raises:
            BadDatasetError: If its vectors are of another size.
            StoreError: If the table cannot be read.
        """
        store, facts = self._index.store, self.facts
        if not facts.count:
            return []
        if len(vector) != facts.dimension:
            raise BadDatasetError(
                f"dataset {self.manifest.id} has vectors of {facts.dimension} dimensions, and "
                f"{self.model} makes {len(vector)}"
            )
        most = max(ranking.CANDIDATES, limit)
        if facts.is_unit:
            variant = await searching.variant(store, stems, vector, most, NO_FILTERS)
            hits: Sequence[Hit] = (await searching.fused(store, [variant], facts.count)).ranked()
        else:  # fusion compares cosines, and by these the index would be another one
            metric: Metric = "dot" if facts.metric == "product" else "l2"
            found = await store.nearest(vector, limit, NO_FILTERS, metric)
            hits = [Hit(candidate.chunk, candidate.score) for candidate in found]
        return [self._result(hit) for hit in hits[:limit]]

    def _result(self, hit: Hit) -> Result:
        shown = rows.shown(hit.chunk)
        score = min(max(hit.score, 0.0), 1.0)
        return Result(score, shown.title, shown.path, shown.snippet, self.manifest.id)

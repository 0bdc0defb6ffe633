"""A dataset that is ready to be searched: its table stays open for as long as it is used."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio.to_thread
import numpy as np

from vector_index_mcp.datasets import rows
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.metadata import DEFAULT_MODEL
from vector_index_mcp.datasets.models import plain
from vector_index_mcp.datasets.table import Facts, facts_of, opened
from vector_index_mcp.engine.prose import ranking
from vector_index_mcp.engine.prose.ranking import Fusion, Variant
from vector_index_mcp.engine.ranking.search import all_of
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.unread import Metric
from vector_index_mcp.engine.types import Candidate, Hit, Vector
from vector_index_mcp.errors import DamagedIndexError

_EXAMINED = 20  # texts that `examined` searches for


@dataclass(frozen=True, slots=True)
class Result:
    """A text that answers a query."""

    score: float
    """0 to 1."""
    title: str
    path: str
    snippet: str
    dataset: str
    """The dataset's id."""


class Dataset:
    """A dataset whose table is open. `open` makes one; its last user's `release` closes it."""

    def __init__(self, manifest: Manifest, facts: Facts, folder: Path, index: Index) -> None:
        self.manifest = manifest
        self.facts = facts
        self.folder = folder
        """The folder of its table."""
        self._index = index
        self._users = 1  # the one that has opened it

    @classmethod
    async def open(cls, manifest: Manifest, folder: Path) -> "Dataset":
        """Open the table in `folder`.

        Raises:
            BadDatasetError: If there is no table, or it has another version.
            StoreError: If the table cannot be read.
        """
        facts = await anyio.to_thread.run_sync(facts_of, folder)
        return cls(manifest, facts, folder, await opened(folder))

    @property
    def model(self) -> str:
        """The model that made its vectors."""
        return self.manifest.model or self.facts.model

    @property
    def _known_model(self) -> str:
        """The model that its table names; empty if that is only assumed, as nothing names one."""
        is_assumed = self.facts.model == DEFAULT_MODEL and not self.digest
        return "" if is_assumed else self.facts.model

    @property
    def digest(self) -> str:
        """The digest of that model's weights; empty if it is not known."""
        model = self._index.manifest.model
        return model.digest if model is not None else ""

    @property
    def is_open(self) -> bool:
        """Whether somebody still uses it."""
        return self._users > 0

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keep the dataset open for a search, even if it is replaced or removed meanwhile."""
        self._users += 1
        try:
            yield
        finally:
            self.release()

    def release(self) -> None:
        """End one use; the last one closes the table."""
        self._users -= 1
        if not self._users:
            self._index.close()

    async def search(self, stems: Sequence[str], vector: Vector, limit: int) -> list[Result]:
        """Return the texts that answer a query best, best first.

        Args:
            stems: The stems of the query's words.
            vector: The query's vector, of unit length and with the dataset's dimension.
            limit: The most texts to return.

        Raises:
            StoreError: If the table cannot be read.
        """
        facts, texts = self.facts, self._index.store.unread
        if not facts.count:
            return []
        if not facts.is_unit:
            return await self._search_by_metric(vector, limit)
        most = max(ranking.CANDIDATES, limit)
        lexical: list[Candidate] = []
        semantic: list[Candidate] = []
        vectors: dict[str, Vector] = {}

        async def match() -> None:
            lexical.extend(await texts.matching(stems, most))

        async def find_nearest() -> None:
            candidates, found = await texts.nearest(vector, most, "cosine")
            semantic.extend(candidates)
            vectors.update(found)

        await all_of(match, find_nearest)
        unknown = [each for each in lexical if each.chunk.document_id not in vectors]
        vectors.update(await texts.vectors_of(unknown))
        variant = Variant(len(stems), lexical, semantic, vector)
        return await self._read(Fusion([variant], vectors, facts.count).ranked()[:limit])

    async def examined(self, claims: Mapping[str, Any]) -> list[str]:
        """Return what is wrong with the dataset; empty if its table agrees with its manifest.

        Args:
            claims: All fields of the manifest, also those for people.

        Raises:
            StoreError: If the table cannot be read.
        """
        facts = self.facts
        known = {
            "chunkCount": facts.count,
            "embeddingDimensions": facts.dimension,
            "model": self._known_model,
        }
        problems = [
            f"the manifest says {name} {claims[name]!r}, and the table has {value!r}"
            for name, value in known.items()
            if not _agree(claims.get(name), value)
        ]
        if facts.count and not await self._finds_itself():
            problems.append("a search of its index does not find its own vectors; make it again")
        return problems

    async def _finds_itself(self) -> bool:
        """Return whether the nearest text to each of some is itself, or has the same vector."""
        texts, dimension = self._index.store.unread, self.facts.dimension
        metric: Metric = "dot" if self.facts.metric == "product" else "l2"
        somewhere = np.full(dimension, dimension**-0.5, "<f4")
        _, vectors = await texts.nearest(somewhere, _EXAMINED, metric)
        for vector in vectors.values():
            found, others = await texts.nearest(vector, 1, "l2")
            if not found or not np.allclose(others[found[0].chunk.document_id], vector, atol=1e-4):
                return False
        return True

    async def _search_by_metric(self, vector: Vector, limit: int) -> list[Result]:
        """Search by the index's own metric, for vectors that are not of unit length.

        Fusion with words compares cosines, whose order differs from that of such a metric. The
        scores are cosines, as in other datasets, but each is at most that of the text before it.
        """
        metric: Metric = "dot" if self.facts.metric == "product" else "l2"
        found, vectors = await self._index.store.unread.nearest(vector, limit, metric)
        hits, least = [], 1.0
        for each in found:
            own = vectors[each.chunk.document_id].astype("<f8")
            length = float(np.linalg.norm(own)) or 1.0
            least = min(least, float(own @ vector) / length * ranking.SHARE_OF_MEANING)
            hits.append(Hit(each.chunk, least))
        return await self._read(hits)

    async def _read(self, hits: Sequence[Hit]) -> list[Result]:
        texts = self._index.store.unread
        try:
            found = await texts.read([hit.chunk for hit in hits], rows.COLUMNS)
        except KeyError as error:  # a foreign index of words may name any rows
            raise DamagedIndexError("its indexes name rows that its table does not have") from error
        return [self._result(row, hit.score) for row, hit in zip(found, hits, strict=True)]

    def _result(self, row: Mapping[str, Any], score: float) -> Result:
        shown = rows.shown(row)
        score = min(max(score, 0.0), 1.0)
        return Result(score, shown.title, shown.path, shown.snippet, self.manifest.id)


def _agree(claimed: object, known: object) -> bool:
    """Return whether a manifest says what is known; true as well if either says nothing."""
    if claimed in (None, "") or known == "":
        return True
    if isinstance(claimed, str) and isinstance(known, str):
        return plain(claimed) == plain(known)
    return claimed == known

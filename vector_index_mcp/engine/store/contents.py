"""Reads the rows of one generation: publishes, compares and counts them, or tells what is there."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import lancedb
import pyarrow.compute as pc

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.predicates import contains, is_among, predicate_of
from vector_index_mcp.engine.store.reach import Reach, to_the_end
from vector_index_mcp.engine.types import NO_FILTERS, Claim, Filters, StoredChunk, Vector


class Contents:
    """The rows of one table `chunks`; reading them changes nothing."""

    def __init__(self, reach: Reach, chunks: lancedb.AsyncTable, dimension: int | None) -> None:
        self._reach = reach
        self._chunks = chunks
        self._dimension = dimension

    async def holds(self, filters: Filters) -> bool:
        """Return whether any chunk fulfils `filters`."""
        return bool(await self._rows(predicate_of(filters), ["file_path"], 1))

    async def count(self, filters: Filters) -> int:
        """Return how many chunks fulfil `filters`.

        Raises:
            StoreError: If the index cannot be read, or a regular expression is none of Rust's.
        """
        with self._reach.asked("searching"):
            return await to_the_end(self._chunks.count_rows(predicate_of(filters) or None))

    async def placed(self, filters: Filters, most: int) -> list[StoredChunk]:
        """Return `most` chunks that fulfil `filters`, in the order of their places."""
        rows = await self._rows(predicate_of(filters), schema.STORED_CHUNK_COLUMNS, most)
        found = schema.stored_chunks(rows)
        return sorted(found, key=lambda chunk: (chunk.key, chunk.chunk_index))

    async def has_text(self, part: str, filters: Filters = NO_FILTERS) -> bool:
        """Return whether any chunk contains `part` in any case. Reads all texts: 1 ms for 2,000."""
        terms = [contains("extracted_text_chunk", part), predicate_of(filters)]
        return bool(await self._rows(" AND ".join(filter(None, terms)), ["file_path"], 1))

    async def has_match(self, pattern: str, filters: Filters = NO_FILTERS) -> bool:
        """Return whether a regular expression of Rust matches in any chunk. Reads all texts."""
        return await self.holds(replace(filters, text=pattern))

    async def _rows(self, where: str, columns: list[str], most: int) -> list[dict[str, Any]]:
        """Return these columns of at most `most` rows; of any rows if `where` is empty."""
        with self._reach.asked("searching"):
            rows = self._chunks.query().select(columns).limit(most)
            return await to_the_end((rows.where(where) if where else rows).to_list())

    async def languages(self) -> list[str]:
        """Return the language of each file that has text."""
        with self._reach.asked("reading"):
            query = self._chunks.query().where("chunk_index = 0").select(["language"])
            rows = await to_the_end(query.to_arrow())
        return [str(language) for language in rows.column("language").to_pylist()]

    async def symbols(self) -> list[str]:
        """Return the names that chunks define, each once."""
        with self._reach.asked("reading"):
            rows = await to_the_end(self._chunks.query().select(["symbols"]).to_arrow())
        return [
            str(name) for name in pc.unique(pc.list_flatten(rows.column("symbols"))).to_pylist()
        ]

    async def hashes(self) -> dict[str, list[str]]:
        """Return, by file, the chunk_hash of every chunk that has a vector."""
        if self._dimension is None:
            return {}
        with self._reach.asked("reading"):
            query = self._chunks.query().where("embedded")
            rows = await to_the_end(query.select(["file_path", "chunk_hash"]).to_arrow())
        found: dict[str, list[str]] = {}
        columns = (rows.column(name).to_pylist() for name in ("file_path", "chunk_hash"))
        for key, chunk_hash in zip(*columns, strict=True):
            found.setdefault(key, []).append(chunk_hash)
        return found

    async def all_hashes(self) -> list[str]:
        """Return the chunk_hash of every chunk, each once."""
        with self._reach.asked("reading"):
            rows = await to_the_end(self._chunks.query().select(["chunk_hash"]).to_arrow())
        return [str(each) for each in pc.unique(rows.column("chunk_hash")).to_pylist()]

    async def vectors(self, keys: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors of the chunks of `keys`, by chunk_hash, as far as they have any."""
        if self._dimension is None:
            return {}
        with self._reach.asked("reading"):
            query = self._chunks.query().where(is_among("file_path", keys))
            rows = await to_the_end(query.select(["chunk_hash", "vector"]).to_arrow())
        return schema.vectors_by(rows, "chunk_hash")

    async def claims(self, keys: Iterable[str]) -> dict[str, list[Claim]]:
        """Return the rows of `keys` without their vectors, by file and in order.

        Only one row of each file, chosen at random, has its search words.
        """
        with self._reach.asked("reading"):
            query = self._chunks.query().where(is_among("file_path", keys))
            return schema.claims(await to_the_end(query.select(schema.CLAIM_COLUMNS).to_arrow()))

"""One generation of an index: the tables `chunks` and `files`.

LanceDB has no transaction over several operations, so a file's rows are replaced in an order that
survives a kill at any point: add the new rows, delete those of earlier revisions, then write the
file's record. After a kill, the file's record does not match its rows, which `holdings` shows at
the next start. A search in between may find two revisions of a file; ranking keeps the newer one.

Callers must run one writing method at a time; reading methods may run at any time.
"""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import anyio.to_thread
import pyarrow as pa
import pyarrow.compute as pc

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.contents import Contents
from vector_index_mcp.engine.store.holdings import holdings
from vector_index_mcp.engine.store.newest import Newest
from vector_index_mcp.engine.store.predicates import is_among, predicate_of, predicates_of_rows
from vector_index_mcp.engine.store.reach import Reach, to_the_end
from vector_index_mcp.engine.store.tables import Tables, created, opened, table_names, write_records
from vector_index_mcp.engine.store.unread import Unread, matched, near
from vector_index_mcp.engine.store.upkeep import Upkeep, kept_for, rewrite, tidy, unindexed_rows
from vector_index_mcp.engine.types import (
    NO_FILTERS,
    Candidate,
    Document,
    FileRecord,
    Filters,
    Holding,
    StoredChunk,
    UnembeddedChunk,
    Vector,
)

# BM25 of rows that are not in the word index yet counts only rows that it sees. So in small tables,
# filters apply after the search; in larger ones, most rows are in the index.
_FEW_ROWS = 2_000
_FEW_TIED = 20  # rows as good as the last one, among which LanceDB chooses by when they came
_KEYS_PER_PREDICATE = 500  # of a deletion; longer ones have crashed LanceDB 0.29, not queries


class Store:
    """The rows of one generation. Made by `open` or `create`; ended by `close`."""

    def __init__(
        self, reach: Reach, generation: int, tables: Tables, dimension: int | None
    ) -> None:
        self.generation = generation
        self.dimension = dimension
        """The length of the vectors; None if there is no column `vector` (no model is known)."""
        self._reach = reach
        self._tables = tables
        self.upkeep = Upkeep()
        """Decides when `maintain` is worth its cost."""
        self._half_filled: set[str] = set()  # document ids; an error has interrupted their `fill`
        names = table_names(generation) if reach.is_local else ()
        self._newest = Newest([Path(reach.uri, f"{name}.lance") for name in names])

    @classmethod
    async def open(cls, reach: Reach, generation: int) -> Self:
        """Open the tables of `generation`.

        Raises:
            StoreError: If they are missing or unreadable.
        """
        tables = await opened(reach, generation)
        with reach.asked("opening"):
            columns = await tables.chunks.schema()
            rows = await tables.chunks.count_rows()
            unindexed = await unindexed_rows(tables.chunks)
        dimension = columns.field("vector").type.list_size if "vector" in columns.names else None
        store = cls(reach, generation, tables, dimension)
        store.upkeep = Upkeep(rows, unindexed)
        await store._newest.note()
        return store

    @classmethod
    async def create(cls, reach: Reach, generation: int, dimension: int | None) -> Self:
        """Create the tables of `generation`; replace tables that an interrupted build left there.

        If other machines write as well, nothing is replaced; see `fencing`.
        """
        store = cls(reach, generation, await created(reach, generation), None)
        await store._newest.note()
        if dimension is not None:
            await store.set_dimension(dimension)
        return store

    @classmethod
    async def assemble(cls, reach: Reach, generation: int, records: Sequence[FileRecord]) -> Self:
        """Create the table `files` with `records` beside a table `chunks` that already exists."""
        await write_records(reach, generation, schema.file_rows(records))
        return await cls.open(reach, generation)

    def close(self) -> None:
        """Release the files the tables hold open."""
        self._tables.chunks.close()
        self._tables.files.close()
        self._tables.db.close()

    @property
    def is_as_left(self) -> bool:
        """Whether nobody else has committed since this object was made or last wrote. Blocks."""
        return self._newest.is_as_left

    async def is_outrun(self) -> bool:
        """Return whether another machine has committed to tables that only we should write.

        An earlier writer can, if it was suspended while fencing and has woken up.
        """
        if not self._reach.is_fenced:
            return False
        with self._reach.asked("opening"):
            newest = await opened(self._reach, self.generation)
            now = [await table.version() for table in (newest.chunks, newest.files)]
        return (*now,) != await self.versions()

    async def versions(self) -> tuple[int, int]:
        """Return the versions of both tables, which change with every commit."""
        with self._reach.asked("searching"):
            return await self._tables.chunks.version(), await self._tables.files.version()

    @asynccontextmanager
    async def _committing(self, action: str) -> AsyncIterator[None]:
        """Run a write; note the versions afterwards even if it fails, as it may have committed."""
        try:
            with self._reach.asked(action):
                yield
        finally:
            await self._newest.note()

    # -- reading ---------------------------------------------------------------------------

    async def matching(
        self,
        words: Sequence[str],
        limit: int,
        filters: Filters = NO_FILTERS,
        *,
        with_vectors: bool = False,
    ) -> list[Candidate]:
        """Return the chunks that contain any of `words`, best first by BM25.

        Their vectors are read only from this machine, where that costs 0.1 of 4 ms. Elsewhere each
        would be a request of its own.
        """
        if not words:
            return []
        with self._reach.asked("searching"):
            query, most = matched(self._tables.chunks, words), limit
        # A server indexes new rows by itself, and counting them would be one more request.
        may_be_few = filters != NO_FILTERS and not self._reach.is_server
        if may_be_few and (count := await self.count()) <= _FEW_ROWS:
            query, most = query.postfilter(), count
        is_read = with_vectors and self.dimension is not None and self._reach.is_local
        columns = [*schema.STORED_CHUNK_COLUMNS, "_score"]
        found = await self._best(query, [*columns, *["vector"] * is_read], most, filters)
        found = found.slice(0, limit)
        rows = found.select(columns).to_pylist()
        vectors = schema.vectors_by(found, "document_id") if is_read else {}
        return [
            Candidate(chunk, row["_score"], vectors.get(chunk.document_id))
            for chunk, row in zip(schema.stored_chunks(rows), rows, strict=True)
        ]

    async def nearest(
        self, vector: Vector, limit: int, filters: Filters = NO_FILTERS
    ) -> list[Candidate]:
        """Return the chunks whose vectors have the highest cosine with `vector`, best first."""
        if self.dimension != len(vector):
            return []
        with self._reach.asked("searching"):
            query = near(self._tables.chunks, vector, "cosine", is_local=self._reach.is_local)
        columns = [*schema.STORED_CHUNK_COLUMNS, "_distance"]
        rows = (await self._best(query, columns, limit, filters)).to_pylist()
        found = zip(schema.stored_chunks(rows), rows, strict=True)
        return [Candidate(chunk, 1 - row["_distance"]) for chunk, row in found]

    @property
    def unread(self) -> Unread:
        """The same two searches for a large table; they read only the winning rows."""
        return Unread(self._reach, self._tables.chunks)

    @property
    def contents(self) -> Contents:
        """Reads all rows, for publishing them to other machines or counting them."""
        return Contents(self._reach, self._tables.chunks, self.dimension)

    async def _best(
        self, query: Any, columns: Sequence[str], limit: int, filters: Filters
    ) -> pa.Table:
        # The column of the rank is among them, because lance warns on stderr if it has to add it.
        if where := predicate_of(filters):
            query = query.where(where)
        with self._reach.asked("searching"):
            rows = await to_the_end(query.select(columns).limit(limit + _FEW_TIED).to_arrow())
        return schema.best_first(rows, limit)

    async def last_revision(self) -> int:
        """Return the highest revision of any row; 0 if there are no rows."""
        with self._reach.asked("reading"):
            rows = await to_the_end(self._tables.chunks.query().select(["revision"]).to_arrow())
        return pc.max(rows.column("revision")).as_py() or 0

    async def count(self) -> int:
        """Return how many chunks there are."""
        with self._reach.asked("reading"):
            return await self._tables.chunks.count_rows()

    async def records(self) -> list[FileRecord]:
        """Return all records of the table `files`."""
        with self._reach.asked("reading"):
            return schema.file_records(await to_the_end(self._tables.files.query().to_arrow()))

    async def holdings(self) -> dict[str, Holding]:
        """Return the numbers of rows by file, to be compared with `records` at a start."""
        with self._reach.asked("reading"):
            chunks = self._tables.chunks
            rows = await to_the_end(chunks.query().select(["file_path", "content_hash"]).to_arrow())
            missing = rows
            if self.dimension is not None:
                query = chunks.query().where("NOT embedded").select(["file_path"])
                missing = await to_the_end(query.to_arrow())
        return await anyio.to_thread.run_sync(holdings, rows, missing)

    async def rows(self, keys: Iterable[str]) -> dict[str, list[tuple[StoredChunk, Vector | None]]]:
        """Return all chunks of `keys` by file, in order, each with its vector or None."""
        vectors = [] if self.dimension is None else ["vector"]
        columns = [*schema.STORED_CHUNK_COLUMNS, *vectors]
        with self._reach.asked("reading"):
            query = self._tables.chunks.query().where(is_among("file_path", keys)).select(columns)
            return schema.chunks_by_file(await to_the_end(query.to_list()))

    async def vectors_of(self, ids: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors of chunks, by document_id; chunks without one are left out."""
        if self.dimension is None:
            return {}
        with self._reach.asked("searching"):
            query = self._tables.chunks.query().where(is_among("document_id", ids))
            rows = await to_the_end(query.select(["document_id", "vector"]).to_arrow())
        return schema.vectors_by(rows, "document_id")

    async def unembedded(self, keys: Iterable[str]) -> list[UnembeddedChunk]:
        """Return the chunks of `keys` that have no vector yet."""
        with self._reach.asked("reading"):
            query = self._without_vector(keys).select(schema.UNEMBEDDED_CHUNK_COLUMNS)
            return schema.unembedded_chunks(await to_the_end(query.to_arrow()))

    def _without_vector(self, keys: Iterable[str]) -> Any:
        wanted = is_among("file_path", keys)
        if self.dimension is not None:
            wanted += " AND NOT embedded"
        return self._tables.chunks.query().where(wanted)

    # -- writing ---------------------------------------------------------------------------

    async def replace(
        self, documents: Sequence[Document], revision: int, vectors: Mapping[str, Vector]
    ) -> None:
        """Make `documents` the only rows of their keys.

        Args:
            documents: Files with all their chunks; a file without chunks has no rows afterwards.
            revision: A number higher than the revision of any stored row.
            vectors: The known vectors, by chunk_hash.
        """
        await self.append(documents, revision, vectors)
        for keys in batched((d.key for d in documents), _KEYS_PER_PREDICATE):
            await self._delete(f"{is_among('file_path', keys)} AND revision < {revision}")

    async def append(
        self, documents: Sequence[Document], revision: int, vectors: Mapping[str, Vector]
    ) -> None:
        """Add `documents` that the store does not contain; see `replace`. Deletes nothing."""
        rows = await anyio.to_thread.run_sync(schema.chunk_rows, documents, revision)
        if self.dimension is not None:
            rows = schema.with_vectors(rows, vectors, self.dimension)
        await self._add(rows)

    async def fill(
        self, keys: Iterable[str], vectors: Mapping[str, Vector]
    ) -> dict[str, list[str]]:
        """Store the vectors of chunks that have none yet.

        To change a column in place, LanceDB rewrites the whole table (80 to 180 ms at 20,000 rows,
        measured). So the rows are added again with vectors, and the old ones are deleted.

        Args:
            keys: The files whose chunks may get vectors.
            vectors: The vectors by chunk_hash; a chunk whose vector is missing stays as it is.

        Returns:
            By file, the chunk_hash of every chunk that had no vector before. Empty if no dimension
            is set, because then no vector can be stored.
        """
        if self.dimension is None:
            return {}
        with self._reach.asked("reading"):
            rows = await to_the_end(self._without_vector(keys).to_arrow())
        lacked: dict[str, list[str]] = {}
        columns = (rows.column(name).to_pylist() for name in ("file_path", "chunk_hash"))
        for key, chunk_hash in zip(*columns, strict=True):
            lacked.setdefault(key, []).append(chunk_hash)
        await self._replace_by_embedded(schema.having_vectors(rows, vectors, self.dimension))
        return lacked

    async def _replace_by_embedded(self, rows: pa.Table) -> None:
        these = list(predicates_of_rows(rows, _KEYS_PER_PREDICATE))
        ids = set(rows.column("document_id").to_pylist())
        if not self._half_filled.isdisjoint(ids):  # what was added then would be there twice
            for predicate in these:
                await self._delete(f"{predicate} AND embedded")
        self._half_filled |= ids
        await self._add(rows)
        for predicate in these:
            await self._delete(f"{predicate} AND NOT embedded")
        self._half_filled -= ids

    async def delete(self, keys: Iterable[str]) -> None:
        """Remove these files: first their rows, then their records."""
        for batch in batched(map(schema.stored, keys), _KEYS_PER_PREDICATE):
            await self._delete(is_among("file_path", batch))
            async with self._committing("writing"):
                await self._tables.files.delete(is_among("file_path", batch))
            self.upkeep.note_commit()

    async def put_records(self, records: Sequence[FileRecord]) -> None:
        """Insert or replace the records of files, in one commit."""
        if not records:
            return
        async with self._committing("writing"):
            rows = schema.file_rows(records, with_details=self._tables.has_details)
            merge = self._tables.files.merge_insert("file_path")
            await merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
        self.upkeep.note_commit()

    async def set_dimension(self, dimension: int) -> None:
        """Give `chunks` an empty column `vector`; drop the column that it has."""
        async with self._committing("writing"):
            self.dimension = None  # first: no search may ask for a column that goes
            if "vector" in (await self._tables.chunks.schema()).names:
                await self._tables.chunks.drop_columns(["vector"])
            # Done even if nothing was dropped: a kill may have followed an earlier drop.
            await self._tables.chunks.update(where="embedded", updates_sql={"embedded": "false"})
            await self._tables.chunks.add_columns(schema.vector_field(dimension))
        self.dimension = dimension

    async def maintain(self, *, is_private: bool = False) -> None:
        """Tidy up the tables; then reopen local ones.

        Args:
            is_private: Whether nobody else reads the tables, so that no older version has to stay.

        Local tables are reopened, because every optimize leaks four descriptors in its connection
        (measured). Searches on the old tables end undisturbed, and the last one frees them. Remote
        tables use no files and stay open: a table that is opened later would not be fenced.
        """
        if self._reach.is_server:  # the server tidies up by itself
            self.upkeep.note_done(await self.count(), has_replaced=False)
            return
        keep = kept_for(is_local=self._reach.is_local, is_private=is_private)
        async with self._committing("maintaining"):
            has_replaced = await tidy(self._tables, keep=keep, is_local=self._reach.is_local)
        if self._reach.is_local:
            self._tables = await opened(self._reach, self.generation)
        self.upkeep.note_done(await self.count(), has_replaced=has_replaced)

    async def renew(self) -> None:
        """Rewrite a local index, so that its files contain nothing of rows that were deleted.

        Nobody else may read it meanwhile. Costs as much as a compaction: 0.3 s for 12,000 rows.
        """
        async with self._committing("maintaining"):
            await rewrite(self._tables.chunks)
        await self.maintain(is_private=True)

    async def _add(self, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        async with self._committing("writing"):
            await self._tables.chunks.add(rows)
        self.upkeep.note_commit(rows.num_rows)

    async def _delete(self, predicate: str) -> None:
        async with self._committing("writing"):
            await self._tables.chunks.delete(predicate)
        self.upkeep.note_commit()

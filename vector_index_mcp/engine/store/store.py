"""One generation of an index: the tables `chunks` and `files`.

LanceDB has no transaction over several operations, so a file's rows are replaced in an order that
survives a kill at any point: add the new rows, delete those of earlier revisions, then write the
file's record. Whatever was interrupted leaves a file whose record does not match its rows, which
`holdings` shows at the next start. A search in between may meet two generations of a file;
ranking keeps the newer.

Callers serialise the writing methods among themselves; the reading ones may run at any time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import anyio.to_thread
import lancedb
import pyarrow as pa
from lancedb.index import FTS, BTree, IvfRq
from lancedb.query import MatchQuery

from vector_index_mcp.engine.portions import portions
from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.faults import translated
from vector_index_mcp.engine.types import (
    NO_FILTERS,
    Candidate,
    Document,
    FileRecord,
    Filters,
    Holding,
    Vector,
)

# Every read sees the latest commit, of this process or another; measured to cost nothing locally.
_CONSISTENCY = timedelta(0)
# A query that began before a commit needs the old files until it ends: far less than this.
_KEEP_VERSIONS_FOR = timedelta(seconds=30)
_KEYS_PER_PREDICATE = 500  # longer predicates have crashed LanceDB (0.29) and gain nothing
# Rows and commits since the last maintenance at which it is due: an unindexed row costs every
# full-text query 7 us, a fragment 0.08 ms; a maintenance 0.5 s of processor time at 10,000 rows,
# 2 s at 100,000. A saved file is two commits.
_SHARE_BEFORE_MAINTENANCE = 0.1
_ROWS_BEFORE_MAINTENANCE = 2_000  # or that share of a larger table
_COMMITS_BEFORE_MAINTENANCE = 100
_ROWS_BEFORE_OVERDUE = 20_000
_COMMITS_WORTH_TIDYING = 5

# A flat scan of 22,000 vectors takes 19 ms, with this index 6 ms; it is built in 0.24 s, costs
# every maintenance 0.2 s, and finds all of the ten nearest and 98 % of the hundred nearest.
_VECTORS_INDEX = IvfRq(distance_type="cosine")
_REFINE_FACTOR = 5  # times as many candidates are compared by their full vectors
_VECTORS_WORTH_AN_INDEX = 5_000
_SHARE_STILL_MISSING = 0.01  # what the model cannot embed must not stand in the way
# Every optimize adds a segment, which nothing merges: after 2,000 saves in 10,000 rows there were
# 124, and a search took 171 ms instead of 14. Making the index anew takes 1 s of processor time.
_MOST_SEGMENTS = 8
_WORDS_INDEX = FTS(
    base_tokenizer="whitespace",  # search_text holds prepared words (engine.words)
    lower_case=False,
    stem=True,
    remove_stop_words=False,
    ascii_folding=False,
    max_token_length=None,
    with_position=False,
)


@dataclass(slots=True)
class _Handles:
    db: lancedb.AsyncConnection
    chunks: lancedb.AsyncTable
    files: lancedb.AsyncTable


async def connect(uri: str) -> lancedb.AsyncConnection:
    """A connection to the database at `uri`, which need not exist yet if it is a local folder."""
    with translated("opening"):
        return await lancedb.connect_async(uri, read_consistency_interval=_CONSISTENCY)


class Store:
    """The rows of one generation. Made by `open` or `create`; ended by `close`."""

    def __init__(self, uri: str, generation: int, handles: _Handles, dimension: int | None) -> None:
        self.generation = generation
        self.dimension = dimension
        """Of the column `vector`; None while the model is unknown and there is no such column."""
        self._uri = uri
        self._handles = handles
        self._rows_since_maintenance = 0
        self._rows_at_maintenance = 0
        self._commits_since_maintenance = 0
        self._has_old_versions = True

    @classmethod
    async def open(cls, uri: str, generation: int) -> Self:
        """Open the tables of `generation`.

        Raises:
            StoreError: If they are missing or unreadable.
        """
        handles = await _open_handles(uri, generation)
        with translated("opening"):
            columns = await handles.chunks.schema()
        dimension = columns.field("vector").type.list_size if "vector" in columns.names else None
        store = cls(uri, generation, handles, dimension)
        store._rows_since_maintenance = await store._unindexed_rows()
        store._rows_at_maintenance = await store.count()
        return store

    @classmethod
    async def create(cls, uri: str, generation: int, dimension: int | None) -> Self:
        """Create the tables of `generation`, replacing what an interrupted build left there."""
        db = await connect(uri)
        chunks_name, files_name = table_names(generation)
        with translated("creating"):
            chunks = await db.create_table(chunks_name, schema=schema.CHUNKS, mode="overwrite")
            files = await db.create_table(files_name, schema=schema.FILES, mode="overwrite")
            for column in ("file_path", "document_id"):
                await chunks.create_index(column, config=BTree())
            await chunks.create_index("search_text", config=_WORDS_INDEX)
            await files.create_index("file_path", config=BTree())
        store = cls(uri, generation, _Handles(db, chunks, files), None)
        if dimension is not None:
            await store.set_dimension(dimension)
        return store

    def close(self) -> None:
        """Release the files the tables hold open."""
        self._handles.chunks.close()
        self._handles.files.close()
        self._handles.db.close()

    # -- reading ---------------------------------------------------------------------------

    async def matching(
        self, words: Sequence[str], limit: int, filters: Filters = NO_FILTERS
    ) -> list[Candidate]:
        """The chunks that hold any of `words`, best first by BM25."""
        if not words:
            return []
        match = MatchQuery(" ".join(words), "search_text")  # type: ignore[call-arg]  # has defaults
        with translated("searching"):
            query = self._handles.chunks.query().nearest_to_text(match)
        rows = await self._best(query, "_score", limit, filters)
        chunks = schema.stored_chunks(rows)
        return [Candidate(c, row["_score"]) for c, row in zip(chunks, rows, strict=True)]

    async def nearest(
        self, vector: Vector, limit: int, filters: Filters = NO_FILTERS
    ) -> list[Candidate]:
        """The chunks whose embeddings are nearest to `vector` by cosine, nearest first."""
        if self.dimension != len(vector):
            return []
        with translated("searching"):
            query = self._handles.chunks.query().nearest_to(vector).distance_type("cosine")
            query = query.refine_factor(_REFINE_FACTOR)
        rows = await self._best(query, "_distance", limit, filters)
        chunks = schema.stored_chunks(rows)
        return [Candidate(c, 1 - row["_distance"]) for c, row in zip(chunks, rows, strict=True)]

    async def _best(
        self, query: Any, rank_column: str, limit: int, filters: Filters
    ) -> list[dict[str, Any]]:
        # The rank column is named because lance warns on stderr when it adds it by itself.
        columns = [*schema.STORED_CHUNK_COLUMNS, rank_column]
        if where := _where(filters):
            query = query.where(where)
        with translated("searching"):
            rows: list[dict[str, Any]] = await query.select(columns).limit(limit).to_list()
        return rows

    async def last_revision(self) -> int:
        """The highest revision of any row; 0 if there is none."""
        with translated("reading"):
            rows = await self._handles.chunks.query().select(["revision"]).to_arrow()
        return max(rows.column("revision").to_pylist(), default=0)

    async def count(self) -> int:
        """How many chunks there are."""
        with translated("reading"):
            return await self._handles.chunks.count_rows()

    async def records(self) -> list[FileRecord]:
        """The whole table `files`."""
        with translated("reading"):
            return schema.file_records(await self._handles.files.query().to_arrow())

    async def holdings(self) -> dict[str, Holding]:
        """What `chunks` holds, by file: to be compared with `records` at a start."""
        with translated("reading"):
            chunks = self._handles.chunks
            rows = await chunks.query().select(["file_path", "content_hash"]).to_arrow()
            missing = rows
            if self.dimension is not None:
                query = chunks.query().where("vector IS NULL").select(["file_path"])
                missing = await query.to_arrow()
        return await anyio.to_thread.run_sync(_holdings, rows, missing)

    async def unembedded(self, keys: Iterable[str]) -> pa.Table:
        """The whole rows of `keys` that have no vector yet."""
        wanted = _in("file_path", keys)
        if self.dimension is not None:
            wanted += " AND vector IS NULL"
        with translated("reading"):
            return await self._handles.chunks.query().where(wanted).to_arrow()

    # -- writing ---------------------------------------------------------------------------

    async def replace(
        self, documents: Sequence[Document], revision: int, vectors: Mapping[str, Vector]
    ) -> None:
        """Make `documents` the only rows of their keys.

        Args:
            documents: Files with all their chunks; one without chunks leaves no row.
            revision: Higher than that of any row stored so far.
            vectors: Embeddings by chunk_hash, as far as they are known.
        """
        rows = await anyio.to_thread.run_sync(schema.chunk_rows, documents, revision)
        if self.dimension is not None:
            rows = schema.with_vectors(rows, vectors, self.dimension)
        await self._add(rows)
        for keys in portions((d.key for d in documents), _KEYS_PER_PREDICATE):
            await self._delete(f"{_in('file_path', keys)} AND revision < {revision}")

    async def fill(self, rows: pa.Table, vectors: Mapping[str, Vector]) -> None:
        """Give `rows`, which come from `unembedded` and are still current, their `vectors`.

        Rows whose vector is missing stay as they are.

        LanceDB cannot change a column in place for less than the cost of the whole table (80 to
        180 ms at 20,000 rows, measured), so the rows are added again and the old ones deleted.
        """
        if self.dimension is None:
            return
        known = [key in vectors for key in rows.column("chunk_hash").to_pylist()]
        rows = rows.filter(pa.array(known, pa.bool_()))
        await self._add(schema.with_vectors(rows, vectors, self.dimension))
        for start in range(0, rows.num_rows, _KEYS_PER_PREDICATE):
            portion = rows.slice(start, _KEYS_PER_PREDICATE)
            # The key's index finds the rows; document_id alone would do as well, but slower.
            keys = sorted(set(portion.column("file_path").to_pylist()))
            ids = portion.column("document_id").to_pylist()
            await self._delete(
                f"{_in('file_path', keys)} AND {_in('document_id', ids)} AND vector IS NULL"
            )

    async def delete(self, keys: Iterable[str]) -> None:
        """Forget these files: rows first, records after."""
        for portion in portions(keys, _KEYS_PER_PREDICATE):
            await self._delete(_in("file_path", portion))
            with translated("writing"):
                await self._handles.files.delete(_in("file_path", portion))

    async def put_records(self, records: Sequence[FileRecord]) -> None:
        """Insert or replace the records of files, in one commit."""
        if not records:
            return
        rows = schema.file_rows(records)
        with translated("writing"):
            merge = self._handles.files.merge_insert("file_path")
            await merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)
        self._has_old_versions = True

    async def set_dimension(self, dimension: int) -> None:
        """Give `chunks` an empty column `vector`, dropping the one it has."""
        with translated("writing"):
            if self.dimension is not None:
                await self._handles.chunks.drop_columns(["vector"])
            await self._handles.chunks.add_columns(schema.vector_field(dimension))
        self.dimension = dimension

    @property
    def needs_maintenance(self) -> bool:
        """Whether so much was written that queries start to pay for it."""
        share = int(_SHARE_BEFORE_MAINTENANCE * self._rows_at_maintenance)
        rows = min(max(_ROWS_BEFORE_MAINTENANCE, share), _ROWS_BEFORE_OVERDUE)
        return (
            self._rows_since_maintenance >= rows
            or self._commits_since_maintenance >= _COMMITS_BEFORE_MAINTENANCE
        )

    @property
    def is_overdue(self) -> bool:
        """Whether maintenance should not even wait for the end of a long run."""
        return self._rows_since_maintenance >= _ROWS_BEFORE_OVERDUE

    @property
    def is_untidy(self) -> bool:
        """Whether maintenance in a quiet moment would free space."""
        return self._has_old_versions or self._commits_since_maintenance >= _COMMITS_WORTH_TIDYING

    async def maintain(self) -> None:
        """Compact, index what is not indexed, drop old versions; then reopen.

        The vectors get an index once nearly all are there: trained on a part, it would have to be
        trained again, and over deleted rows that takes ten times as long.

        Reopened because every optimize leaks descriptors in the connection that ran it (four a
        call, measured). Searches on the old handles end undisturbed; the last one frees them.
        """
        with translated("maintaining"):
            await self._drop_vectors_index_if_scattered()
            await self._handles.chunks.optimize(cleanup_older_than=_KEEP_VERSIONS_FOR)
            await self._handles.files.optimize(cleanup_older_than=_KEEP_VERSIONS_FOR)
            await self._index_vectors()
        self._handles = await _open_handles(self._uri, self.generation)
        # What was committed a moment ago is too young to be dropped by this call.
        self._has_old_versions = self._commits_since_maintenance > 0
        self._rows_at_maintenance = await self.count()
        self._rows_since_maintenance = 0
        self._commits_since_maintenance = 0

    async def _drop_vectors_index_if_scattered(self) -> None:
        """To be made anew once the table is compact; until then, searches compare every vector."""
        index = await self._vectors_index()
        if index is not None and (index.num_segments or 0) >= _MOST_SEGMENTS:
            await self._handles.chunks.drop_index(index.name)

    async def _vectors_index(self) -> Any:
        indices = await self._handles.chunks.list_indices()
        return next((index for index in indices if "vector" in index.columns), None)

    async def _index_vectors(self) -> None:
        chunks = self._handles.chunks
        rows = await chunks.count_rows()
        if self.dimension is None or rows < _VECTORS_WORTH_AN_INDEX:
            return
        if await self._vectors_index() is not None:
            return
        if await chunks.count_rows("vector IS NULL") <= _SHARE_STILL_MISSING * rows:
            await chunks.create_index("vector", config=_VECTORS_INDEX)

    async def _add(self, rows: pa.Table) -> None:
        if rows.num_rows == 0:
            return
        with translated("writing"):
            await self._handles.chunks.add(rows)
        self._rows_since_maintenance += rows.num_rows
        self._commits_since_maintenance += 1

    async def _delete(self, predicate: str) -> None:
        with translated("writing"):
            await self._handles.chunks.delete(predicate)
        self._commits_since_maintenance += 1

    async def _unindexed_rows(self) -> int:
        with translated("reading"):
            indices = await self._handles.chunks.list_indices()
        return max((index.num_unindexed_rows or 0 for index in indices), default=0)


def table_names(generation: int) -> tuple[str, str]:
    """The names of the tables of `generation`: `chunks` and `files` for the first."""
    suffix = f"_{generation}" if generation else ""
    return f"chunks{suffix}", f"files{suffix}"


async def _open_handles(uri: str, generation: int) -> _Handles:
    db = await connect(uri)
    chunks, files = table_names(generation)
    with translated("opening"):
        return _Handles(db, await db.open_table(chunks), await db.open_table(files))


def _holdings(rows: pa.Table, missing: pa.Table) -> dict[str, Holding]:
    unembedded = _count_by(missing, ["file_path"])
    found: dict[str, Holding] = {}
    for (key, content_hash), count in _count_by(rows, ["file_path", "content_hash"]).items():
        other = found.get(key)
        found[key] = Holding(
            content_hash="" if other else content_hash,
            rows=count + (other.rows if other else 0),
            unembedded=unembedded.get((key,), 0),
        )
    return found


def _count_by(table: pa.Table, columns: list[str]) -> dict[tuple[str, ...], int]:
    groups = table.select(columns).group_by(columns).aggregate([([], "count_all")])
    keys = zip(*(groups.column(name).to_pylist() for name in columns), strict=True)
    return dict(zip(keys, groups.column("count_all").to_pylist(), strict=True))


def _where(filters: Filters) -> str:
    """`filters` as a predicate of LanceDB's SQL."""
    terms = []
    if filters.languages:
        terms.append(_in("language", filters.languages))
    if filters.path:
        terms.append(f"regexp_like(file_path, {_quoted(filters.path)})")
    return " AND ".join(terms)


def _quoted(value: str) -> str:
    """A string of LanceDB's SQL: quotes are doubled, nothing else is special."""
    return "'" + value.replace("'", "''") + "'"


def _in(column: str, values: Iterable[str]) -> str:
    """A predicate of LanceDB's SQL."""
    return f"{column} IN ({', '.join(map(_quoted, values))})"

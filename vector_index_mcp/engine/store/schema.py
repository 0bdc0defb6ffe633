"""The schemas of the two tables, and the conversion between rows and our values."""

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vector_index_mcp.engine.types import (
    Claim,
    Document,
    FileRecord,
    StoredChunk,
    UnembeddedChunk,
    Vector,
    Vectors,
)

NUMBER, OLD_NUMBER = pa.float16(), pa.float32()
"""The numbers of vectors. Half precision halves their space; cosines change by 1e-4 at most."""
FORMAT = 5
"""Change this if an older program could not read what this one writes, or the other way round."""
READABLE_FORMATS = (4, FORMAT)
"""In format 4, the table `files` has no column `details`; such an index is kept as it is."""

CHUNKS = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("last_modified_timestamp", pa.float64(), nullable=False),
        pa.field("chunk_index", pa.int32(), nullable=False),
        pa.field("total_chunks", pa.int32(), nullable=False),
        pa.field("extracted_text_chunk", pa.string(), nullable=False),
        pa.field("metadata", pa.struct([pa.field("original_path", pa.string())]), nullable=False),
        pa.field("chunk_hash", pa.string(), nullable=False),
        pa.field("start_line", pa.int32(), nullable=False),
        pa.field("end_line", pa.int32(), nullable=False),
        pa.field("language", pa.string(), nullable=False),
        pa.field("scope", pa.string(), nullable=False),
        pa.field("symbols", pa.list_(pa.string()), nullable=False),
        pa.field("search_text", pa.string(), nullable=False),
        # Grows with every commit: of two versions of a file's rows, the higher one is current.
        pa.field("revision", pa.int64(), nullable=False),
        # Whether the row has a `vector`: a query on that column itself would read all of it.
        pa.field("embedded", pa.bool_()),
    ]
)
"""The table `chunks` without `vector`, which is added once the model's dimension is known."""

FILES = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("ctime_ns", pa.int64(), nullable=False),
        pa.field("content_hash", pa.string(), nullable=False),
        pa.field("chunk_count", pa.int32(), nullable=False),
        pa.field("state", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("masked", pa.int32(), nullable=False),
        pa.field("details", pa.string(), nullable=False),
    ]
)

STORED_CHUNK_COLUMNS = [name for name in CHUNKS.names if name != "search_text"]
"""The columns of a StoredChunk."""
UNEMBEDDED_CHUNK_COLUMNS = ["file_path", "chunk_hash", "scope", "extracted_text_chunk"]
"""The columns of an UnembeddedChunk, in the order of its fields."""

CLAIM_COLUMNS = [
    "file_path",
    "chunk_index",
    "document_id",
    "content_hash",
    "total_chunks",
    "extracted_text_chunk",
    "metadata",
    "chunk_hash",
    "start_line",
    "end_line",
    "language",
    "scope",
    "symbols",
    "search_text",
]
"""The file's key, and the columns of a Claim in the order of its fields; the last is optional."""


def vector_field(dimension: int, number: pa.DataType = NUMBER) -> pa.Field:
    """Return the column `vector`, which is null until the chunk is embedded.

    The columns of older indexes are of `OLD_NUMBER`, and stay so: LanceDB converts what is written.
    """
    return pa.field("vector", pa.list_(number, dimension), nullable=True)


def chunk_rows(documents: Sequence[Document], revision: int) -> pa.Table:
    """Return the rows of `documents`, in order, without vectors."""
    columns: dict[str, list[object]] = {name: [] for name in CHUNKS.names}
    for document in documents:
        total = len(document.entries)
        for index, entry in enumerate(document.entries):
            chunk = entry.chunk
            row = (
                f"{document.key}::{index}",
                document.key,
                document.content_hash,
                document.modified,
                index,
                total,
                chunk.text,
                {"original_path": document.original_path},
                entry.chunk_hash,
                chunk.start_line,
                chunk.end_line,
                document.language,
                chunk.scope,
                chunk.symbols,
                entry.search_text,
                revision,
                False,
            )
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return pa.table(columns, schema=CHUNKS)


def with_vectors(rows: pa.Table, vectors: Mapping[str, Vector], dimension: int) -> pa.Table:
    """Return `rows` with a column `vector`, filled by chunk_hash; null where `vectors` has none."""
    found = [vectors.get(key) for key in rows.column("chunk_hash").to_pylist()]
    present = pa.array([value is not None for value in found], pa.bool_())
    lacking = np.zeros(dimension, "<f2")
    numbers = np.array([lacking if value is None else value for value in found], "<f2")
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(numbers.reshape(-1), NUMBER), dimension, mask=pc.invert(present)
    )
    rows = rows.select([name for name in CHUNKS.names if name != "embedded"])
    rows = rows.append_column(CHUNKS.field("embedded"), present)
    return rows.append_column(vector_field(dimension), column)


def having_vectors(rows: pa.Table, vectors: Mapping[str, Vector], dimension: int) -> pa.Table:
    """Return the `rows` whose chunk_hash is in `vectors`, with the column `vector` filled."""
    known = [key in vectors for key in rows.column("chunk_hash").to_pylist()]
    return with_vectors(rows.filter(pa.array(known, pa.bool_())), vectors, dimension)


def stored_chunks(rows: list[dict[str, Any]]) -> list[StoredChunk]:
    """Convert rows that LanceDB returned."""
    return [
        StoredChunk(
            document_id=row["document_id"],
            key=row["file_path"],
            original_path=row["metadata"]["original_path"],
            content_hash=row["content_hash"],
            modified=row["last_modified_timestamp"],
            chunk_index=row["chunk_index"],
            total_chunks=row["total_chunks"],
            text=row["extracted_text_chunk"],
            chunk_hash=row["chunk_hash"],
            start_line=row["start_line"],
            end_line=row["end_line"],
            language=row["language"],
            scope=row["scope"],
            symbols=tuple(row["symbols"]),
            revision=row["revision"],
            has_vector=bool(row["embedded"]),
        )
        for row in rows
    ]


def unread_chunk(row: int) -> StoredChunk:
    """Return a chunk of which only the row number is known; it is the id and the key."""
    known = str(row)
    return StoredChunk(
        document_id=known,
        key=known,
        original_path="",
        content_hash="",
        modified=0.0,
        chunk_index=0,
        total_chunks=1,
        text="",
        chunk_hash="",
        start_line=0,
        end_line=0,
        language="",
        scope="",
        symbols=(),
        revision=0,
        has_vector=True,
    )


def chunks_by_file(
    rows: list[dict[str, Any]],
) -> dict[str, list[tuple[StoredChunk, Vector | None]]]:
    """Return the chunks in `rows` by file, in order, each with its vector or None."""
    found: dict[str, list[tuple[StoredChunk, Vector | None]]] = {}
    for chunk, row in zip(stored_chunks(rows), rows, strict=True):
        vector = row.get("vector")
        embedding = None if vector is None else np.asarray(vector, dtype="<f4")
        found.setdefault(chunk.key, []).append((chunk, embedding))
    for of_file in found.values():
        of_file.sort(key=lambda row: row[0].chunk_index)
    return found


def best_first(rows: pa.Table, limit: int) -> pa.Table:
    """Return the `limit` best rows of a search; equally good ones in the order of their places."""
    rank = ("_score", "descending") if "_score" in rows.column_names else ("_distance", "ascending")
    places = [("file_path", "ascending"), ("chunk_index", "ascending")]
    return rows.sort_by([rank, *places]).slice(0, limit)


def vectors_by(rows: pa.Table, column: str) -> dict[str, Vector]:
    """Return the vectors of the rows that have one, by the value of `column`."""
    rows = rows.filter(pc.is_valid(rows.column("vector"))).combine_chunks()
    ids = rows.column(column).to_pylist()
    if not ids:
        return {}
    column = pa.concat_arrays(rows.column("vector").chunks)
    return dict(zip(ids, numbers_of(column), strict=True))


def numbers_of(column: pa.FixedSizeListArray) -> Vectors:
    """Return the vectors of a column that lacks none."""
    values: Vectors = column.flatten().to_numpy().astype("<f4", copy=False)
    return values.reshape(len(column), column.type.list_size)


def claims(rows: pa.Table) -> dict[str, list[Claim]]:
    """Convert rows with the columns CLAIM_COLUMNS: by file, in the order of the chunks.

    Of each file, one row, chosen at random, has its search words. They are as long as the text, and
    nobody compares more of them.
    """
    places: dict[str, list[int]] = {}
    for place, key in enumerate(rows.column("file_path").to_pylist()):
        places.setdefault(key, []).append(place)
    columns = [_claimed(rows, name) for name in CLAIM_COLUMNS[1:-1]]
    chosen = [random.choice(of_file) for of_file in places.values()]
    words: list[str | None] = [None] * rows.num_rows
    for place, text in zip(
        chosen, rows.column("search_text").take(chosen).to_pylist(), strict=True
    ):
        words[place] = text
    every = list(map(Claim, *columns, words))
    found = {key: [every[place] for place in of_file] for key, of_file in places.items()}
    for of_file in found.values():
        of_file.sort(key=lambda claim: claim.number)
    return found


def _claimed(rows: pa.Table, name: str) -> list[Any]:
    column = rows.column(name)
    if name == "metadata":
        column = pc.struct_field(column, "original_path")
    values: list[Any] = column.to_pylist()
    return values


def unembedded_chunks(rows: pa.Table) -> list[UnembeddedChunk]:
    """Convert rows with the columns UNEMBEDDED_CHUNK_COLUMNS."""
    columns = (rows.column(name).to_pylist() for name in UNEMBEDDED_CHUNK_COLUMNS)
    return list(map(UnembeddedChunk, *columns))


def stored(key: str) -> str:
    """Return how the table `files` spells a key: itself, unless its name is not Unicode.

    Then it is a slash, with which no key begins, and the key's bytes.
    """
    try:
        key.encode()
    except UnicodeEncodeError:
        return "/" + key.encode("utf-8", "surrogatepass").hex()
    return key


def _key_of(spelling: str) -> str:
    if spelling.startswith("/"):
        with suppress(ValueError):
            return bytes.fromhex(spelling[1:]).decode("utf-8", "surrogatepass")
    return spelling


def file_rows(records: Sequence[FileRecord], *, with_details: bool = True) -> pa.Table:
    """Return the rows of the table `files` for `records`.

    Args:
        records: The records of files.
        with_details: Whether the table has the column `details`.
    """
    rows = [
        (
            stored(r.key),
            *r.stamp,
            r.content_hash,
            r.chunk_count,
            r.state,
            r.reason,
            r.masked,
            r.details,
        )
        for r in records
    ]
    columns = zip(*rows, strict=True) if rows else [[] for _ in FILES.names]
    table = pa.table(
        [pa.array(column, type=field.type) for column, field in zip(columns, FILES, strict=True)],
        schema=FILES,
    )
    return table if with_details else table.drop_columns(["details"])


def file_records(table: pa.Table) -> list[FileRecord]:
    """Return the records in a table `files`."""
    names = [name for name in FILES.names if name in table.column_names]
    columns = (table.column(name).to_pylist() for name in names)
    return [
        FileRecord(_key_of(key), (size, mtime_ns, ctime_ns), *rest)
        for key, size, mtime_ns, ctime_ns, *rest in zip(*columns, strict=True)
    ]

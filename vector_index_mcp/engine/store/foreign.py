"""Checks a table `chunks` that another machine wrote: its files and its rows.

Lance's reader was not made for malicious files, so a process of its own reads such a table
(`examine`) before any other process opens it. Whether the texts are true is checked elsewhere.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vector_index_mcp.engine.store import places, schema
from vector_index_mcp.engine.store.reach import Reach
from vector_index_mcp.engine.store.tables import connect, table_names
from vector_index_mcp.errors import DamagedIndexError

TABLE = f"{table_names(0)[0]}.lance"
"""The name of the table's folder in an index that was never rebuilt."""
# The files of a table. Lance also writes transactions and a hint at the newest version, which are
# not needed for reading.
_PART = re.compile(
    r"_versions/[0-9]{1,20}\.manifest"
    r"|data/[0-9a-zA-Z_-]{1,100}\.lance"
    r"|_deletions/[0-9]{1,20}-[0-9]{1,20}-[0-9]{1,20}\.(?:arrow|bin)"
    r"|_indices/[0-9a-f-]{36}/[0-9a-z_]{1,60}\.(?:lance|idx)"
)
_INDICES = {"file_path", "document_id", "search_text", "vector"}
_LARGEST_REVISION = 1 << 40
_LARGEST_TEXT_BYTES = 1_000_000
_LENGTH_TOLERANCE = 1e-3  # how far a vector's length may be from 1
_ROWS_AT_ONCE = 8_192


def is_part(path: str) -> bool:
    """Return whether a file of that path, with slashes, can be part of a table. Pure."""
    return _PART.fullmatch(path) is not None


def parts_of(table: Path) -> list[str]:
    """Return the paths of the files that the newest version of a table may need.

    If older versions were dropped before, it needs all of them.
    """
    found = (path.relative_to(table).as_posix() for path in table.rglob("*") if path.is_file())
    parts = sorted(filter(is_part, found))
    # lance counts versions down from 2^64 - 1, so that the newest has the first name.
    older = [part for part in parts if part.startswith("_versions/")][1:]
    return [part for part in parts if part not in older]


async def examine(uri: str, dimension: int | None) -> int:
    """Read every row of the table in the folder `uri`, and return how many there are.

    Args:
        uri: The folder of an index; it needs to contain only the table.
        dimension: The expected length of the vectors; None if there must be none.

    Raises:
        DamagedIndexError: If the table cannot be read, or this program could not have made it.
    """
    places.check(Path(uri))
    expected = [schema.CHUNKS]
    if dimension is not None:
        numbers = (schema.NUMBER, schema.OLD_NUMBER)
        expected = [schema.CHUNKS.append(schema.vector_field(dimension, each)) for each in numbers]
    reach = Reach(uri)
    db = await connect(reach)
    count = 0
    with reach.asked("reading"):
        table = await db.open_table(table_names(0)[0])
        if await table.schema() not in expected:
            raise DamagedIndexError("its columns are not those of an index")
        if {name for index in await table.list_indices() for name in index.columns} - _INDICES:
            raise DamagedIndexError("it has an index over a column that we never index")
        async for batch in await table.query().to_batches(max_batch_length=_ROWS_AT_ONCE):
            _check(batch)
            count += batch.num_rows
    table.close()
    db.close()
    return count


def _check(rows: pa.RecordBatch) -> None:
    nullable = {"vector", "embedded"}
    if any(rows.column(name).null_count for name in rows.schema.names if name not in nullable):
        raise DamagedIndexError("a value is missing")
    revisions = pc.min_max(rows.column("revision")).as_py()
    lines = pc.min(rows.column("start_line")).as_py()
    if rows.num_rows and not (
        0 <= revisions["min"] <= revisions["max"] < _LARGEST_REVISION and lines > 0
    ):
        raise DamagedIndexError("a number is out of range")
    for name in ("extracted_text_chunk", "search_text", "scope", "file_path"):
        if (pc.max(pc.binary_length(rows.column(name))).as_py() or 0) > _LARGEST_TEXT_BYTES:
            raise DamagedIndexError("a text is longer than any of ours")
    if not np.isfinite(rows.column("last_modified_timestamp").to_numpy()).all():
        raise DamagedIndexError("a time is not a number")
    _check_vectors(rows)


def _check_vectors(rows: pa.RecordBatch) -> None:
    embedded = rows.column("embedded").fill_null(False)
    if "vector" not in rows.schema.names:
        is_right = not pc.any(embedded).as_py()
    else:
        column = rows.column("vector")
        present = column.filter(column.is_valid())
        vectors = schema.numbers_of(present)
        with np.errstate(over="ignore", invalid="ignore"):  # too long for a number
            lengths = np.linalg.norm(vectors, axis=1) if len(present) else np.ones(1)
        is_right = column.is_valid().equals(embedded) and bool(
            (np.abs(lengths - 1) <= _LENGTH_TOLERANCE).all()  # false for NaN
        )
    if not is_right:
        raise DamagedIndexError("a vector is missing, or its length is not 1")

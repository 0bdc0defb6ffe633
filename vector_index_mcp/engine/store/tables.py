"""The open tables of a generation, and how they are called."""

from dataclasses import dataclass
from datetime import timedelta

import lancedb

from vector_index_mcp.engine.store.faults import translated

# Every read sees the latest commit, of this process or another; measured to cost nothing locally.
_CONSISTENCY = timedelta(0)


@dataclass(slots=True)
class Tables:
    """A connection, and its two tables."""

    db: lancedb.AsyncConnection
    chunks: lancedb.AsyncTable
    files: lancedb.AsyncTable
    has_details: bool  # whether `files` has that column


async def connect(uri: str) -> lancedb.AsyncConnection:
    """A connection to the database at `uri`, which need not exist yet if it is a local folder."""
    with translated("opening"):
        return await lancedb.connect_async(uri, read_consistency_interval=_CONSISTENCY)


def table_names(generation: int) -> tuple[str, str]:
    """The names of the tables of `generation`: `chunks` and `files` for the first."""
    suffix = f"_{generation}" if generation else ""
    return f"chunks{suffix}", f"files{suffix}"


async def opened(uri: str, generation: int) -> Tables:
    """The tables of `generation`.

    Raises:
        StoreError: If they are missing or unreadable.
    """
    db = await connect(uri)
    chunks, files = table_names(generation)
    with translated("opening"):
        tables = await db.open_table(chunks), await db.open_table(files)
        return Tables(db, *tables, "details" in (await tables[1].schema()).names)

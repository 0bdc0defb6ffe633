"""The open tables of a generation, and how they are called."""

import functools
from dataclasses import dataclass
from datetime import timedelta

import lancedb

from vector_index_mcp.engine.store.reach import Reach

# Every read sees the latest commit, of this process or another; measured to cost nothing locally.
_CONSISTENCY = timedelta(0)
# Elsewhere it costs every query a round trip more.
_REMOTE_CONSISTENCY = timedelta(seconds=5)
_CLIENT = {
    "retry_config": {"retries": 1},
    "timeout_config": {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=60)},
}
_REMOTE_OPTIONS = {"connect_timeout": "5s", "timeout": "30s", "client_max_retries": "1"}


@dataclass(slots=True)
class Tables:
    """A connection, and its two tables."""

    db: lancedb.AsyncConnection
    chunks: lancedb.AsyncTable
    files: lancedb.AsyncTable
    has_details: bool  # whether `files` has that column


async def connect(reach: Reach) -> lancedb.AsyncConnection:
    """A connection to the database, which need not exist yet if it is a local folder."""
    with reach.asked("opening"):
        if reach.is_local:
            return await lancedb.connect_async(reach.uri, read_consistency_interval=_CONSISTENCY)
        if reach.is_server:
            return await lancedb.connect_async(
                reach.uri,
                api_key=reach.server.key,
                region=reach.server.region,
                host_override=reach.server.host or None,
                client_config=_CLIENT,
            )
        return await lancedb.connect_async(
            reach.uri,
            read_consistency_interval=None if reach.is_fenced else _REMOTE_CONSISTENCY,
            storage_options=_REMOTE_OPTIONS,
            session=_session(),
        )


@functools.cache
def _session() -> lancedb.Session:
    """What is known of remote indices, shared by all connections: it costs requests to read."""
    return lancedb.Session()


def table_names(generation: int) -> tuple[str, str]:
    """The names of the tables of `generation`: `chunks` and `files` for the first."""
    suffix = f"_{generation}" if generation else ""
    return f"chunks{suffix}", f"files{suffix}"


async def opened(reach: Reach, generation: int) -> Tables:
    """The tables of `generation`.

    Raises:
        StoreError: If they are missing or unreadable.
    """
    db = await connect(reach)
    chunks, files = table_names(generation)
    with reach.asked("opening"):
        tables = await db.open_table(chunks), await db.open_table(files)
        return Tables(db, *tables, "details" in (await tables[1].schema()).names)

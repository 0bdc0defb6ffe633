"""Creates and opens the tables of a generation."""

import functools
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Literal

import anyio.to_thread
import lancedb
import pyarrow as pa
from lancedb.index import FTS, BTree

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.entries import check_plain
from vector_index_mcp.engine.store.reach import Reach, to_the_end
from vector_index_mcp.errors import StoreError

_log = logging.getLogger(__name__)

# Every read of a local table sees the latest commit of any process; measured to cost nothing.
_CONSISTENCY = timedelta(0)
# For remote tables, that would cost every query one more round trip.
_REMOTE_CONSISTENCY = timedelta(seconds=5)
_CLIENT = {
    "retry_config": {"retries": 1},
    "timeout_config": {"connect_timeout": timedelta(seconds=5), "timeout": timedelta(seconds=60)},
}
_BUILT_WITHIN = timedelta(seconds=30)  # for a server to make the indices of empty tables
_REMOTE_OPTIONS = {"connect_timeout": "5s", "timeout": "30s", "client_max_retries": "1"}

_KEYS, _WORDS = ("file_path", "document_id"), "search_text"
_WORDS_INDEX = FTS(
    base_tokenizer="whitespace",  # search_text holds prepared words (engine.text.words)
    lower_case=False,
    stem=True,
    remove_stop_words=False,
    ascii_folding=False,
    max_token_length=None,
    with_position=False,
)


@dataclass(slots=True)
class Tables:
    """A connection, and its two tables."""

    db: lancedb.AsyncConnection
    chunks: lancedb.AsyncTable
    files: lancedb.AsyncTable
    has_details: bool  # whether `files` has the column `details`


async def connect(reach: Reach) -> lancedb.AsyncConnection:
    """Connect to the database; a local folder need not exist yet.

    Raises:
        DamagedIndexError: If its tables are not made of plain files; see `entries`.
        StoreError: If the place cannot be reached.
    """
    with reach.asked("opening"):
        if reach.is_local:
            await anyio.to_thread.run_sync(check_plain, Path(reach.uri))
            path = reach.pinned or reach.uri
            return await lancedb.connect_async(path, read_consistency_interval=_CONSISTENCY)
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
    """Return the cache that all connections to remote tables share: reading costs requests."""
    return lancedb.Session()


def table_names(generation: int) -> tuple[str, str]:
    """Return the names of the tables of `generation`; the first's are `chunks` and `files`."""
    suffix = f"_{generation}" if generation else ""
    return f"chunks{suffix}", f"files{suffix}"


async def opened(reach: Reach, generation: int) -> Tables:
    """Open the tables of `generation`.

    Raises:
        StoreError: If they are missing or unreadable.
    """
    db = await connect(reach)
    chunks, files = table_names(generation)
    with reach.asked("opening"):
        tables = (
            await to_the_end(db.open_table(chunks)),
            await to_the_end(db.open_table(files)),
        )
        return Tables(db, *tables, "details" in (await tables[1].schema()).names)


async def created(reach: Reach, generation: int) -> Tables:
    """Create empty tables of `generation`; they replace tables that an interrupted build left.

    If other machines write as well, nothing is replaced; see `fencing`.
    """
    db = await connect(reach)
    mode: Literal["create", "overwrite"] = "create" if reach.is_fenced else "overwrite"
    chunks_name, files_name = table_names(generation)
    with reach.asked("creating"):
        chunks = await db.create_table(chunks_name, schema=schema.CHUNKS, mode=mode)
        files = await db.create_table(files_name, schema=schema.FILES, mode=mode)
        await index_words(chunks)
        await files.create_index("file_path", config=BTree())
    if reach.is_server:
        await _until_indexed(reach, chunks, (*_KEYS, _WORDS))
        await _until_indexed(reach, files, ("file_path",))
    return Tables(db, chunks, files, has_details=True)


async def index_words(chunks: lancedb.AsyncTable) -> None:
    """Create the indices of a table of chunks that do not depend on its model; replace old ones."""
    for column in _KEYS:
        await chunks.create_index(column, config=BTree())
    await chunks.create_index(_WORDS, config=_WORDS_INDEX)


async def _until_indexed(reach: Reach, table: lancedb.AsyncTable, columns: Sequence[str]) -> None:
    """Wait, for a limited time, until a server has made the indices that we asked it for.

    The server answers before it has made them, and until then a search for words fails.
    """
    names = [f"{column}_idx" for column in columns]  # as LanceDB names them
    try:
        with reach.asked("indexing"):
            await table.wait_for_index(names, timeout=_BUILT_WITHIN)
    except StoreError as error:
        _log.warning("the server has not made the indices of %s yet: %s", table.name, error)


async def write_records(reach: Reach, generation: int, rows: pa.Table) -> None:
    """Create the table `files` with `rows`, beside a table `chunks` that already exists."""
    db = await connect(reach)
    with reach.asked("creating"):
        files = await db.create_table(table_names(generation)[1], rows, mode="overwrite")
        await files.create_index("file_path", config=BTree())
    files.close()
    db.close()

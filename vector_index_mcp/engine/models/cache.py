"""A cache of vectors by (model, chunk hash), shared by all projects of the user.

It is a SQLite file, because several processes write it at once. A fault of the cache costs time,
never a result: a damaged file is deleted, a damaged vector is not found, and if the folder cannot
be written there is no cache.
"""

import contextlib
import logging
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import filelock
import numpy as np

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.types import ModelIdentity, Vector

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")

_FILE = "embeddings-1.sqlite3"
_HASHES_PER_QUERY = 500  # below SQLite's oldest limit of 999 variables
_SHARE_DROPPED = 0.2  # of the size limit, once the file has reached it
_SECONDS_PER_DAY = 86_400
_WAIT_TO_WRITE_SECONDS = 2.0
_WAIT_TO_READ_SECONDS = 0.1  # text that waits to be found by its words waits for this
# SQLite gives a row longer than a quarter of a page an extra page of its own. Measured: 768 numbers
# (1.5 KB) take 4.8 KB with SQLite's usual pages of 4 KB, and 2.0 KB with pages of 16 KB.
_PAGE_BYTES = 16_384
# Errors that pass or that a person can mend. SQLite's others, and those that values of a wrong type
# lead to, show damage.
_PASSING = {
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOLFS,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
_PRIMARY = 0xFF  # the part of an error's number that says its kind
_NUMBER, _OLD_NUMBER = "<f2", "<f4"  # half precision, as in the index; once it was single
_SUM_BYTES = 4
_TABLES = """
CREATE TABLE IF NOT EXISTS vectors (
    model BLOB NOT NULL, chunk BLOB NOT NULL,
    vector BLOB NOT NULL, -- followed by its checksum: SQLite notices no other byte in it
    used INTEGER NOT NULL, -- the day of the last use, counted from the epoch
    PRIMARY KEY (model, chunk)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS vectors_by_use ON vectors (used);
"""


class _Connection:
    """A connection that one thread uses at a time, opened when it is first used."""

    def __init__(self, path: Path, wait_seconds: float) -> None:
        self.lock = threading.Lock()
        self._path = path
        self._wait_seconds = wait_seconds
        self._sqlite: sqlite3.Connection | None = None
        self._file = 0  # the number of the file that it is connected to

    def opened(self, file: int) -> sqlite3.Connection:
        """Return the connection, a new one if `file` is another number than before."""
        if file != self._file:
            self.close()
        if self._sqlite is None:
            self._sqlite, self._file = _connect(self._path, self._wait_seconds), file
        return self._sqlite

    def close(self) -> None:
        if self._sqlite is not None:
            self._sqlite.close()
            self._sqlite = None


class EmbeddingCache:
    """The cache in `folder`, of at most about `max_bytes`; 0 turns it off.

    Its methods block: call them in a thread. Reading does not wait for a write.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._path = folder / _FILE
        self._max_bytes = max_bytes
        self._reading = _Connection(self._path, _WAIT_TO_READ_SECONDS)
        self._writing = _Connection(self._path, _WAIT_TO_WRITE_SECONDS)
        self._file = 0  # a number that grows whenever the file is removed

    def get(self, model: ModelIdentity, hashes: Iterable[str]) -> dict[str, Vector]:
        """Return the cached vectors of `hashes` (hex), by hash; unknown hashes are left out."""
        wanted = dict.fromkeys(hashes)
        found: dict[str, Vector] = {}
        for batch in batched(wanted, _HASHES_PER_QUERY):
            nothing: dict[str, Vector] = {}
            select = partial(_select, model=model, hashes=batch)
            found |= self._transact(self._reading, select, nothing)
        return found

    def is_new(self) -> bool:
        """Return whether the cache is off or has never been used."""
        return self._max_bytes <= 0 or not self._path.exists()

    def put(self, model: ModelIdentity, vectors: Mapping[str, Vector]) -> None:
        """Store `vectors` by hash (hex); drop the longest unused ones if the cache is full."""
        if vectors:
            insert = partial(_insert, model=model, vectors=vectors, max_bytes=self._max_bytes)
            self._transact(self._writing, insert, None)

    def remove(self, model: ModelIdentity, hashes: Iterable[str]) -> None:
        """Remove the vectors of `hashes` (hex)."""
        values = [(bytes.fromhex(model.digest), bytes.fromhex(key)) for key in hashes]
        delete = partial(_delete, values=values)
        self._transact(self._writing, delete, None)

    def close(self) -> None:
        """Release the file; the next use opens it again."""
        for connection in (self._reading, self._writing):
            with connection.lock:
                connection.close()

    def _transact(
        self,
        connection: _Connection,
        work: Callable[[sqlite3.Connection], _Result],
        otherwise: _Result,
    ) -> _Result:
        if self._max_bytes <= 0:
            return otherwise
        with connection.lock:
            try:
                with connection.opened(self._file) as sqlite:
                    return work(sqlite)
            except (sqlite3.Error, OSError, UnicodeError, TypeError) as error:
                _log.warning("the embedding cache %s is not usable: %s", self._path, error)
                connection.close()
                if _is_damage(error):
                    self._remove()
                    self._file += 1
                return otherwise

    def _remove(self) -> None:
        # With the log and the shared memory of the old file, which another process may keep open,
        # SQLite could not open a new one.
        for suffix in ("", "-wal", "-shm"):
            with contextlib.suppress(OSError):  # open in another process, on Windows
                self._path.with_name(f"{self._path.name}{suffix}").unlink()


def _is_damage(error: Exception) -> bool:
    number = getattr(error, "sqlite_errorcode", None)
    if number is None:  # not from SQLite itself
        return not isinstance(error, OSError)
    return number & _PRIMARY not in _PASSING


def _connect(path: Path, wait_seconds: float) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A vector gives away something about its text, so only the user may read the file.
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, timeout=wait_seconds, check_same_thread=False)
    lock = filelock.FileLock(f"{path}.lock", timeout=_WAIT_TO_WRITE_SECONDS, mode=0o600)
    try:
        # If two processes switch the journal mode at once, SQLite does not wait: it fails with
        # "database is locked".
        with lock:
            connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")  # a cache: losing it costs time only
            connection.executescript(_TABLES)
    except (sqlite3.Error, OSError):  # filelock's Timeout is an OSError
        connection.close()
        raise
    return connection


def _select(
    connection: sqlite3.Connection, model: ModelIdentity, hashes: Sequence[str]
) -> dict[str, Vector]:
    marks = ",".join("?" * len(hashes))
    key = (bytes.fromhex(model.digest), *map(bytes.fromhex, hashes))
    where = f"model = ? AND chunk IN ({marks})"
    rows = connection.execute(f"SELECT chunk, vector, used FROM vectors WHERE {where}", key)
    found, today = rows.fetchall(), _today()
    if any(used < today for _, _, used in found):
        _note_use(connection, f"UPDATE vectors SET used = ? WHERE {where}", (today, *key))
    types = {np.dtype(each).itemsize * model.dimension: each for each in (_NUMBER, _OLD_NUMBER)}
    parts = ((chunk, blob[:-_SUM_BYTES], blob[-_SUM_BYTES:]) for chunk, blob, _ in found)
    return {
        chunk.hex(): np.frombuffer(numbers, types[len(numbers)]).astype("<f4", copy=False)
        for chunk, numbers, checksum in parts
        if len(numbers) in types and checksum == _sum_of(key[0], chunk, numbers)
    }


def _note_use(connection: sqlite3.Connection, update: str, values: Sequence[object]) -> None:
    """Make an update, unless somebody else writes: then the next use is noted."""
    ((wait,),) = connection.execute("PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute(update, values)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & _PRIMARY != sqlite3.SQLITE_BUSY:
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {wait}")


def _insert(
    connection: sqlite3.Connection,
    model: ModelIdentity,
    vectors: Mapping[str, Vector],
    max_bytes: int,
) -> None:
    digest, today = bytes.fromhex(model.digest), _today()
    connection.executemany(
        "INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)",
        [
            (digest, chunk, blob + _sum_of(digest, chunk, blob), today)
            for chunk, blob in (
                (bytes.fromhex(key), np.asarray(vector, dtype=_NUMBER).tobytes())
                for key, vector in vectors.items()
            )
        ],
    )
    used = _bytes_used(connection)
    if used > max_bytes:
        (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        dropped = 1 - (1 - _SHARE_DROPPED) * max_bytes / used
        # Else what was used under a clock that was ahead would stay, and what is new would go.
        connection.execute("UPDATE vectors SET used = ? WHERE used > ?", (today, today))
        connection.execute(
            "DELETE FROM vectors WHERE (model, chunk) IN "
            "(SELECT model, chunk FROM vectors ORDER BY used LIMIT ?)",
            (max(1, int(count * dropped)),),
        )


def _delete(connection: sqlite3.Connection, values: Sequence[tuple[bytes, bytes]]) -> None:
    connection.executemany("DELETE FROM vectors WHERE model = ? AND chunk = ?", values)


def _sum_of(model: bytes, chunk: bytes, vector: bytes) -> bytes:
    """Return the checksum of a row; it shows damage, and forgery only as far as the file does."""
    return zlib.crc32(vector, zlib.crc32(model + chunk)).to_bytes(_SUM_BYTES, "big")


def _bytes_used(connection: sqlite3.Connection) -> int:
    pages, free, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


def _today() -> int:
    return int(time.time() // _SECONDS_PER_DAY)

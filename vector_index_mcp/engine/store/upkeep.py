"""Decides when to tidy the tables of a store, and does it; also the index over the vectors."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from typing import Any

import lancedb
from lancedb.index import IvfRq

from vector_index_mcp.engine.store.reach import to_the_end
from vector_index_mcp.engine.store.tables import Tables, index_words

_log = logging.getLogger(__name__)

# What maintenance gains: each unindexed row costs every full-text query 7 us, a row of prose 35 us
# (with 4,664 of them, 163 ms instead of 9), and each fragment 0.08 ms.
# What it costs: 0.5 s of processor time at 10,000 rows, 2 s at 100,000, even if there is little to
# do. So the larger the table, the longer it may wait. A saved file makes five commits: add its
# rows, delete the old ones, write its record; add its rows with vectors, delete those without.
_ROWS_BEFORE_DUE, _SHARE_BEFORE_DUE = 2_000, 0.05
_ROWS_WORTH_TIDYING_AT_THE_END = 1_000  # at the end of a long run, after which questions come
_COMMITS_BEFORE_DUE, _ROWS_PER_COMMIT_BEFORE_DUE = 200, 700
_ROWS_BEFORE_OVERDUE = 20_000  # or twice the table's size: maintenance reads the whole table
# The same thresholds for a quiet moment, in which nobody waits.
_ROWS_WORTH_TIDYING, _SHARE_WORTH_TIDYING = 200, 0.002
_COMMITS_WORTH_TIDYING, _ROWS_PER_COMMIT_WORTH_TIDYING = 25, 5_000
# A query that began before a commit needs the old files until it ends: far less than this.
_KEEP_VERSIONS_FOR = timedelta(seconds=30)
# Another machine may read slowly, sleep, or copy the tables one by one.
_KEEP_REMOTE_VERSIONS_FOR = timedelta(hours=2)

# A search of 22,000 vectors takes 19 ms without an index and 6 ms with this one. It is built in
# 0.24 s, adds 0.2 s to every maintenance, and finds all of the ten nearest vectors and 98 % of the
# hundred nearest.
_VECTORS_INDEX = IvfRq(distance_type="cosine")
# For remote tables, where full vectors are not compared because reading them costs requests. This
# index finds 94 % of the ten nearest.
_REMOTE_VECTORS_INDEX = IvfRq(distance_type="cosine", num_bits=4)
_VECTORS_WORTH_AN_INDEX = 5_000
_DIMENSIONS_OF_A_BLOCK = 8  # the index needs a dimension that is a multiple of this
_SHARE_STILL_MISSING = 0.01  # chunks that the model cannot embed must not prevent an index
# Every optimize adds a segment to the index, and nothing merges segments. After 2,000 saves in
# 10,000 rows there were 124, and a search took 171 ms instead of 14. Building the index again takes
# 1 s of processor time.
_MOST_SEGMENTS = 8


class Moment(Enum):
    """What comes after a commit."""

    IN_BULK = auto()
    """Much more is about to be written, so only what cannot wait is done."""
    USUAL = auto()
    AT_THE_END = auto()
    """Nothing more is about to be written, and questions may come."""


@dataclass(slots=True)
class Upkeep:
    """Counts the writes since the last maintenance."""

    rows: int = 0
    """The rows of the whole table at the last maintenance."""
    new_rows: int = 0
    """The rows that are not in the full-text index."""
    commits: int = 0
    has_old_versions: bool = True
    """Whether the last maintenance left versions that were too young to be dropped.

    True at a start, where it is unknown: a maintenance that finds nothing to do costs nothing.
    """

    def note_commit(self, new_rows: int = 0) -> None:
        """Count a commit."""
        self.new_rows += new_rows
        self.commits += 1

    def note_done(self, rows: int, *, has_replaced: bool) -> None:
        """Begin to count again after a maintenance.

        Args:
            rows: The rows of the whole table.
            has_replaced: Whether the maintenance has rewritten anything. The files that it replaced
                are then still there, and as large as the table.
        """
        self.has_old_versions = has_replaced or self.commits > 0
        self.rows, self.new_rows, self.commits = rows, 0, 0

    @property
    def is_due(self) -> bool:
        """Whether so much was written that queries become slower."""
        rows = max(_ROWS_BEFORE_DUE, int(_SHARE_BEFORE_DUE * self.rows))
        commits = max(_COMMITS_BEFORE_DUE, self.rows // _ROWS_PER_COMMIT_BEFORE_DUE)
        return self.new_rows >= min(rows, _ROWS_BEFORE_OVERDUE) or self.commits >= commits

    @property
    def is_overdue(self) -> bool:
        """Whether maintenance should interrupt a long run instead of waiting for its end."""
        return self.new_rows >= max(_ROWS_BEFORE_OVERDUE, self.rows)

    @property
    def is_due_at_the_end(self) -> bool:
        """Whether maintenance is worth its cost at the end of a long run."""
        return self.is_due or self.new_rows >= _ROWS_WORTH_TIDYING_AT_THE_END

    def is_due_at(self, moment: Moment) -> bool:
        """Whether maintenance is due, given what comes next."""
        if moment is Moment.IN_BULK:
            return self.is_overdue
        return self.is_due_at_the_end if moment is Moment.AT_THE_END else self.is_due

    @property
    def is_worthwhile(self) -> bool:
        """Whether maintenance is worth its cost in a quiet moment."""
        rows = max(_ROWS_WORTH_TIDYING, int(_SHARE_WORTH_TIDYING * self.rows))
        commits = max(_COMMITS_WORTH_TIDYING, self.rows // _ROWS_PER_COMMIT_WORTH_TIDYING)
        return self.has_old_versions or self.new_rows >= rows or self.commits >= commits


def kept_for(*, is_local: bool, is_private: bool) -> timedelta:
    """Return how long older versions of a table stay; pure.

    Args:
        is_local: Whether all readers are on this machine.
        is_private: Whether the caller knows of no other readers.
    """
    if is_private and is_local:  # a remote table may always have other readers
        return timedelta(milliseconds=1)  # LanceDB accepts no zero
    return _KEEP_VERSIONS_FOR if is_local else _KEEP_REMOTE_VERSIONS_FOR


async def rewrite(chunks: lancedb.AsyncTable) -> None:
    """Rewrite every row and every index; the old files go when old versions are dropped.

    `optimize` is not enough: it keeps deleted rows in a file if they are less than a tenth of it,
    and keeps their words in the indices. Searches can go on, because after each commit all rows can
    be found.
    """
    index = await vectors_index(chunks)
    if index is not None:  # `tidy` makes it again
        await chunks.drop_index(index.name)
    await chunks.update(updates_sql={"revision": "revision"})
    await index_words(chunks)


async def tidy(tables: Tables, *, keep: timedelta, is_local: bool) -> bool:
    """Compact the tables, update their indices, and drop old versions.

    If no old version has to stay, files that a killed process left are deleted as well.

    The vectors get an index once nearly all of them are there. An index that was trained on a part
    would have to be trained again, which takes ten times as long over deleted rows.

    Returns:
        Whether there was anything to do.
    """
    chunks, files = tables.chunks, tables.files
    before = await chunks.version(), await files.version()
    is_private = keep < _KEEP_VERSIONS_FOR
    index = await vectors_index(chunks)
    if index is not None and (index.num_segments or 0) >= _MOST_SEGMENTS:
        # It is made again below, once the table is compact; until then searches use no index.
        await chunks.drop_index(index.name)
    await chunks.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    await files.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    if await _are_vectors_worth_an_index(chunks):
        try:
            config = _VECTORS_INDEX if is_local else _REMOTE_VECTORS_INDEX
            await chunks.create_index("vector", config=config)
        except (RuntimeError, ValueError) as error:  # for example, if all vectors are equal
            _log.warning("the vectors get no index, so searches compare each: %s", error)
    if is_private:  # drop the version from before the index
        await chunks.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    return (await chunks.version(), await files.version()) != before


async def vectors_index(chunks: lancedb.AsyncTable) -> Any:
    """Return LanceDB's description of the index over the vectors; None if there is none."""
    indices = await chunks.list_indices()
    return next((index for index in indices if "vector" in index.columns), None)


async def unindexed_rows(chunks: lancedb.AsyncTable) -> int:
    """Return how many rows are missing in the index that is most out of date."""
    indices = await chunks.list_indices()
    return max((index.num_unindexed_rows or 0 for index in indices), default=0)


async def _are_vectors_worth_an_index(chunks: lancedb.AsyncTable) -> bool:
    rows = await chunks.count_rows()
    columns = await chunks.schema()
    if rows < _VECTORS_WORTH_AN_INDEX or "vector" not in columns.names:
        return False
    if columns.field("vector").type.list_size % _DIMENSIONS_OF_A_BLOCK:
        return False
    if await vectors_index(chunks) is not None:
        return False
    missing = await to_the_end(chunks.count_rows("NOT embedded"))
    return missing <= _SHARE_STILL_MISSING * rows

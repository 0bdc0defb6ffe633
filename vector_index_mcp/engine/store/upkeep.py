"""When the tables of a store are worth tidying, and the index over its vectors."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import lancedb
from lancedb.index import IvfRq

from vector_index_mcp.engine.store.tables import Tables, index_words

_log = logging.getLogger(__name__)

# What maintenance is for: an unindexed row costs every full-text query 7 us, one of prose 35 us (of
# 4,664 of them, 163 ms instead of 9), a fragment 0.08 ms.
# What it costs, in processor time, nearly however little there is to do: 0.5 s at 10,000 rows, 2 s
# at 100,000. So it may wait the longer the larger the table is. A saved file is five commits: its
# rows, those they replace, its record, and both kinds of rows again with its vectors.
_ROWS_BEFORE_DUE, _SHARE_BEFORE_DUE = 2_000, 0.05
_ROWS_WORTH_TIDYING_AT_THE_END = 1_000  # of a long work, after which questions come
_COMMITS_BEFORE_DUE, _ROWS_PER_COMMIT_BEFORE_DUE = 200, 700
_ROWS_BEFORE_OVERDUE = 20_000  # or as many again as there were: the whole table is read each time
# The same in a quiet moment, where nobody waits for it.
_ROWS_WORTH_TIDYING, _SHARE_WORTH_TIDYING = 200, 0.002
_COMMITS_WORTH_TIDYING, _ROWS_PER_COMMIT_WORTH_TIDYING = 25, 5_000
# A query that began before a commit needs the old files until it ends: far less than this.
_KEEP_VERSIONS_FOR = timedelta(seconds=30)
# Another machine may read slowly, sleep, or copy the tables one by one.
_KEEP_REMOTE_VERSIONS_FOR = timedelta(hours=2)

# A flat scan of 22,000 vectors takes 19 ms, with this index 6 ms; it is built in 0.24 s, costs
# every maintenance 0.2 s, and finds all of the ten nearest and 98 % of the hundred nearest.
_VECTORS_INDEX = IvfRq(distance_type="cosine")
# Where candidates are not compared by their full vectors, since these cost requests: of the ten
# nearest it finds 94 %.
_REMOTE_VECTORS_INDEX = IvfRq(distance_type="cosine", num_bits=4)
_VECTORS_WORTH_AN_INDEX = 5_000
_DIMENSIONS_OF_A_BLOCK = 8  # of that index: a dimension has to be a multiple of it
_SHARE_STILL_MISSING = 0.01  # what the model cannot embed must not stand in the way
# Every optimize adds a segment, which nothing merges: after 2,000 saves in 10,000 rows there were
# 124, and a search took 171 ms instead of 14. Making the index anew takes 1 s of processor time.
_MOST_SEGMENTS = 8


@dataclass(slots=True)
class Upkeep:
    """What was written since the last maintenance."""

    rows: int = 0
    """Of the whole table, at the last maintenance."""
    new_rows: int = 0
    """Not in the full-text index."""
    commits: int = 0
    has_old_versions: bool = True
    """Whether the last maintenance left some that were too young to be dropped; at a start, nobody
    knows, and a maintenance that finds nothing to do costs nothing."""

    def note_commit(self, new_rows: int = 0) -> None:
        """Count a commit in."""
        self.new_rows += new_rows
        self.commits += 1

    def note_done(self, rows: int, *, has_replaced: bool) -> None:
        """Begin to count anew, now that the table is tidy.

        Args:
            rows: Of the whole table.
            has_replaced: Whether the maintenance wrote anything anew. What it replaced is as large
                as the table, and still there.
        """
        self.has_old_versions = has_replaced or self.commits > 0
        self.rows, self.new_rows, self.commits = rows, 0, 0

    @property
    def is_due(self) -> bool:
        """Whether so much was written that queries start to pay for it."""
        rows = max(_ROWS_BEFORE_DUE, int(_SHARE_BEFORE_DUE * self.rows))
        commits = max(_COMMITS_BEFORE_DUE, self.rows // _ROWS_PER_COMMIT_BEFORE_DUE)
        return self.new_rows >= min(rows, _ROWS_BEFORE_OVERDUE) or self.commits >= commits

    @property
    def is_overdue(self) -> bool:
        """Whether maintenance should not even wait for the end of a long run."""
        return self.new_rows >= max(_ROWS_BEFORE_OVERDUE, self.rows)

    @property
    def is_due_at_the_end(self) -> bool:
        """Whether maintenance is worth its cost once a long work is done."""
        return self.is_due or self.new_rows >= _ROWS_WORTH_TIDYING_AT_THE_END

    @property
    def is_worthwhile(self) -> bool:
        """Whether maintenance in a quiet moment would be worth its cost."""
        rows = max(_ROWS_WORTH_TIDYING, int(_SHARE_WORTH_TIDYING * self.rows))
        commits = max(_COMMITS_WORTH_TIDYING, self.rows // _ROWS_PER_COMMIT_WORTH_TIDYING)
        return self.has_old_versions or self.new_rows >= rows or self.commits >= commits


def kept_for(*, is_local: bool, is_private: bool) -> timedelta:
    """How long older versions of a table stay; pure.

    Args:
        is_local: Whether everybody who reads it does so on this machine.
        is_private: Whether nobody else reads it at all.
    """
    if is_private and is_local:  # whatever is said of one elsewhere, others may read it
        return timedelta(milliseconds=1)  # nothing at all is refused
    return _KEEP_VERSIONS_FOR if is_local else _KEEP_REMOTE_VERSIONS_FOR


async def rewrite(chunks: lancedb.AsyncTable) -> None:
    """Write every row and every index anew; what is replaced goes with the old versions.

    `optimize` leaves the rows that were deleted where they are if they are less than a tenth of
    their file, and their words in the indices. Searches go on: each step is a commit of its own
    that leaves all rows to be found.
    """
    index = await vectors_index(chunks)
    if index is not None:  # made anew by `tidy`
        await chunks.drop_index(index.name)
    await chunks.update(updates_sql={"revision": "revision"})
    await index_words(chunks)


async def tidy(tables: Tables, *, keep: timedelta, is_local: bool) -> bool:
    """Compact, index what is not indexed, drop old versions; whether there was anything to do.

    Where no version has to stay, what a killed process has left of its writes goes, too.

    The vectors get an index once nearly all are there: trained on a part, it would have to be
    trained again, and over deleted rows that takes ten times as long.
    """
    chunks, files = tables.chunks, tables.files
    before = await chunks.version(), await files.version()
    is_private = keep < _KEEP_VERSIONS_FOR
    index = await vectors_index(chunks)
    if index is not None and (index.num_segments or 0) >= _MOST_SEGMENTS:
        # Made anew once the table is compact; until then, searches compare every vector.
        await chunks.drop_index(index.name)
    await chunks.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    await files.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    if await _are_vectors_worth_an_index(chunks):
        try:
            config = _VECTORS_INDEX if is_local else _REMOTE_VECTORS_INDEX
            await chunks.create_index("vector", config=config)
        except (RuntimeError, ValueError) as error:  # vectors that are all alike, say
            _log.warning("vectors are compared one by one: %s", error)
    if is_private:  # what the index has replaced
        await chunks.optimize(cleanup_older_than=keep, delete_unverified=is_private)
    return (await chunks.version(), await files.version()) != before


async def vectors_index(chunks: lancedb.AsyncTable) -> Any:
    """The index over the vectors, as LanceDB describes it; None if there is none."""
    indices = await chunks.list_indices()
    return next((index for index in indices if "vector" in index.columns), None)


async def unindexed_rows(chunks: lancedb.AsyncTable) -> int:
    """How many rows the index lacks that lacks most."""
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
    return await chunks.count_rows("NOT embedded") <= _SHARE_STILL_MISSING * rows

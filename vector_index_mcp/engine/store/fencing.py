"""Keeps a writer whose turn is over from finishing what it has begun.

On object storage a writer may be suspended anywhere, even in the middle of a commit, and resume
after another machine has taken its place. To prevent that, the new writer restores each table to
its own current version. Lance then refuses every commit that was begun before (appends, deletions,
updates, merges, maintenance, new indices), whenever it arrives.

Lance does not refuse an overwrite, which this program never does, nor the creation and removal of
tables. So a table's name contains the number of the writer's turn, and nobody removes tables of
later turns (`index`).
"""

import lancedb

_MOST_TRIES = 10
TURN = 1_000_000
"""How many generations of tables can be made in one turn."""


async def fence(table: lancedb.AsyncTable) -> None:
    """Make Lance refuse all commits to a table that were begun before; its rows stay as they are.

    If somebody commits between the reading of the version and its restoring, the restoring undoes
    that commit; so the newest version before it is restored next. That also helps if this process
    was suspended here and woke up in another writer's turn: nothing refuses its restoring, which
    undoes that writer's commits until they are restored the same way.
    """
    latest = version = await table.version()
    for _ in range(_MOST_TRIES):
        await table.restore(version)
        restored = await table.version()
        if restored == latest + 1:
            return
        latest, version = restored, restored - 1
    raise RuntimeError("another process keeps committing to the table")


def first_generation(turn: int | None) -> int:
    """Return the generation of the first tables of a turn; pure."""
    return (turn or 0) * TURN


def may_be_dropped(generation: int, turn: int | None) -> bool:
    """Return whether tables are of this turn or an earlier one; pure."""
    return turn is None or generation < first_generation(turn + 1)

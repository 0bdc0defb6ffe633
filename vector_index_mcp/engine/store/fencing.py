"""Keeps a writer whose turn is over from finishing what it has begun.

On object storage a writer may be stopped anywhere, also in the middle of a commit, and go on after
another machine has taken its place. Against that the new one restores each table to the version
that it has: Lance then refuses every commit that was begun before (appends, deletions, updates,
merges, maintenance, new indices), whenever it arrives. It refuses neither an overwriting, which
nobody does here, nor the making and removing of tables; so tables have the number of a turn in
their names, and nobody removes those of later turns (`index`).
"""

import lancedb

_MOST_TRIES = 10
TURN = 1_000_000
"""So many generations of tables can be made in one turn."""


async def fence(table: lancedb.AsyncTable) -> None:
    """Have Lance refuse whatever was begun before on a table; its rows stay as they are.

    What was committed between the look at the version and its restoring is undone by that; so it
    is restored then. The same heals what this very process has undone if it was stopped before its
    restoring, which nothing refuses, and woke up in another one's turn.
    """
    latest = version = await table.version()
    for _ in range(_MOST_TRIES):
        await table.restore(version)
        restored = await table.version()
        if restored == latest + 1:
            return
        latest, version = restored, restored - 1
    raise RuntimeError("somebody commits to the table all the time")


def first_generation(turn: int | None) -> int:
    """The number of the first tables that are made in a turn; pure."""
    return (turn or 0) * TURN


def may_be_dropped(generation: int, turn: int | None) -> bool:
    """Whether tables are of this turn or an earlier one; pure."""
    return turn is None or generation < first_generation(turn + 1)

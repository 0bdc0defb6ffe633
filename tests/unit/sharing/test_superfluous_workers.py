"""Which workers have to go."""

from types import SimpleNamespace

import pytest

from vector_index_mcp.sharing.workers import superfluous

NOW = 1_000.0
PLENTY, LITTLE = 8_000_000_000, 500_000_000


def worker(rested: float, guests: int = 1, *, is_busy: bool = False, idle: float = 600.0):
    return SimpleNamespace(last_use=NOW - rested, guests=guests, is_busy=is_busy, idle_seconds=idle)


USED = worker(1)
RESTING, RESTED_LONGEST = worker(30), worker(90)
BUSY = worker(90, is_busy=True)
LEFT, LEFT_LONG_AGO = worker(30, guests=0), worker(30, guests=0, idle=20.0)


@pytest.mark.parametrize(
    ("loaded", "available", "for_another", "expected"),
    [
        ([], LITTLE, True, []),
        ([RESTING], PLENTY, True, []),
        ([RESTING], LITTLE, True, [RESTING]),
        ([RESTING], LITTLE, False, []),
        ([RESTING, RESTED_LONGEST], PLENTY, False, []),
        ([RESTING, RESTED_LONGEST], PLENTY, True, [RESTED_LONGEST]),
        ([RESTING, RESTED_LONGEST], LITTLE, True, [RESTED_LONGEST]),
        ([RESTING, BUSY], PLENTY, True, [RESTING]),
        ([USED, BUSY], LITTLE, True, []),  # as if each had its own
        ([USED, BUSY, RESTING, RESTED_LONGEST], PLENTY, False, [RESTED_LONGEST, RESTING]),
        ([USED, LEFT], PLENTY, False, []),
        ([USED, LEFT], PLENTY, True, [LEFT]),
        ([USED, LEFT_LONG_AGO], PLENTY, False, [LEFT_LONG_AGO]),
        ([RESTING, LEFT_LONG_AGO], PLENTY, True, [LEFT_LONG_AGO]),
    ],
)
def test_who_has_rested_longest_goes_where_there_is_no_room(
    loaded, available, for_another, expected
):
    assert superfluous(loaded, NOW, available, for_another=for_another) == expected

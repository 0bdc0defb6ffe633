"""Which of the last queries are kept."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vector_index_mcp.codebase.recent import MOST_KEPT, Asked, Asker, RecentQueries

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def asked(query, after_seconds=0.0, asker=Asker.PAGE):
    at = NOON + timedelta(seconds=after_seconds)
    return Asked(query, asker, "", "", at, 0.01, "hybrid", 0, ())


def kept(*queries):
    recent = RecentQueries()
    for one in queries:
        recent.note(one)
    return [one.query for one in recent.newest_first()]


def test_the_newest_is_first_and_the_oldest_go():
    queries = kept(*(asked(f"query {n}") for n in range(MOST_KEPT + 10)))
    assert len(queries) == MOST_KEPT
    assert queries[0] == f"query {MOST_KEPT + 9}"


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (asked("retry delay", 1), ["retry delay"]),
        (asked("ret", 1), ["ret"]),
        (replace(asked("retry", 1), path="src/**"), ["retry"]),
        (asked("delay", 1), ["delay", "retry"]),
        (asked("retry delay", 60), ["retry delay", "retry"]),
        (asked("retry delay", 1, Asker.CLIENT), ["retry delay", "retry"]),
    ],
)
def test_what_is_typed_on_takes_the_place_of_what_was_typed(later, expected):
    assert kept(asked("retry"), later) == expected


def test_a_client_never_types():
    first, second = asked("retry", 0, Asker.CLIENT), asked("retry delay", 1, Asker.CLIENT)
    assert kept(first, second) == ["retry delay", "retry"]

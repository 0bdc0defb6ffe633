"""Which of the last queries are kept."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from vector_index_mcp.codebase.recent import MOST_KEPT, MOST_SHOWN, Asked, Asker, RecentQueries

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def asked(query, after_seconds=0.0, asker=Asker.PAGE):
    at = NOON + timedelta(seconds=after_seconds)
    return Asked(query, asker, "", "", at, 0.01, True, 0, ())


def kept(*queries):
    recent = RecentQueries()
    for one in queries:
        recent.note(one)
    return [each.last.query for each in recent.repeated()]


def test_the_oldest_go():
    queries = [asked("retry", n, Asker.CLIENT) for n in range(MOST_KEPT + 10)]
    first = asked("the first", 0, Asker.CLIENT)
    assert repeated(first, *queries) == [("retry", {Asker.CLIENT: MOST_KEPT})]


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


def repeated(*queries):
    recent = RecentQueries()
    for one in queries:
        recent.note(one)
    return [(each.last.query, dict(each.times)) for each in recent.repeated()]


def test_what_is_asked_again_is_told_once_with_its_last_time():
    client = Asker.CLIENT
    recent = RecentQueries()
    for seconds, query in enumerate(["retry", "delay", "retry", "retry", "cache"]):
        recent.note(asked(query, seconds, client))
    found = [(each.last.query, dict(each.times)) for each in recent.repeated()]
    assert found == [("cache", {client: 1}), ("retry", {client: 3}), ("delay", {client: 1})]
    assert recent.repeated()[1].last.at == NOON + timedelta(seconds=3)


def test_who_asks_is_counted_apart():
    queries = [asked("retry", n * 60, asker) for n, asker in enumerate([*Asker, Asker.CLIENT])]
    assert repeated(*queries) == [("retry", {Asker.CLIENT: 2, Asker.PAGE: 1})]


def test_the_same_words_in_other_files_are_another_query():
    first = asked("retry", 0, Asker.CLIENT)
    others = [replace(first, path="src/**"), replace(first, language="python")]
    assert [times for _, times in repeated(first, *others)] == [{Asker.CLIENT: 1}] * 3


def test_a_query_that_is_typed_on_costs_the_earlier_ones_nothing():
    queries = [asked("retry", 0), asked("retry", 60), asked("retry delay", 61)]
    assert repeated(*queries) == [("retry delay", {Asker.PAGE: 1}), ("retry", {Asker.PAGE: 1})]


def test_no_more_lines_are_told_than_somebody_reads():
    queries = [asked(f"query {n}", n, Asker.CLIENT) for n in range(MOST_SHOWN + 1)]
    assert len(repeated(*queries)) == MOST_SHOWN
    assert repeated(*queries)[0][0] == f"query {MOST_SHOWN}"

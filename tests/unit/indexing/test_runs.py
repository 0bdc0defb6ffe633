"""Which run is under way, and which comes next."""

import pytest

from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.writing.run import Kind
from vector_index_mcp.indexing.writing.runs import Runs


@pytest.fixture
def runs() -> Runs:
    return Runs(StateMachine(), lambda: None)


def test_a_rebuild_waits_for_the_run_before_it(runs):
    first = runs.begin(Kind.START)
    rebuild = runs.begin(Kind.REBUILD)
    assert (runs.current, rebuild.finished.is_set()) == (first, False)
    runs.end()
    assert (runs.current, runs.last) == (rebuild, first)


@pytest.mark.parametrize("first", list(Kind))
def test_the_folders_are_walked_again_for_whoever_joins_a_run(runs, first):
    run = runs.begin(first)
    runs.is_walk_due = False
    assert runs.begin(Kind.REQUEST) is run
    assert (run.kind, run.is_asked, runs.is_walk_due) == (first, True, True)


@pytest.mark.parametrize("kind", [Kind.REQUEST, Kind.REBUILD])
def test_who_joins_a_run_that_has_walked_often_waits_for_the_next_one(runs, kind):
    first, joined = runs.begin(kind), []
    for _ in range(9):
        runs.is_walk_due = False  # the walk has begun
        joined.append(runs.begin(kind))
    assert joined[:2] == [first, first]
    after = joined[2]
    assert after is not first and joined[2:] == [after] * 7
    runs.end()
    assert (runs.current, after.kind, runs.is_walk_due) == (after, Kind.REQUEST, True)


def test_a_rebuild_is_made_of_a_run_that_waits(runs):
    runs.begin(Kind.START)
    for _ in range(3):
        runs.is_walk_due = False
        waiting = runs.begin(Kind.REQUEST)
    assert runs.begin(Kind.REBUILD) is waiting
    assert waiting.kind is Kind.REBUILD


def test_an_empty_index_is_filled_by_the_run_under_way_and_not_aside(runs):
    run = runs.begin(Kind.REBUILD)
    runs.is_walk_due = False
    runs.begin_again()
    assert (runs.current, run.kind, runs.is_walk_due) == (run, Kind.START, True)


def test_a_rebuild_that_waits_ends_with_an_index_that_is_given_up():
    state = StateMachine()
    runs = Runs(state, lambda: None)
    first, rebuild = runs.begin(Kind.START), runs.begin(Kind.REBUILD)
    runs.end_all("the index is gone")
    assert [(run.finished.is_set(), run.error) for run in (first, rebuild)] == [
        (True, "the index is gone")
    ] * 2
    assert (runs.current, state.current) == (None, State.ERROR)

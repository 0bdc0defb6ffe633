"""When a batch of dirty paths is ready. No clock: the tests pass the time in."""

from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files.debounce import Debouncer

QUIET = 2.0
LONGEST = 10.0


def debouncer() -> Debouncer:
    return Debouncer(QUIET, LONGEST)


def taken_at(waiting: Debouncer, paths: list[str], *, until: float) -> float:
    """Call `take` whenever it is due, and return when it hands out just `paths`."""
    while (due := waiting.due) is not None and due <= until:
        if batch := waiting.take(due):
            assert batch == paths
            return due
    raise AssertionError(f"{paths} were not taken")


@pytest.mark.parametrize(
    ("touched_at", "taken"),
    [
        ([5], 7),
        ([0, 1], 3),
        ([0, 1.5, 3, 4.5], 6.5),
        ([0, 1.5, 3, 4.5, 6, 7.5, 9], 10),
        ([3, 4, 5, 6, 7, 8, 9, 10, 11, 12], 13),
    ],
)
def test_a_path_is_taken_when_it_is_quiet_or_its_first_change_is_long_ago(
    touched_at: list[float], taken: float
) -> None:
    waiting = debouncer()
    for now in touched_at:
        assert waiting.take(now) == []
        waiting.touch(["a"], now)
    assert taken_at(waiting, ["a"], until=taken) == taken


def test_a_path_waits_for_others_but_only_for_so_long() -> None:
    waiting = debouncer()
    for now, path in [(0, "a"), (1.5, "b"), (3, "c")]:
        waiting.touch([path], now)
    assert taken_at(waiting, ["a", "b"], until=99) == 2 * QUIET
    assert taken_at(waiting, ["c"], until=99) == 3 + QUIET


def test_files_that_are_saved_together_are_one_batch() -> None:
    waiting = debouncer()
    waiting.touch(["a"], 0)
    waiting.touch(["b"], 1)
    assert taken_at(waiting, ["a", "b"], until=99) == 1 + QUIET


@given(st.lists(st.floats(0.1, 3), min_size=1, max_size=9), st.floats(0, 60))
def test_files_that_change_all_the_time_do_not_hold_up_one_that_is_saved(
    pauses: list[float], saved_at: float
) -> None:
    waiting = debouncer()
    steps = [
        (i * pause, f"noise {n}") for n, pause in enumerate(pauses) for i in range(int(70 / pause))
    ]
    for now, path in sorted([*steps, (saved_at, "saved")]):
        while (due := waiting.due) is not None and due <= now:
            if "saved" in waiting.take(due):
                assert saved_at + QUIET <= due <= saved_at + 2 * QUIET
                return
        waiting.touch([path], now)
    raise AssertionError("the saved file was not taken")


def test_a_change_that_is_due_costs_no_walk_over_what_waits() -> None:
    """Each event asks for it, and a storm of events has ten thousands of paths."""
    waiting = debouncer()
    waiting.touch(map(str, range(1_000)), 0)

    class Unreadable(dict):  # type: ignore[type-arg]
        def __iter__(self) -> Never:
            raise AssertionError("walked")

        items = values = __iter__

    waiting._paths = Unreadable(waiting._paths)
    waiting.touch(["1", "new"], 1)
    assert waiting.due == 1 + QUIET
    assert waiting.take(1) == []


@pytest.mark.parametrize(("now", "batch"), [(1.999, []), (2, ["a"]), (99, ["a"])])
def test_a_batch_is_handed_out_from_the_moment_it_is_due(now: float, batch: list[str]) -> None:
    waiting = debouncer()
    waiting.touch(["a"], 0)
    assert waiting.take(now) == batch
    assert len(waiting) == 1 - len(batch)


def test_a_batch_keeps_the_order_of_the_first_changes() -> None:
    waiting = debouncer()
    waiting.touch(["b", "a"], 0)
    waiting.touch(["c", "b"], 1)
    waiting.touch(["a"], 1)
    assert waiting.take(3) == ["b", "a", "c"]


def test_there_is_no_batch_of_nothing() -> None:
    waiting = debouncer()
    assert waiting.take(1_000) == []
    waiting.touch([], 0)
    assert (waiting.due, waiting.take(1_000), len(waiting)) == (None, [], 0)


def test_a_new_batch_counts_from_its_own_first_change() -> None:
    waiting = debouncer()
    waiting.touch(["a"], 0)
    assert waiting.take(2) == ["a"]
    assert (waiting.due, waiting.take(1_000)) == (None, [])
    waiting.touch(["a"], 50)
    assert waiting.due == 52


def test_a_touch_of_nothing_does_not_put_a_batch_off() -> None:
    waiting = debouncer()
    waiting.touch(["a"], 0)
    waiting.touch([], 1)
    assert waiting.due == QUIET


steps = st.lists(
    st.tuples(st.integers(0, 6), st.lists(st.sampled_from("abcd"), max_size=3)), max_size=40
)


@given(steps, st.integers(0, 5), st.integers(0, 20))
def test_no_path_is_lost_handed_out_twice_or_kept_longer_than_longest(
    script: list[tuple[int, list[str]]], quiet: int, longest: int
) -> None:
    waiting = Debouncer(quiet, longest)
    pending: dict[str, int] = {}  # path -> time of the change it waits for
    now = 0
    for pause, paths in script:
        for moment in range(now, now + pause + 1):
            batch = waiting.take(moment)
            assert batch == [path for path in pending if path in batch]
            for path in batch:
                del pending[path]
            assert len(waiting) == len(pending)
            assert all(moment - since < longest for since in pending.values())
        now += pause
        waiting.touch(paths, now)
        for path in paths:
            pending.setdefault(path, now)
    assert waiting.take(now + max(quiet, longest)) == list(pending)
    assert waiting.take(now + 1_000) == []


def test_what_is_forgotten_is_not_waited_for() -> None:
    waiting = debouncer()
    waiting.touch(["a", "b"], 0)
    waiting.forget(["a", "c"])
    assert waiting.take(2) == ["b"]
    waiting.touch(["a"], 3)
    waiting.forget(["a"])
    assert waiting.due is None

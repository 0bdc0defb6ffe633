"""What a run tells of its progress."""

from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.indexing.writing.run import Kind, Outcome, Run


def keys(first, end=None):
    """The keys of some files: of so many, or of those from one number to another."""
    return [f"file{n}" for n in (range(first) if end is None else range(first, end))]


def test_what_joins_a_run_is_expected_of_it():
    run = Run(Kind.START, 1)
    run.advance(keys(5), Outcome())
    run.plan(300, keys(5, 305))
    run.advance(keys(5, 300), Outcome())
    run.expect(keys(305, 1_505))
    assert (run.files_done, run.files_to_do) == (300, 1_505)
    run.advance(keys(300, 1_505), Outcome())
    assert (run.files_done, run.files_to_do) == (1_505, 1_505)


def test_a_file_that_is_read_once_more_counts_once():
    """Its time is so recent that a later write could leave it, and another walk joins the run."""
    run = Run(Kind.START, 1)
    run.plan(8, keys(8))
    run.advance(keys(8), Outcome(read=8, indexed=8))
    run.plan(8, keys(8))
    assert (run.files_done, run.files_to_do) == (8, 8)
    run.advance(keys(8), Outcome(read=8, unchanged=7, indexed=1))
    assert (run.files_done, run.files_to_do) == (8, 8)
    assert (run.outcome.indexed, run.outcome.unchanged) == (9, 0)


def test_a_file_that_fails_once_more_counts_once():
    """Who joins a run has what failed tried again."""
    run = Run(Kind.START, 1)
    run.advance(keys(8), Outcome(read=8, indexed=6, failures={*keys(2)}))
    run.advance(keys(2), Outcome(read=2, failures={*keys(2)}))
    assert run.outcome.failed == 2
    run.advance(keys(1, 9), Outcome(read=8, indexed=7, failures={"file8"}))
    assert (run.files_done, run.outcome.failures) == (9, {"file0", "file8"})


@given(
    st.lists(
        st.tuples(st.sampled_from(["plan", "expect", "advance"]), st.sets(st.integers(0, 9))),
        max_size=12,
    )
)
def test_what_is_to_do_is_what_is_expected_or_done(steps):
    run, expected, done = Run(Kind.START, 1), set(), set()
    for what, numbers in steps:
        files = {f"file{n}" for n in numbers}
        if what == "plan":
            run.plan(10, files)
            expected = files
        elif what == "expect":
            run.expect(files)
            expected = expected | files
        else:
            run.advance(files, Outcome())
            done |= files
        assert (run.files_done, run.files_to_do) == (len(done), len(done | expected))


def test_the_time_left_is_never_less_than_nothing():
    run = Run(Kind.START, 1)
    run.plan(1, keys(1))
    run.advance(keys(2), Outcome())
    assert run.seconds_left == 0


def test_a_run_ends_when_it_is_finished():
    run = Run(Kind.START, 1)
    assert run.ended is None
    run.finish()
    assert run.ended >= run.started


def test_two_runs_that_were_one_for_their_caller_are_counted_together():
    opening, request = Run(Kind.START, 1), Run(Kind.REQUEST, 2)
    opening.advance(keys(3), Outcome(read=3, indexed=1, skipped=1, failures={"file2"}))
    # What had failed fails again, and what was indexed is read once more.
    request.advance(keys(4), Outcome(read=4, indexed=1, failures={"file2"}, unchanged=2))
    request.continue_from(opening)
    assert request.outcome == Outcome(read=7, indexed=2, skipped=1, failures={"file2"}, unchanged=1)

"""What a run tells of its progress."""

from vector_index_mcp.indexing.run import Kind, Outcome, Run


def test_what_joins_a_run_is_expected_of_it():
    run = Run(Kind.START, 1)
    run.advance(5, Outcome())
    run.plan(seen=300, to_do=300)
    run.advance(295, Outcome())
    run.expect(1_200)
    assert (run.files_done, run.files_to_do) == (300, 1_505)
    run.advance(1_205, Outcome())
    assert (run.files_done, run.files_to_do) == (1_505, 1_505)


def test_the_time_left_is_never_less_than_nothing():
    run = Run(Kind.START, 1)
    run.plan(seen=1, to_do=1)
    run.advance(2, Outcome())
    assert run.seconds_left == 0


def test_a_run_ends_when_it_is_finished():
    run = Run(Kind.START, 1)
    assert run.ended is None
    run.finish()
    assert run.ended >= run.started


def test_two_runs_that_were_one_for_their_caller_are_counted_together():
    opening, request = Run(Kind.START, 1), Run(Kind.REQUEST, 2)
    opening.advance(3, Outcome(read=3, indexed=1, skipped=1, failed=1))
    request.advance(2, Outcome(read=2, indexed=1, failed=1))  # what had failed fails again
    request.continue_from(opening)
    assert request.outcome == Outcome(read=5, indexed=2, skipped=1, failed=1)

"""What the evidence of hits says is brought into agreement with their order."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.ranking.likelihood import (
    JUDGED_TOGETHER,
    ORDER,
    falling,
    in_agreement,
    likelihood,
)

numbers = st.lists(st.floats(0.001, 0.999), max_size=30)


def judged(values):
    """The likelihoods of hits whose evidence has said `values`."""
    parts = [{"base": math.log(value / (1 - value))} for value in values]
    return [likelihood(each) for each in in_agreement(parts)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([0.4], [0.4]),
        ([0.9, 0.5, 0.1], [0.9, 0.5, 0.1]),
        ([0.1, 0.5, 0.2], [0.3, 0.3, 0.2]),
        ([0.4, 0.2, 0.6], [0.4, 0.4, 0.4]),
        ([0.9, 0.1, 0.2, 0.3], [0.9, 0.2, 0.2, 0.2]),
    ],
)
def test_neighbours_that_rise_have_their_mean(values, expected):
    assert falling(values) == pytest.approx(expected)


@given(numbers)
def test_nothing_rises_and_the_sum_stays(values):
    found = falling(values)
    assert all(before >= after for before, after in pairwise(found))
    assert math.fsum(found) == pytest.approx(math.fsum(values))


@given(numbers, st.data())
def test_no_others_that_fall_are_nearer(values, data):
    other = sorted(data.draw(st.lists(st.floats(0, 1), min_size=len(values))), reverse=True)

    def distance(found):
        return math.fsum((a - b) ** 2 for a, b in zip(values, found, strict=False))

    assert distance(falling(values)) <= distance(other) + 1e-9


def test_an_explanation_names_what_the_order_has_changed():
    sure, less, more = in_agreement([{"base": 2.0}, {"base": -2.0}, {"base": -1.0}])
    assert sure == {"base": 2.0}
    assert less[ORDER] > 0 > more[ORDER]
    assert likelihood(less) == pytest.approx(likelihood(more))


@given(st.lists(st.floats(0.001, 0.999), min_size=JUDGED_TOGETHER, max_size=60), st.data())
def test_who_asks_for_more_hits_is_told_the_same_of_the_first(values, data):
    asked = data.draw(st.integers(JUDGED_TOGETHER, len(values)))
    assert judged(values[:asked]) == judged(values)[:asked]
    assert all(before >= after - 1e-9 for before, after in pairwise(judged(values)))

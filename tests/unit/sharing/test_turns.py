"""Whose request is next."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.sharing import frames
from vector_index_mcp.sharing.turns import Kind, Turns

QUERY, RANKING, BATCH = Kind


def turns_of(*requests: tuple[str, str, Kind]) -> Turns[str, str]:
    turns: Turns[str, str] = Turns()
    for guest, request, kind in requests:
        turns.add(guest, request, kind)
    return turns


def taken(turns: Turns[str, str]) -> list[str]:
    """All requests in the order of their turns, each answered before the next but one is."""
    order = []
    while turn := turns.next():
        _, request, kind = turn
        order.append(request)
        turns.done(kind)
    return order


def test_queries_come_before_batches_and_guests_in_turn():
    turns = turns_of(
        *(("one", f"b{number}", BATCH) for number in range(3)),
        ("two", "b3", BATCH),
        ("two", "q1", QUERY),
        ("one", "q2", QUERY),
    )
    assert taken(turns) == ["q1", "q2", "b0", "b3", "b1", "b2"]
    assert (turns.waiting, turns.at_work) == (0, 0)


def test_two_of_a_kind_are_at_work_and_no_more():
    turns = turns_of(*(("one", f"{number}", BATCH) for number in range(3)))
    assert [turns.next()[1] for _ in range(2)] == ["0", "1"]
    assert turns.next() is None
    turns.add("two", "query", QUERY)
    assert turns.next() == ("two", "query", QUERY)
    turns.done(BATCH)
    assert turns.next() == ("one", "2", BATCH)
    assert (turns.waiting, turns.at_work) == (0, 3)


def test_no_kind_waits_for_a_cross_encoder_that_is_loading():
    turns = turns_of(*(("one", f"r{number}", RANKING) for number in range(3)))
    assert [turns.next()[1] for _ in range(2)] == ["r0", "r1"]
    turns.add("two", "batch", BATCH)
    turns.add("two", "query", QUERY)
    assert [turns.next()[1] for _ in range(2)] == ["query", "batch"]
    turns.done(RANKING)
    assert turns.next() == ("one", "r2", RANKING)


def test_what_waits_of_who_has_left_has_no_turn():
    turns = turns_of(("one", "a", BATCH), ("two", "b", BATCH), ("one", "c", QUERY))
    turns.drop("one")
    turns.drop("nobody")
    assert taken(turns) == ["b"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Kind)), max_size=40))
def test_nothing_is_lost_and_the_order_of_a_guest_is_kept(asked):
    requests = [(guest, str(number), kind) for number, (guest, kind) in enumerate(asked)]
    order = taken(turns_of(*requests))
    assert sorted(order) == sorted(request for _, request, _ in requests)
    for who, what in {(guest, kind) for guest, _, kind in requests}:
        own = [request for guest, request, kind in requests if (guest, kind) == (who, what)]
        assert [request for request in order if request in own] == own


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"urgent": False}, BATCH),
        ({"urgent": True, "are_queries": True}, QUERY),
        ({"urgent": True, "query": "a"}, RANKING),
        ({"urgent": False, "query": ""}, RANKING),  # has the cross-encoder loaded
    ],
)
def test_a_frame_tells_what_it_asks_for(values, kind):
    assert frames.request({"id": 1, "texts": ["a"], **values}, 1).kind is kind

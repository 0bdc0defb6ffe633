"""Whose request is next."""

from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.sharing.turns import Turns


def turns_of(*requests: tuple[str, str, bool]) -> Turns[str, str]:
    turns: Turns[str, str] = Turns()
    for guest, request, urgent in requests:
        turns.add(guest, request, urgent=urgent)
    return turns


def taken(turns: Turns[str, str]) -> list[str]:
    """All requests in the order of their turns, each answered before the next but one is."""
    order = []
    while turn := turns.next():
        _, request, urgent = turn
        order.append(request)
        turns.done(urgent=urgent)
    return order


def test_queries_come_before_batches_and_guests_in_turn():
    turns = turns_of(
        *(("one", f"b{number}", False) for number in range(3)),
        ("two", "b3", False),
        ("two", "q1", True),
        ("one", "q2", True),
    )
    assert taken(turns) == ["q1", "q2", "b0", "b3", "b1", "b2"]
    assert (turns.waiting, turns.at_work) == (0, 0)


def test_two_of_a_kind_are_at_work_and_no_more():
    turns = turns_of(*(("one", f"{number}", False) for number in range(3)))
    assert [turns.next()[1] for _ in range(2)] == ["0", "1"]
    assert turns.next() is None
    turns.add("two", "query", urgent=True)
    assert turns.next() == ("two", "query", True)
    turns.done(urgent=False)
    assert turns.next() == ("one", "2", False)
    assert (turns.waiting, turns.at_work) == (0, 3)


def test_what_waits_of_who_has_left_has_no_turn():
    turns = turns_of(("one", "a", False), ("two", "b", False), ("one", "c", True))
    turns.drop("one")
    turns.drop("nobody")
    assert taken(turns) == ["b"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_nothing_is_lost_and_the_order_of_a_guest_is_kept(asked):
    requests = [(guest, str(number), urgent) for number, (guest, urgent) in enumerate(asked)]
    order = taken(turns_of(*requests))
    assert sorted(order) == sorted(request for _, request, _ in requests)
    for who, kind in {(guest, urgent) for guest, _, urgent in requests}:
        own = [request for guest, request, urgent in requests if (guest, urgent) == (who, kind)]
        assert [request for request in order if request in own] == own

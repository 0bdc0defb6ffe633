from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine.batched import batched


@given(st.lists(st.integers()), st.integers(1, 9))
def test_every_value_is_in_one_batch_in_order_and_all_but_the_last_are_full(values, size):
    found = list(batched(iter(values), size))

    assert [value for batch in found for value in batch] == values
    assert all(len(batch) == size for batch in found[:-1])
    assert all(0 < len(batch) <= size for batch in found[-1:])

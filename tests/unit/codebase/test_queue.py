import pytest

from vector_index_mcp.codebase.queue import DirtyQueue
from vector_index_mcp.files.scan import Changes

pytestmark = pytest.mark.anyio


async def test_what_a_scan_found_is_given_out_in_portions():
    queue = DirtyQueue(0.01, 0.1)
    queue.add(Changes(["a", "b", "c"], ["d"]))

    first, second = queue.take_scanned(2), queue.take_scanned(2)

    assert (first.dirty, first.gone, second.dirty) == (["a", "b"], ["d"], ["c"])
    assert not queue.has_scanned


async def test_what_a_scan_found_of_a_file_is_outdated_once_the_file_was_looked_at_again():
    queue = DirtyQueue(0.01, 0.1)
    queue.add(Changes(["a", "saved"], ["came back", "d"]))

    queue.settle(Changes(["saved", "came back"]))

    changes = queue.take_scanned(10)
    assert (changes.dirty, changes.gone) == (["a"], ["d"])

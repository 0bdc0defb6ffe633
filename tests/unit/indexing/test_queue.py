import anyio
import pytest
from waiting import PATIENCE_SECONDS

from vector_index_mcp.files.debounce import Debouncer
from vector_index_mcp.indexing.writing.queue import DirtyQueue

pytestmark = pytest.mark.anyio


async def test_a_file_that_stays_open_holds_up_nobody_and_is_taken_later():
    queue = DirtyQueue(0.0, 0.0)
    queue._unfinished = Debouncer(3_600.0, 3_600.0)
    queue.touch_unfinished(["log"])
    queue.touch(["saved"])

    assert queue.take_touched() == ["saved"]
    assert len(queue) == 1

    queue.touch(["log"])  # closed

    assert queue.take_touched() == ["log"]
    assert len(queue) == 0


async def test_a_file_that_was_saved_is_not_taken_for_an_open_one():
    queue = DirtyQueue(0.0, 0.0)
    queue.touch(["saved"])
    queue.touch_unfinished(["saved"])

    assert queue.take_touched() == ["saved"]
    assert len(queue) == 0


async def test_somebody_who_waits_is_woken_for_an_open_file():
    queue = DirtyQueue(0.0, 0.0)
    queue.touch_unfinished(["log"])
    with anyio.fail_after(PATIENCE_SECONDS):
        while not (taken := queue.take_touched()):
            await queue.wait()

    assert taken == ["log"]


async def test_nobody_is_woken_for_nothing():
    queue = DirtyQueue(0.0, 0.0)
    queue.touch([])
    queue.touch_unfinished([])
    queue.touch_unless_queued([])
    with anyio.move_on_after(0) as patience:
        await queue.wait()
    assert patience.cancelled_caught


async def test_an_ignored_log_hides_no_saved_file():
    """A search waits for saved files only; a log may be written all the time."""
    queue = DirtyQueue(quiet=3_600.0, longest=3_600.0)
    queue.touch_unfinished(["app.log"])
    queue.note_settled(["app.log"], queue.touch_count)
    assert queue.saved_count == 0
    queue.touch(["saved.py", "touched.py"])
    assert queue.saved_count == 2
    queue.note_settled(["app.log", "touched.py"], queue.touch_count)
    assert queue.saved_count == 1


async def test_what_a_look_found_up_to_date_counts_as_a_change_again_once_it_is_touched():
    queue = DirtyQueue(quiet=0.0, longest=0.0)
    queue.touch(["a", "b", "c", "d"])
    queue.note_settled(["a", "b", "c", "d", "nobody has touched it"], queue.touch_count)
    assert queue.settled_count == 4
    queue.touch(["a"])
    queue.touch_unless_queued(["b"])
    assert queue.settled_count == 2
    queue.note_settled(["d"], queue.touch_count)
    assert queue.settled_count == 1
    queue.touch_unfinished(["e"])
    queue.note_settled(["e"], queue.touch_count)
    queue.touch_unfinished(["e"])
    assert queue.settled_count == 0
    queue.note_settled(["d"], queue.touch_count)
    assert set(queue.take_touched()) >= {"a", "b", "c", "d"}
    assert queue.settled_count == 0


@pytest.mark.parametrize("touch", ["touch", "touch_unless_queued", "touch_unfinished"])
async def test_what_is_touched_during_a_look_has_changed_whatever_the_look_found(touch):
    queue = DirtyQueue(quiet=3_600.0, longest=3_600.0)
    queue.touch(["saved", "other"])
    before = queue.touch_count
    getattr(queue, touch)(["saved"])
    queue.note_settled(["saved", "other"], before)
    assert (queue.settled_count, queue.saved_count) == (1, 1)


async def test_what_is_written_while_it_stays_open_has_changed_since_it_was_settled():
    queue = DirtyQueue(quiet=3_600.0, longest=3_600.0)
    queue.touch(["log"])
    queue.note_settled(["log"], queue.touch_count)
    queue.touch_unfinished(["log"])
    assert (queue.settled_count, queue.saved_count) == (0, 1)

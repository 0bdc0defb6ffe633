import logging

import anyio
import pytest
from waiting import eventually

from vector_index_mcp.indexing.activity import Activity

pytestmark = pytest.mark.anyio


async def test_what_has_not_taken_long_is_no_stall():
    activity = Activity(long_seconds=3600)
    with activity.of("the reading of a.py"):
        assert activity.stalls() == []


async def test_what_takes_long_is_told_with_its_time_until_it_is_over():
    activity = Activity(long_seconds=0)
    with activity.of("the reading of a.py"):
        with activity.of("the embedding of chunks"):
            assert activity.stalls() == [
                "the reading of a.py for 0 s",
                "the embedding of chunks for 0 s",
            ]
        assert activity.stalls() == ["the reading of a.py for 0 s"]
    assert activity.stalls() == []


async def test_a_step_that_fails_is_over():
    activity = Activity(long_seconds=0)
    with pytest.raises(OSError, match="no such disk"), activity.of("the reading of a.py"):
        raise OSError("no such disk")
    assert activity.stalls() == []


async def test_a_stall_is_logged_once_and_so_is_its_end(caplog):
    caplog.set_level(logging.INFO, logger="vector_index_mcp.indexing.activity")
    activity = Activity(long_seconds=0.01)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(activity.log_stalls)
        with activity.of("the reading of a.py"):
            await eventually(lambda: caplog.messages)
            with activity.of("the embedding of chunks"):  # seen later, and the other one again
                await eventually(lambda: len(caplog.messages) > 1)
        tasks.cancel_scope.cancel()
    assert [message.partition(" has taken ")[0] for message in caplog.messages] == [
        "the reading of a.py",
        "the embedding of chunks",
        "the embedding of chunks is over",
        "the reading of a.py is over",
    ]

"""How long somebody is waited for, although our own process may be stopped meanwhile."""

import os
import time

import anyio
import pytest

from vector_index_mcp.processes import stopping

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.75])  # in the first look, and in the last one
async def test_what_has_come_while_we_were_stopped_is_in_time(share, monkeypatch):
    monkeypatch.setattr(stopping, "_LOOK_SECONDS", 0.2)
    patience, has_come = 0.4, anyio.Event()
    there, here = os.pipe()

    async def notice():
        await anyio.wait_readable(there)
        has_come.set()

    async def be_stopped():
        await anyio.sleep(share * patience)
        os.write(here, b"x")
        time.sleep(1.5 * patience)  # noqa: ASYNC251 - this process does not run meanwhile

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(notice)
        tasks.start_soon(be_stopped)
        assert await stopping.is_set_within(has_come, patience)
    os.close(there)
    os.close(here)


async def test_what_does_not_come_is_not_waited_for():
    assert not await stopping.is_set_within(anyio.Event(), 0.01)

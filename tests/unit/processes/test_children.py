import sys

import anyio
import anyio.lowlevel
import pytest

from vector_index_mcp.processes import children

pytestmark = [pytest.mark.anyio, pytest.mark.own_children]


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancelled_start_leaves_no_process_to_nobody(turns):
    processes = []

    async def start():
        processes.append(await children.started([sys.executable, "-c", "input()"]))

    async with anyio.create_task_group() as group:
        group.start_soon(start)
        for _ in range(turns):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    [process] = processes
    async with process:
        process.kill()

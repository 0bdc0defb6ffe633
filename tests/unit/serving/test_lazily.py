"""Loading is imports, which are not searched for garbage; everything after is."""

import gc
from contextlib import asynccontextmanager

import anyio
import pytest

from vector_index_mcp.serving.lazily import Lazily, Retrying

pytestmark = pytest.mark.anyio


class Service:
    @asynccontextmanager
    async def running(self):
        yield


@pytest.mark.parametrize("fails", [False, True])
async def test_garbage_is_looked_for_again_after_loading(fails):
    seen = []

    async def load():
        seen.append(gc.isenabled())
        if fails:
            raise OSError
        return Service()

    service = Lazily(load)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(service.run)
            await service.get()
            tasks.cancel_scope.cancel()
    except* OSError:
        assert fails
    assert (seen, gc.isenabled()) == ([False], True)


async def test_errors_of_what_is_retried_go_to_those_who_need_it():
    loads = []

    async def load():
        loads.append(None)
        if len(loads) == 1:
            raise OSError("it cannot be loaded")
        return Service()

    service = Retrying(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        with pytest.raises(OSError, match="cannot be loaded"):
            await service.get()
        assert service.loaded is None
        assert await service.get() is await service.get()
        tasks.cancel_scope.cancel()
    assert len(loads) == 2

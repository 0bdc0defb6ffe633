"""Operations run one after another in the order they were asked for, and all are seen."""

import anyio
import pytest

from vector_index_mcp.documents.operations import Operation, Operations

pytestmark = pytest.mark.anyio


def names(operations):
    return [operation.name for operation in operations.listed]


class Doing:
    """Operations that go on until they are told to end."""

    def __init__(self):
        self.operations = Operations()
        self.ends = {}
        self.log = []

    async def do(self, name, *, scope=None, fails=False):
        self.ends[name] = anyio.Event()
        with scope or anyio.CancelScope():
            try:
                async with self.operations.doing(name):
                    self.log.append(f"begin {name}")
                    await self.ends[name].wait()
                    self.log.append(f"end {name}")
                    if fails:
                        raise ValueError(name)
            except ValueError:
                self.log.append(f"failed {name}")

    async def settle(self):
        for _ in range(10):
            await anyio.lowlevel.checkpoint()


async def test_they_run_in_order_and_are_listed_until_they_end():
    doing = Doing()
    async with anyio.create_task_group() as tasks:
        for name in ("one", "two", "three"):
            tasks.start_soon(doing.do, name)
            await doing.settle()
        assert names(doing.operations) == ["one", "two", "three"]
        for name, left in (("one", ["two", "three"]), ("two", ["three"]), ("three", [])):
            assert doing.log[-1] == f"begin {name}"
            doing.ends[name].set()
            await doing.settle()
            assert names(doing.operations) == left
    assert doing.log == [
        f"{what} {n}" for n in ("one", "two", "three") for what in ("begin", "end")
    ]


async def test_one_that_fails_says_so_and_lets_the_next_one_begin():
    doing = Doing()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: doing.do("one", fails=True))
        tasks.start_soon(doing.do, "two")
        await doing.settle()
        doing.ends["one"].set()
        await doing.settle()
        assert doing.log == ["begin one", "end one", "failed one", "begin two"]
        assert names(doing.operations) == ["two"]
        doing.ends["two"].set()


@pytest.mark.parametrize("cancelled", ["one", "two"])
async def test_one_that_is_cancelled_working_or_waiting_is_gone(cancelled):
    doing, scope = Doing(), anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        for name in ("one", "two", "three"):
            own = scope if name == cancelled else None
            tasks.start_soon(lambda name=name, own=own: doing.do(name, scope=own))
            await doing.settle()
        scope.cancel()
        await doing.settle()
        left = [name for name in ("one", "two", "three") if name != cancelled]
        assert names(doing.operations) == left
        for name in left:
            doing.ends[name].set()
            await doing.settle()
    assert [entry for entry in doing.log if entry.startswith("end")] == [f"end {n}" for n in left]
    assert doing.operations.listed == []


async def test_of_two_with_one_name_each_is_listed():
    operations = Operations()
    async with anyio.create_task_group() as tasks, operations.doing("same"):

        async def second():
            async with operations.doing("same"):
                pass

        tasks.start_soon(second)
        await anyio.lowlevel.checkpoint()
        assert names(operations) == ["same", "same"]
    assert operations.listed == []


async def test_it_says_how_long_it_has_taken():
    assert Operation("one").seconds >= 0
    assert Operation("one", began=Operation("two").began - 5).seconds >= 5

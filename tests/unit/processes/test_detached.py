"""A call that hangs holds a thread, and nobody waits for it for long."""

import math
import threading
from functools import partial

import anyio
import anyio.lowlevel
import pytest
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.processes.detached import AbandonedError, Detached, NoThreadError

pytestmark = pytest.mark.anyio


async def test_work_that_nobody_waits_for_stops_at_its_next_step():
    begun, stopped = threading.Event(), threading.Event()

    def endless(work):
        try:
            while True:
                work.step()
                begun.set()
        except AbandonedError:
            stopped.set()
            raise

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Detached(1, "test", ending_seconds=PATIENCE_SECONDS).run, endless, 60.0)
        await eventually(begun.is_set)
        tasks.cancel_scope.cancel()
    assert stopped.is_set()


@pytest.mark.slow
async def test_work_that_gets_on_may_take_as_long_as_it_likes():
    gate = threading.Semaphore(0)

    def slow(work):
        for _ in range(6):
            assert gate.acquire(timeout=PATIENCE_SECONDS)
            work.step()
        return "done"

    async def let_it():
        for _ in range(6):
            await anyio.sleep(0.1)
            gate.release()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_it)
        assert await Detached(1, "test").run(slow, 0.3) == "done"


@pytest.mark.slow
async def test_no_more_threads_hang_than_may():
    gate, threads, begun = threading.Event(), Detached(2, "test"), []

    def hang(work):
        begun.append(work)
        gate.wait()

    for _ in range(5):
        with pytest.raises(TimeoutError):
            await threads.run(hang, 0.1)
    assert len(begun) == 2
    gate.set()
    await eventually(lambda: not threads.is_busy)
    assert await threads.run(lambda work: "goes on", 0.1) == "goes on"


async def test_what_takes_long_goes_on_as_long_as_it_may():
    gate, answers = threading.Event(), [True, True, False]

    def hang(work):
        gate.wait()
        return "too late"

    async def may_go_on():
        return answers.pop(0)

    with pytest.raises(TimeoutError):
        await Detached(1, "test").run(hang, 0.01, may_go_on)
    gate.set()
    assert answers == []


async def test_what_was_given_up_in_the_middle_need_not_hang():
    gate, threads, answers = threading.Event(), Detached(1, "test"), []

    async def ask():
        answers.append(await threads.run(lambda work: "there", PATIENCE_SECONDS))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(threads.run, lambda work: gate.wait(), PATIENCE_SECONDS)
        await eventually(lambda: threads.is_busy)
        tasks.cancel_scope.cancel()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.lowlevel.checkpoint()
        gate.set()
    assert answers == ["there"]


@pytest.mark.parametrize("first_to_end", [0, 1])
async def test_whichever_call_ends_makes_room(first_to_end):
    gates, threads, begun = [threading.Event(), threading.Event()], Detached(2, "test"), []

    def hang(gate, work):
        begun.append(work)
        gate.wait(PATIENCE_SECONDS)

    async with anyio.create_task_group() as tasks:
        for gate in gates:
            tasks.start_soon(threads.run, partial(hang, gate), math.inf)
        await eventually(lambda: len(begun) == 2)
        tasks.cancel_scope.cancel()
    gates[first_to_end].set()
    with anyio.fail_after(PATIENCE_SECONDS / 2):
        assert await threads.run(lambda _: "done", math.inf) == "done"
    gates[1 - first_to_end].set()


async def test_if_the_system_starts_no_thread_that_is_said_and_the_next_call_is_begun(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    threads = Detached(1, "test")
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(NoThreadError, match="ulimit -u"):
            await threads.run(lambda work: "there", 0.1)
    assert await threads.run(lambda work: "there", PATIENCE_SECONDS) == "there"

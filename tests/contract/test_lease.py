"""One machine at a time holds the lease of a store, however the others are stopped."""

import json
from contextlib import contextmanager

import anyio
import pytest

from vector_index_mcp.errors import Problem, StorageError
from vector_index_mcp.objects.lease import HOLD_SECONDS, NAME, PATIENCE_SECONDS, Lease, now
from vector_index_mcp.objects.opening import opened

pytestmark = pytest.mark.anyio


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.seconds = 0.0
        self.under_way = 0
        """Requests; no time passes until they are answered."""
        self._passed = anyio.Event()
        self._answered = anyio.Event()

    def __call__(self):
        return self.seconds

    async def sleep(self, seconds):
        until = self.seconds + seconds
        while self.seconds < until:
            await self._passed.wait()

    async def pass_by(self, seconds):
        for _ in range(int(seconds)):
            self.seconds += 1
            self._passed.set()
            self._passed = anyio.Event()
            await anyio.wait_all_tasks_blocked()
            while self.under_way:
                await self._answered.wait()
                await anyio.wait_all_tasks_blocked()

    @contextmanager
    def asking(self):
        self.under_way += 1
        try:
            yield
        finally:
            self.under_way -= 1
            self._answered.set()
            self._answered = anyio.Event()


class Cut:
    """A store whose answers are lost, and then its requests."""

    def __init__(self, objects, clock):
        self._objects, self._clock = objects, clock
        self.loses = set()

    @property
    def uri(self):
        return self._objects.uri

    def __getattr__(self, name):
        async def ask(*arguments):
            if "requests" in self.loses:
                raise StorageError("cut", Problem.STORE_SILENT)
            with self._clock.asking():
                answer = await getattr(self._objects, name)(*arguments)
            if "answers" in self.loses and name in {"put_new", "replace"}:
                return None  # as where the library has asked a second time
            return answer

        return ask


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def machines(objects, clock):
    store = Cut(objects, clock)
    return [Lease(store, n, n, clock=clock, sleep=clock.sleep) for n in ("one", "two", "three")]


@pytest.mark.slow
async def test_one_machine_takes_it_and_the_next_one_once_it_is_let_go(machines):
    one, two, _ = machines
    assert await one.take()
    assert (one.is_held, one.number) == (True, 1)
    assert not await two.take()
    assert (two.said.host, two.is_held) == ("one", False)
    await one.release()
    assert not one.is_held
    assert await two.take()
    assert two.number == 2


@pytest.mark.slow
async def test_of_many_that_want_it_one_gets_it(machines):
    taken = []

    async def want(lease):
        if await lease.take():
            taken.append(lease)

    async with anyio.create_task_group() as tasks:
        for lease in machines:
            tasks.start_soon(want, lease)
    assert [lease.is_held for lease in machines].count(True) == len(taken) == 1


@pytest.mark.slow
async def test_who_lives_keeps_it_and_who_was_stopped_loses_it_before_another_takes_it(
    machines, clock
):
    one, two, _ = machines
    assert await one.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(one.renew_forever)
        for _ in range(10):
            await clock.pass_by(PATIENCE_SECONDS - 1)
            assert not await two.take()
        assert one.is_held
        tasks.cancel_scope.cancel()
    await clock.pass_by(HOLD_SECONDS)
    assert not one.is_held
    await two.look()  # perhaps at a renewal that it has not seen yet
    await clock.pass_by(PATIENCE_SECONDS - HOLD_SECONDS - 1)
    assert not await two.take()
    await clock.pass_by(HOLD_SECONDS + 1)
    assert await two.take()
    assert two.number == 2
    await one.release()  # of a lease that is another machine's now
    assert not await one.take()


@pytest.mark.slow
async def test_who_cannot_renew_it_stops_in_time_and_does_not_come_back_by_itself(objects, clock):
    cut = Cut(objects, clock)
    lease = Lease(cut, "one", "one", clock=clock, sleep=clock.sleep)
    assert await lease.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lease.renew_forever)
        await clock.pass_by(15)
        assert lease.is_held
        cut.loses = {"requests"}
        await clock.pass_by(HOLD_SECONDS + 10)
        assert not lease.is_held
        cut.loses = set()
        await clock.pass_by(60)
        assert not lease.is_held
        tasks.cancel_scope.cancel()
    assert await lease.take()  # its own place: nobody else can have written meanwhile
    assert lease.number == 2


@pytest.mark.slow
async def test_an_answer_that_was_lost_is_asked_for_again(objects, clock):
    cut = Cut(objects, clock)
    lease = Lease(cut, "one", "one", clock=clock, sleep=clock.sleep)
    cut.loses = {"answers"}
    assert await lease.take()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lease.renew_forever)
        await clock.pass_by(100)
        assert lease.is_held
        tasks.cancel_scope.cancel()


@pytest.mark.slow
async def test_what_a_killed_process_of_the_same_place_left_is_taken_over_at_once(objects):
    killed, next_one = (Lease(objects, "host", "here") for _ in range(2))
    assert await killed.take()
    assert await next_one.take()
    assert next_one.number == 2


class Careless:
    """A store that ignores what it is told to keep."""

    uri = "s3://careless"

    def __init__(self, ignores):
        self._ignores = ignores
        self._data = {}

    async def get(self, name, most_bytes):
        return None

    async def put_new(self, name, data):
        is_new = name not in self._data or "If-None-Match" in self._ignores
        self._data[name] = data
        return "1" if is_new else None

    async def replace(self, name, data, tag):
        is_it = tag == "1" or "If-Match" in self._ignores
        self._data[name] = data
        return "2" if is_it and (tag == "1" or self._ignores) else None

    async def delete(self, names):
        for name in names:
            self._data.pop(name)


@pytest.mark.parametrize("ignored", ["If-None-Match", "If-Match"])
async def test_a_store_that_overwrites_what_it_is_told_to_keep_is_not_written(ignored):
    with pytest.raises(StorageError) as raised:
        await Lease(Careless({ignored}), "one", "one").take()
    assert raised.value.problem is Problem.STORE_UNCONDITIONAL


class Refusing:
    """A store that replaces nothing, as one that does not recognise its own tags."""

    def __init__(self, objects):
        self._objects = objects

    def __getattr__(self, name):
        return getattr(self._objects, name)

    async def replace(self, name, data, tag):
        return None


async def test_a_store_that_refuses_what_it_should_replace_is_not_written(objects):
    with pytest.raises(StorageError) as raised:
        await Lease(Refusing(objects), "one", "one").take()
    assert raised.value.problem is Problem.STORE_UNCONDITIONAL
    assert await objects.entries() == []


async def test_who_is_refused_a_renewal_holds_the_lease_no_longer(machines, monkeypatch):
    one = machines[0]
    assert await one.take()
    monkeypatch.setattr(one, "_objects", Refusing(one._objects))
    await one._is_renewed()
    assert not one.is_held


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[" * 5_000,
        json.dumps({"number": -1, "holder": "", "host": "", "since": "", "beat": 0}),
        json.dumps({"number": "1", "holder": "", "host": "", "since": "", "beat": 0}),
        json.dumps({"number": 1, "holder": None, "host": "", "since": "", "beat": 0}),
        json.dumps({"number": 1, "holder": "", "host": "", "since": "", "beat": 0, "more": 1}),
    ],
)
async def test_an_object_that_is_no_lease_is_not_overwritten(tmp_path, text):
    objects = opened(str(tmp_path))
    await objects.put(NAME, text.encode())
    with pytest.raises(StorageError, match=r"writer\.json"):
        await Lease(objects, "one", "one").take()
    assert (await objects.get(NAME, 10_000)).data == text.encode()


async def test_a_probe_leaves_nothing_behind(objects, machines):
    assert await machines[0].take()
    assert [entry.name for entry in await objects.entries()] == [NAME]


def test_the_clock_goes_on():
    assert now() <= now()

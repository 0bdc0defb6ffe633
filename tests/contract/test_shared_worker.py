"""What services promise each other who share one embedding worker: real processes and sockets."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.to_thread
import numpy as np
import psutil
import pytest
from processes import command_of, is_gone, needs_model, processes_below, reaped, workers_among
from waiting import eventually

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import FOLDER_VARIABLE
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.errors import BackgroundError, EmbeddingError, ModelNotFoundError
from vector_index_mcp.processes import children
from vector_index_mcp.sharing import frames, host, joining, place, workers
from vector_index_mcp.sharing.joining import STARTS_HOST, Joining

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX signals and pipes"),
]

MODEL = "all-MiniLM-L6-v2"
# Stands in for the embedding worker: notes the first text of each request, once it arrives and once
# its turn comes, and stops at one that names a pipe until somebody opens that.
FAKE = """
import sys
if "vector_index_mcp.engine.models.worker" in sys.orig_argv:
    import itertools, json, os, queue, threading
    def send(header, payload=b""):
        sys.stdout.buffer.write(json.dumps(header).encode() + bytes([10]) + payload)
        sys.stdout.buffer.flush()
    def note(where, request):
        with open(where, "a") as journal:
            journal.write(os.path.basename(request["texts"][0]) + chr(10))
    requests, arrivals = queue.PriorityQueue(), itertools.count()
    def read():
        for line in sys.stdin.buffer:
            request = json.loads(line)
            note(ARRIVALS, request)
            requests.put((not request["urgent"], next(arrivals), request))
        os._exit(0)
    threading.Thread(target=read, daemon=True).start()
    send({"event": "model", "name": "fake", "digest": "fa", "dimension": 4})
    send({"event": "ready", "precision": "float32"})
    while True:
        request = requests.get()[2]
        first = request["texts"][0]
        note(JOURNAL, request)
        if first.startswith("/"):
            open(first).read()
        rows = len(request["texts"])
        send({"id": request["id"], "rows": rows, "dimension": 4}, bytes(16 * rows))
"""
# A service in a process of its own: embeds each of its arguments, then says so.
SERVICE = """
import json, sys
import anyio
from vector_index_mcp.engine.models.embed import WorkerEmbedder
from vector_index_mcp.processes import children
from vector_index_mcp.sharing.joining import STARTS_HOST, Joining

async def main():
    STARTS_HOST.set(True)
    start = Joining(60.0, otherwise=children.start).start
    worker = WorkerEmbedder("all-MiniLM-L6-v2", start_worker=start, remedy_of=str)
    async with worker.running() as embedder, anyio.create_task_group() as tasks:
        await embedder.identity()
        for text in sys.argv[1:]:
            tasks.start_soon(embedder.embed, [text])
            await anyio.wait_all_tasks_blocked()
        sys.stdout.write(f"{embedder.pid}\\n")
        sys.stdout.flush()
        await anyio.to_thread.run_sync(sys.stdin.read)

anyio.run(main)
"""


class Folder:
    """Where the processes of a test meet, and what the stand-in has noted there."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder).resolve()
        self.runtime = self.folder / "run"
        self.journal = self.folder / "journal"
        self.arrivals = self.folder / "arrivals"

    def gate(self) -> Path:
        """A pipe at which the stand-in stops."""
        path = self.folder / "gate"
        os.mkfifo(path)
        return path

    def asked(self) -> list[str]:
        """The texts that the stand-in has come to."""
        return self.journal.read_text("utf-8").split() if self.journal.exists() else []

    def arrived(self) -> list[str]:
        """The texts that have arrived at the stand-in."""
        return self.arrivals.read_text("utf-8").split() if self.arrivals.exists() else []

    def processes(self) -> list[psutil.Process]:
        return processes_below(self.runtime)

    def hosts(self) -> list[psutil.Process]:
        return [each for each in self.processes() if place.TOOL_SET in command_of(each)]

    def workers(self) -> list[psutil.Process]:
        return workers_among(self.processes())

    async def report(self) -> dict:
        ask = partial(contact.ask, place.endpoint(), greeting.REPORT)
        return await anyio.to_thread.run_sync(ask) or {}

    async def holds(self, at_work: int, waiting: int) -> None:
        """Wait until the worker has so many requests, and so many wait for their turn."""

        async def does() -> bool:
            told = await self.report()
            return (told.get("at_work"), told.get("waiting")) == (at_work, waiting)

        await eventually(does)


def embedder(
    model=MODEL, *, idle=600.0, starts_host=True, otherwise=None, patience=100.0, **options
) -> WorkerEmbedder:
    """The embedder of a service, or of a command."""

    async def never(*_, **__):
        raise AssertionError("it started a worker of its own")

    token = STARTS_HOST.set(starts_host)
    start = Joining(idle, otherwise=otherwise or never).start
    STARTS_HOST.reset(token)
    return WorkerEmbedder(
        model,
        idle_seconds=idle,
        patience_seconds=patience,
        start_worker=start,
        remedy_of=lambda problem: f"remedy of {problem}",
        **options,
    )


def service(*texts: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", SERVICE, *texts], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


@pytest.fixture
async def real(monkeypatch):
    """A folder in which no process is left."""
    with TemporaryDirectory(prefix="vi") as name:
        folder = Folder(name)
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder.runtime))
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        yield folder
        monkeypatch.setenv(FOLDER_VARIABLE, str(folder.runtime))
        await anyio.to_thread.run_sync(contact.stop, place.endpoint())
        with suppress(TimeoutError):
            await eventually(lambda: not folder.processes())
        left = [command_of(process) for process in folder.processes()]
        reaped(folder.processes())
        assert left == []


@pytest.fixture
def fake(real, monkeypatch):
    """The same with a worker that stands in."""
    hook = real.folder / "hook"
    hook.mkdir()
    code = FAKE.replace("JOURNAL", repr(str(real.journal)))
    code = code.replace("ARRIVALS", repr(str(real.arrivals)))
    (hook / "sitecustomize.py").write_text(code, "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(hook), prepend=os.pathsep)
    return real


# -- one for all -----------------------------------------------------------------------------------


@needs_model
async def test_two_services_share_a_worker_and_know_it(real):
    async with embedder().running() as one:
        own = await one.embed(["a cat"])
        assert one.sharers == 1
        async with embedder().running() as other:
            assert await other.identity() == await one.identity()
            np.testing.assert_allclose(await other.embed(["a cat"]), own, atol=1e-6)
            assert (other.pid, other.precision) == (one.pid, one.precision)
            assert other.sharers == 2
            await eventually(lambda: one.sharers == 2)
        await eventually(lambda: one.sharers == 1)
        assert "torch" not in {Path(m.path).name for m in real.hosts()[0].memory_maps()}
        assert [worker.pid for worker in real.workers()] == [one.pid]


async def test_five_services_at_once_start_one_host_and_one_worker(fake):
    services = [service(f"text {number}") for number in range(5)]
    try:
        pids = {int(each.stdout.readline()) for each in services}
        assert pids == {worker.pid for worker in fake.workers()}
        await eventually(lambda: len(fake.hosts()) == len(pids) == 1)  # the others end at once
    finally:
        for each in services:
            with each:
                each.kill()


async def test_services_of_another_environment_or_version_do_not_meet(fake, monkeypatch):
    async with embedder().running() as one:
        await one.embed(["text"])
        first = place.endpoint()
        with monkeypatch.context() as patch:
            patch.setenv("HF_HOME", str(fake.folder))
            async with embedder().running() as other:
                await other.embed(["text"])
                assert other.pid != one.pid
                assert (one.sharers, other.sharers) == (1, 1)
            await anyio.to_thread.run_sync(contact.stop, place.endpoint())
        with monkeypatch.context() as patch:
            patch.setenv("HF_HUB_OFFLINE", "0")
            assert place.endpoint().name != first.name
        with monkeypatch.context() as patch:
            patch.setattr(place, "__version__", "0.0.1")
            assert place.endpoint().name != first.name
        with monkeypatch.context() as patch:
            patch.setattr(sys, "prefix", "/elsewhere")
            assert place.endpoint().name != first.name
        monkeypatch.setenv("UNRELATED", "1")
        assert place.endpoint() == first


async def test_a_models_folder_that_has_changed_is_another_model(fake, tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 4}', "utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"one")
    async with embedder(str(tmp_path)).running() as one, embedder(str(tmp_path)).running() as same:
        await one.embed(["text"])
        await same.embed(["text"])
        assert one.pid == same.pid
        (tmp_path / "model.safetensors").write_bytes(b"another")
        async with embedder(str(tmp_path)).running() as other:
            await other.embed(["text"])
            assert other.pid != one.pid


async def test_a_command_joins_a_host_that_runs_and_starts_none(fake):
    async with embedder(starts_host=False, otherwise=children.start).running() as command:
        await command.embed(["text"])
        assert psutil.Process(command.pid).ppid() == os.getpid()
        assert (fake.hosts(), command.sharers) == ([], 0)
    async with embedder().running() as one, embedder(starts_host=False).running() as command:
        await one.embed(["text"])
        await command.embed(["text"])
        assert command.pid == one.pid


@pytest.mark.parametrize("kind", ["open to others", "a file"])
async def test_without_a_folder_to_meet_in_a_service_has_a_worker_of_its_own(
    fake, monkeypatch, caplog, kind
):
    unusable = fake.folder / "unusable"
    if kind == "a file":
        unusable.touch()
    else:
        unusable.mkdir()
        unusable.chmod(0o777)
    with monkeypatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(unusable))
        async with embedder(otherwise=children.start).running() as alone:
            assert (await alone.embed(["text"])).shape == (1, 4)
            assert psutil.Process(alone.pid).ppid() == os.getpid()
    assert "not shared with other services" in caplog.text
    assert str(unusable) in caplog.text


# -- turns -----------------------------------------------------------------------------------------


@asynccontextmanager
async def stopped(fake, embedder):
    """Has the worker stop at a request of `embedder`; it goes on, and is done, at the end."""
    gate = fake.gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(embedder.embed, [str(gate)])
        await eventually(lambda: gate.name in fake.asked())
        yield tasks
        await anyio.to_thread.run_sync(gate.write_text, "")


async def ask(tasks, embedder, *texts, are_queries=False):
    """Have `embedder` asked for one text after another."""
    for text in texts:
        tasks.start_soon(partial(embedder.embed, [text], are_queries=are_queries))
        await anyio.wait_all_tasks_blocked()


async def test_a_query_overtakes_the_batches_of_others(fake):
    async with embedder().running() as one, embedder().running() as other:
        await other.embed(["hello"])
        async with stopped(fake, one) as tasks:
            await ask(tasks, one, "batch1", "batch2", "batch3")
            await fake.holds(2, 2)
            await ask(tasks, other, "query", are_queries=True)
            await eventually(lambda: "query" in fake.arrived())  # and not only on its way
            await fake.holds(3, 2)
    assert fake.asked() == ["hello", "gate", "query", "batch1", "batch2", "batch3"]


async def test_batches_of_two_services_alternate(fake):
    async with embedder().running() as one, embedder().running() as other:
        await other.embed(["hello"])
        async with stopped(fake, one) as tasks:
            await ask(tasks, one, *(f"one{number}" for number in range(4)))
            await fake.holds(2, 3)
            await ask(tasks, other, *(f"other{number}" for number in range(4)))
            await fake.holds(2, 7)
    # What the worker had when the other one came is of the first.
    begun = ["hello", "gate", "one0"]
    later = ["one1", "other0", "one2", "other1", "one3", "other2", "other3"]
    assert fake.asked() == begun + later


async def test_a_killed_service_leaves_no_work(fake):
    async with embedder().running() as one:
        async with stopped(fake, one):
            with service(*(f"batch{number}" for number in range(10))) as killed:
                await fake.holds(2, 9)
                killed.kill()
            await fake.holds(2, 0)
        await one.embed(["done"])
    assert fake.asked() == ["gate", "batch0", "done"]


# -- ends ------------------------------------------------------------------------------------------


async def test_who_rests_only_leaves_and_the_others_go_on(fake):
    async with embedder(idle=0.1).running() as one, embedder().running() as other:
        await one.embed(["text"])
        await other.embed(["text"])
        pid = other.pid
        await eventually(lambda: one.state == "off")
        await eventually(lambda: other.sharers == 1)
        assert (await other.embed(["text"])).shape == (1, 4)
        assert (await one.embed(["text"])).shape == (1, 4)
        assert one.pid == other.pid == pid


async def test_a_worker_that_nobody_uses_ends_and_so_does_the_host(fake):
    async with embedder().running() as stays:
        await stays.embed(["text"])
        async with embedder("another-model", idle=0.5).running() as leaves:
            await leaves.embed(["text"])
            gone = psutil.Process(leaves.pid)
            assert leaves.pid != stays.pid
        await eventually(lambda: is_gone(gone))
        assert [worker.pid for worker in fake.workers()] == [stays.pid]
    await eventually(lambda: not fake.processes())


async def test_a_killed_worker_is_an_error_for_all_who_wait_and_then_replaced(fake):
    async with embedder().running() as one, embedder().running() as other:
        await other.embed(["hello"])
        pid, [before] = other.pid, fake.hosts()
        errors = []

        async def fail(embedder):
            with pytest.raises(EmbeddingError, match=r"died \(status -15\)") as raised:
                await embedder.embed(["text"])
            errors.append(raised.value)

        os.kill(pid, signal.SIGSTOP)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, one)
            tasks.start_soon(fail, other)
            await fake.holds(2, 0)
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        assert len(errors) == 2
        assert (await one.embed(["text"])).shape == (1, 4)
        assert (await other.embed(["text"])).shape == (1, 4)
        assert one.pid == other.pid != pid
        assert fake.hosts() == [before]


async def test_a_killed_host_is_an_error_for_all_who_wait_and_then_replaced(fake):
    async with embedder().running() as one, embedder().running() as other:
        await other.embed(["hello"])
        worker, [before] = psutil.Process(other.pid), fake.hosts()

        async def fail(embedder):
            with pytest.raises(EmbeddingError, match="died"):
                await embedder.embed(["text"])

        async with anyio.create_task_group() as tasks:
            await one.embed(["hello"])
            before.suspend()
            tasks.start_soon(fail, one)
            tasks.start_soon(fail, other)
            await anyio.wait_all_tasks_blocked()
            before.kill()
        await eventually(lambda: is_gone(worker))
        assert (await one.embed(["text"])).shape == (1, 4)
        assert (await other.embed(["text"])).shape == (1, 4)
        assert one.pid == other.pid != worker.pid
        assert len(fake.hosts()) == 1


async def test_a_worker_that_hangs_is_ended_for_all_by_who_has_lost_patience(fake):
    async with embedder(patience=0.3).running() as one, embedder().running() as other:
        await one.embed(["hello"])
        await other.embed(["hello"])
        hanging = psutil.Process(one.pid)
        hanging.suspend()

        async def fail(embedder):
            with pytest.raises(EmbeddingError, match="died"):
                await embedder.embed(["text"])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail, one)
            tasks.start_soon(fail, other)
        await eventually(lambda: is_gone(hanging))
        assert (await other.embed(["text"])).shape == (1, 4)
        assert (await one.embed(["text"])).shape == (1, 4)
        assert one.pid == other.pid != hanging.pid


async def test_a_model_that_is_missing_is_looked_for_again_by_a_worker_of_now(real, tmp_path):
    folder = str(tmp_path / "model")
    async with embedder(folder).running() as one, embedder(folder).running() as other:
        for each in (one, other):
            with pytest.raises(ModelNotFoundError, match=r"not exist; remedy of model_fold"):
                await each.identity()
        (tmp_path / "model").mkdir()
        for each in (one, other):
            each.retry()
            with pytest.raises(ModelNotFoundError, match=r"no model.safetensors"):
                await each.identity()


# -- a host in this process, whose limits can be changed -------------------------------------------


@asynccontextmanager
async def hosting(monkeypatch):
    monkeypatch.chdir(Path.cwd())  # it goes elsewhere
    ready = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run, place.endpoint(), lambda _: ready.set())
        await ready.wait()
        yield
        tasks.cancel_scope.cancel()


async def test_where_there_is_no_room_the_one_that_rested_longest_goes(fake, monkeypatch):
    monkeypatch.setattr(workers, "_PAUSE_SECONDS", 0.0)
    async with hosting(monkeypatch), embedder("a").running() as a, embedder("b").running() as b:
        await a.embed(["text"])
        await b.embed(["text"])
        kept = b.pid
        async with embedder("c").running() as c:
            await c.embed(["text"])
            await eventually(lambda: a.state == "off")
            assert (b.pid, len(fake.workers())) == (kept, 2)
            assert (await a.embed(["text"])).shape == (1, 4)  # and another one has gone


async def test_a_worker_that_cannot_be_started_is_told(fake, monkeypatch):
    async def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(host.children, "start", refuse)
    async with hosting(monkeypatch), embedder().running() as one:
        with pytest.raises(ModelNotFoundError, match=r"started \(No space.*remedy of worker_not_s"):
            await one.embed(["text"])


# -- strangers -------------------------------------------------------------------------------------


def connected() -> socket.socket:
    connection = contact.joined(place.endpoint(), greeting.WORK)
    assert connection is not None
    connection.settimeout(60)
    return connection


WANTED = {
    "arguments": [MODEL, "cpu", "", "0"],
    "offline": False,
    "idle_seconds": 1.0,
    "stamp": joining.stamp_of(()),
}
REQUEST = {"id": 1, "urgent": False, "texts": ["text"]}


def line(values) -> bytes:
    return json.dumps(values).encode() + b"\n"


def answer_to(*lines: bytes) -> list[bytes]:
    """What the host says to a stranger until it ends the connection, after each line first."""
    with connected() as connection, connection.makefile("rb") as answers:
        answered = []
        with suppress(ConnectionError):
            for said in lines:
                connection.sendall(said)
                answered.append(answers.readline())
            answered += answers.readlines()
        return [answer for answer in answered if answer]


@pytest.mark.parametrize(
    "said",
    [
        b"garbage\n",
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        line([]),
        line(WANTED | {"arguments": "rm"}),
        line(WANTED | {"arguments": ["x"] * 9}),
        line(WANTED | {"arguments": ["a\0b"]}),
        line(WANTED | {"idle_seconds": "long"}),
        line(WANTED | {"idle_seconds": -1.0}),
        b"x" * (frames.LONGEST_LINE_BYTES + 100_000),
    ],
    ids=lambda said: repr(said[:20]),
)
async def test_who_does_not_say_what_it_wants_is_sent_away(fake, said):
    async with embedder().running() as one:
        await one.embed(["text"])
        assert await anyio.to_thread.run_sync(answer_to, said) == []
        pid = one.pid
        assert (await one.embed(["text"])).shape == (1, 4)
        assert [worker.pid for worker in fake.workers()] == [pid]


@pytest.mark.parametrize(
    ("said", "at_work"),
    [
        (b"garbage\n", 1),
        (line({}), 1),
        (line(REQUEST | {"texts": "one"}), 1),
        (line(REQUEST | {"texts": [1]}), 1),
        (line(REQUEST | {"id": "one"}), 1),
        (line(REQUEST | {"urgent": 1}), 1),
        (line(REQUEST | {"query": 1}), 1),
        (b'{"id": ' + b"9" * 5_000 + b"}\n", 1),
        (b"x" * (frames.LONGEST_LINE_BYTES + 100_000), 1),
        (line(REQUEST) * 2_000, 2),  # of so many, one has begun
    ],
    ids=lambda value: repr(value)[:30],
)
async def test_who_says_what_makes_no_sense_is_sent_away_and_harms_nobody(fake, said, at_work):
    async with embedder().running() as one:
        async with stopped(fake, one):
            first, *_ = await anyio.to_thread.run_sync(answer_to, line(WANTED), said)
            assert json.loads(first) == {"pid": one.pid}
            await eventually(lambda: one.sharers == 1)
            await fake.holds(at_work, 0)
        assert (await one.embed(["text"])).shape == (1, 4)


async def test_half_a_frame_is_none(fake):
    async with embedder().running() as one:
        await one.embed(["text"])

        def leave() -> None:
            with connected() as connection:
                connection.sendall(line(WANTED) + line(REQUEST)[:-9])
                connection.recv(100)

        await anyio.to_thread.run_sync(leave)
        await eventually(lambda: one.sharers == 1)
        assert (await one.embed(["text"])).shape == (1, 4)
        assert len(fake.asked()) == 2


async def test_who_takes_no_answers_is_sent_away(fake, monkeypatch):
    def flood() -> None:
        with connected() as connection, suppress(ConnectionError):
            connection.sendall(line(WANTED))
            while True:
                connection.sendall(line(REQUEST | {"texts": ["text"] * 1_000}))

    async with embedder().running() as one:
        await one.embed(["text"])
        await anyio.to_thread.run_sync(flood)
        assert (await one.embed(["text"])).shape == (1, 4)


async def test_who_does_not_know_the_secret_or_is_another_user_is_refused(fake):
    async with embedder().running() as one:
        await one.embed(["text"])
        endpoint = place.endpoint()

        def ask_with(secret: str) -> None:
            with endpoint.connect() as connection:
                greeting.greet(connection, greeting.WORK, secret)

        for secret in ("", "wrong"):
            with pytest.raises(ConnectionAbortedError, match="not the background service"):
                await anyio.to_thread.run_sync(ask_with, secret)
        with (
            pytest.raises(BackgroundError, match="know this wish"),
            endpoint.connect() as connection,
        ):
            secret = endpoint.read_record()["secret"]
            await anyio.to_thread.run_sync(greeting.greet, connection, greeting.MCP, secret)
        for path in (endpoint.socket_path, endpoint.record, endpoint.lock):
            assert path.stat().st_mode & 0o777 == 0o600
        assert endpoint.folder.stat().st_mode & 0o777 == 0o700

"""The service's process, with sessions that misbehave."""

import re
import shlex
import shutil
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from fakes import FakeEmbedder
from serving import codebase_of
from waiting import PATIENCE_SECONDS, eventually
from writing import write

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background import host as host_module
from vector_index_mcp.background.endpoint import FOLDER_VARIABLE, Endpoint, endpoint_of
from vector_index_mcp.background.host import Host
from vector_index_mcp.engine.store import pinned
from vector_index_mcp.errors import (
    BackgroundError,
    NoServiceError,
    QueryError,
    ServiceEndedError,
    SettingsError,
)
from vector_index_mcp.serving import server
from vector_index_mcp.serving.sets import named
from vector_index_mcp.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.fixture
def endpoint(tmp_path, monkeypatch) -> Endpoint:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "runtime"))
    return endpoint_of("codebase", tmp_path)


def ask(endpoint: Endpoint, wants: str) -> tuple[dict, bytes]:
    """The answer to a greeting, and what follows it until the service ends the connection."""
    secret = endpoint.read_record()["secret"]
    with endpoint.connect() as connection:
        answer = greeting.greet(connection, wants, secret)
        rest = b"" if wants == greeting.REPORT else connection.recv(100)
        return answer, rest


async def no_page(in_a_file: bool) -> dict[str, Any]:
    raise BackgroundError("no port can be listened on")


async def no_call(request: dict[str, Any], tell: Any) -> dict[str, Any]:
    return {"error": "nothing is answered here", "status": 1}


def host_of(endpoint: Endpoint, project: Path, **parts) -> Host:
    """A host in which everything that `parts` do not name is as little as possible."""
    little = {
        "idle_seconds": 60.0,
        "serve_session": lambda stream: stream.aclose(),
        "serve_call": no_call,
        "open_page": no_page,
        "viewers": lambda: 0,
        "is_busy": lambda: False,
        "report": lambda: {"state": "WATCHING"},
    }
    return Host(endpoint=endpoint, **little | parts)


async def test_an_error_in_one_session_ends_that_session_only(endpoint, tmp_path, caplog):
    sessions = 0

    async def serve_session(stream):
        nonlocal sessions
        sessions += 1
        if sessions == 1:
            raise ExceptionGroup("of a task group", [RuntimeError("unforeseen")])
        await stream.send(b"served")

    ready = anyio.Event()
    host = host_of(endpoint, tmp_path, serve_session=serve_session)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run, anyio.sleep_forever, lambda _: ready.set())
        await ready.wait()
        with anyio.fail_after(PATIENCE_SECONDS):
            assert (await anyio.to_thread.run_sync(ask, endpoint, greeting.MCP))[1] == b""
            assert "unforeseen" in caplog.text
            assert (await anyio.to_thread.run_sync(ask, endpoint, greeting.MCP))[1] == b"served"
            report, _ = await anyio.to_thread.run_sync(ask, endpoint, greeting.REPORT)
        assert (report["state"], report["clients"]) == ("WATCHING", 0)
        tasks.cancel_scope.cancel()


async def test_a_page_that_cannot_be_opened_is_told(endpoint, tmp_path):
    ready = anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            host_of(endpoint, tmp_path).run, anyio.sleep_forever, lambda _: ready.set()
        )
        await ready.wait()
        with pytest.raises(BackgroundError, match="refuses: no port can be listened on"):
            await anyio.to_thread.run_sync(ask, endpoint, greeting.PAGE)
        tasks.cancel_scope.cancel()


# -- calls -----------------------------------------------------------------------------------------


@asynccontextmanager
async def calling(endpoint: Endpoint, tmp_path: Path, **parts: Any) -> AsyncIterator[Host]:
    """A host that answers calls, for as long as this lasts."""
    ready = anyio.Event()
    host = host_of(endpoint, tmp_path, **parts)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run, anyio.sleep_forever, lambda _: ready.set())
        await ready.wait()
        with anyio.fail_after(PATIENCE_SECONDS):
            yield host
        tasks.cancel_scope.cancel()


def called(endpoint: Endpoint, name: str, told: list[dict[str, Any]], **given: Any) -> Any:
    return contact.call(endpoint, name, given, told.append)


async def test_a_call_is_answered_and_tells_how_far_it_is(endpoint, tmp_path):
    async def serve_call(request, tell):
        await tell({"done": 1})
        await tell({"done": 2})
        return {"result": [request["call"], request["arguments"], host.clients]}

    told: list[dict[str, Any]] = []
    async with calling(endpoint, tmp_path, serve_call=serve_call) as host:
        call = partial(called, endpoint, "search", told, query="x" * 500_000)
        answer = await anyio.to_thread.run_sync(call)
        # Whoever calls counts as a client meanwhile: the service must not end.
        assert answer == ["search", {"query": "x" * 500_000}, 1]
    assert told == [{"done": 1}, {"done": 2}]


@pytest.mark.parametrize("wants", [greeting.CALL, "something new"])
async def test_who_is_to_end_a_service_of_another_version_is_told_which_one(
    endpoint, tmp_path, monkeypatch, wants
):
    async with calling(endpoint, tmp_path):
        if wants == greeting.CALL:
            monkeypatch.setattr(contact, "__version__", "0.0.1")
            ask_it = partial(called, endpoint, "search", [])
        else:
            ask_it = partial(ask, endpoint, wants)
        with pytest.raises(BackgroundError, match=re.escape(f"`{endpoint.stop_command}`")):
            await anyio.to_thread.run_sync(ask_it)
    assert endpoint.stop_command.endswith(f" {shlex.quote(str(tmp_path))}")


@pytest.mark.parametrize(("status", "error"), [(1, BackgroundError), (2, SettingsError)])
async def test_an_error_in_a_call_is_told_in_its_words(endpoint, tmp_path, status, error):
    async def serve_call(request, tell):
        return {"error": "no such thing; name another", "status": status}

    async with calling(endpoint, tmp_path, serve_call=serve_call):
        with pytest.raises(error, match="no such thing; name another"):
            await anyio.to_thread.run_sync(called, endpoint, "get", [])


async def test_what_a_call_began_is_done_though_the_caller_has_left(endpoint, tmp_path):
    begun, done = anyio.Event(), anyio.Event()
    may_go_on = anyio.Event()

    async def serve_call(request, tell):
        begun.set()
        await may_go_on.wait()
        await tell({"done": 1})
        await tell({"done": 2})
        done.set()
        return {"result": None}

    async with calling(endpoint, tmp_path, serve_call=serve_call):
        secret = endpoint.read_record()["secret"]
        with endpoint.connect() as connection:
            await anyio.to_thread.run_sync(greeting.greet, connection, greeting.CALL, secret)
            connection.sendall(greeting.line({"call": "update", "arguments": {}}))
            await begun.wait()
        may_go_on.set()
        await done.wait()


async def test_a_call_that_breaks_the_service_is_an_error_for_the_caller_alone(endpoint, tmp_path):
    async def serve_call(request, tell):
        if request["call"] == "break":
            raise AssertionError("unforeseen")
        return {"result": "answered"}

    async with calling(endpoint, tmp_path, serve_call=serve_call):
        with pytest.raises(ServiceEndedError, match="may already have been made"):
            await anyio.to_thread.run_sync(called, endpoint, "break", [])
        assert await anyio.to_thread.run_sync(called, endpoint, "else", []) == "answered"


@pytest.mark.parametrize("breaks", [1, 2])
async def test_what_only_reads_is_asked_once_more(endpoint, tmp_path, breaks):
    asked = []

    async def serve_call(request, tell):
        asked.append(request["call"])
        if len(asked) <= breaks:
            raise AssertionError("unforeseen")
        return {"result": "answered"}

    call = partial(contact.call, endpoint, "search", {}, lambda _: None, may_repeat=True)
    async with calling(endpoint, tmp_path, serve_call=serve_call):
        if breaks == 1:
            assert await anyio.to_thread.run_sync(call) == "answered"
        else:
            with pytest.raises(ServiceEndedError, match="ended twice before it answered"):
                await anyio.to_thread.run_sync(call)
    assert asked == ["search"] * 2


async def test_a_call_that_takes_long_is_waited_for(endpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(contact, "SILENT_SECONDS", 0.01)
    looks = []
    hangs = contact.hangs
    monkeypatch.setattr(contact, "hangs", lambda *given: looks.append(hangs(*given)))

    async def serve_call(request, tell):
        await eventually(lambda: len(looks) >= 3)
        return {"result": "x" * 500_000}

    async with calling(endpoint, tmp_path, serve_call=serve_call):
        answer = await anyio.to_thread.run_sync(called, endpoint, "index", [])
    assert answer == "x" * 500_000
    assert not any(looks)


async def test_a_service_that_hangs_in_a_call_is_not_waited_for(endpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(contact, "SILENT_SECONDS", 0.05)
    monkeypatch.setattr(contact, "PATIENCE_SECONDS", 0.2)
    is_given_up = threading.Event()

    def call():
        try:
            called(endpoint, "search", [])
        finally:
            is_given_up.set()

    async def serve_call(request, tell):
        is_given_up.wait(PATIENCE_SECONDS)  # and the whole service with it
        return {"result": "late"}

    async with calling(endpoint, tmp_path, serve_call=serve_call):
        with pytest.raises(NoServiceError, match=r"does not answer.*may already have been made"):
            await anyio.to_thread.run_sync(call)


@pytest.mark.parametrize("line", [b"nonsense\n", b"[]\n", b"x" * (greeting.LONGEST_CALL_BYTES + 1)])
async def test_a_call_that_is_none_ends_its_connection(endpoint, tmp_path, line):
    def send() -> bytes:
        with endpoint.connect() as connection:
            greeting.greet(connection, greeting.CALL, endpoint.read_record()["secret"])
            with suppress(OSError):  # it need not read all of it
                connection.sendall(line)
                return connection.recv(100)
        return b""

    async with calling(endpoint, tmp_path):
        assert await anyio.to_thread.run_sync(send) == b""


def test_without_a_service_a_call_has_no_answer(endpoint):
    assert called(endpoint, "search", []) is None


def test_a_call_that_is_too_long_is_not_made(endpoint):
    with pytest.raises(QueryError, match="is too long"):
        called(endpoint, "search", [], query="x" * greeting.LONGEST_CALL_BYTES)


# -- the end ---------------------------------------------------------------------------------------


@pytest.fixture
def endless(monkeypatch):
    """A process that goes on when its service has ended."""
    monkeypatch.setattr(host_module, "_end_at_the_latest_in", lambda *_: None)


@pytest.mark.usefixtures("endless")
async def test_work_puts_the_end_off_but_does_not_count_as_use(endpoint, tmp_path):
    """A file that changes all the time would keep the process alive for ever."""
    questions: list[float] = []

    def is_busy() -> bool:
        questions.append(anyio.current_time())
        return len(questions) <= 4

    host = host_of(endpoint, tmp_path, idle_seconds=0.1, is_busy=is_busy)
    with anyio.fail_after(PATIENCE_SECONDS):
        await host.run(anyio.sleep_forever, lambda _: None)
    assert len(questions) == 5


@pytest.mark.usefixtures("endless")
async def test_a_service_that_can_do_nothing_ends_soon_but_not_while_a_client_is_there(
    endpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(host_module, "_FAILING_SECONDS", 0.01)
    monkeypatch.setattr(host_module, "_IDLE_CHECK_SECONDS", 0.01)
    always = {"is_failing": lambda: True, "is_busy": lambda: True}
    host = host_of(endpoint, tmp_path, idle_seconds=3_600.0, clients=1, **always)
    async with anyio.create_task_group() as tasks:
        ready, ended = anyio.Event(), anyio.Event()

        async def run() -> None:
            await host.run(anyio.sleep_forever, lambda _: ready.set())
            ended.set()

        tasks.start_soon(run)
        await ready.wait()
        for _ in range(3):
            seen = host._last_seen
            await eventually(lambda seen=seen: host._last_seen > seen)
        assert not ended.is_set()
        host.clients = 0
        with anyio.fail_after(PATIENCE_SECONDS):
            await ended.wait()


@pytest.mark.usefixtures("endless")
async def test_a_service_has_some_time_to_recover_however_long_nobody_has_used_it(
    endpoint, tmp_path, monkeypatch
):
    monkeypatch.setattr(host_module, "_FAILING_SECONDS", 3_600.0)
    monkeypatch.setattr(host_module, "_IDLE_CHECK_SECONDS", 0.01)
    looks = 0

    def is_failing() -> bool:
        nonlocal looks
        looks += 1
        return looks > 3

    host = host_of(endpoint, tmp_path, idle_seconds=1e12, is_failing=is_failing)
    host._last_seen = -1e9
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.run, anyio.sleep_forever, lambda _: None)
        await eventually(lambda: looks > 10)
        assert not host._stopping.is_set()
        tasks.cancel_scope.cancel()


@pytest.mark.usefixtures("endless")
async def test_the_service_of_a_deleted_project_ends(endpoint, tmp_path, monkeypatch):
    monkeypatch.setattr(host_module, "_FAILING_SECONDS", 0.01)
    monkeypatch.setattr(pinned, "_MOST_PINNED", 1_000)  # other tests have used up their number
    project = write(tmp_path / "worktree", {"one.py": "apple\n"})
    codebase = codebase_of(project, FakeEmbedder())

    async def load(*_: Any) -> Any:
        return codebase

    tool_set = replace(named("codebase"), load=load)
    place = endpoint_of("codebase", project)
    async with anyio.create_task_group() as tasks:
        ready = anyio.Event()

        async def run() -> None:
            await server.host(tool_set, place, Settings(), lambda _: ready.set(), None)
            tasks.cancel_scope.cancel()

        tasks.start_soon(run)
        await ready.wait()
        with anyio.fail_after(PATIENCE_SECONDS):
            search = partial(called, place, "search", [], query="apple")
            await anyio.to_thread.run_sync(search)
            while project.exists():  # a commit may have made a file between two steps
                shutil.rmtree(project, ignore_errors=True)
            await anyio.sleep_forever()
    assert not place.socket_path.exists()

"""The service's process, with sessions that misbehave."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from vector_index_mcp.background import greeting
from vector_index_mcp.background.endpoint import FOLDER_VARIABLE, Endpoint, endpoint_of
from vector_index_mcp.background.host import Host
from vector_index_mcp.errors import BackgroundError

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
        with anyio.fail_after(30):
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

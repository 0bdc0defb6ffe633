"""`documents server` as a process, with a real HTTP client and the official MCP client."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import httpx
import pytest
from greeting import CLIENT
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from over_http import client_at, detail, post, read
from processes import ANSWER_SECONDS, NO_MODEL, environment, posix_only
from qmd import written
from waiting import PATIENCE_SECONDS

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import all_endpoints

pytestmark = [pytest.mark.long, pytest.mark.anyio, posix_only]

# As the command line calls it.
_CODE = """
import os, sys
from pathlib import Path
from vector_index_mcp.console.documents import server
from vector_index_mcp.documents.home import home_of
from vector_index_mcp.errors import VectorIndexError
try:
    sys.exit(server.run(sys.argv[1:], home_of("index", os.environ, Path.cwd()), []))
except VectorIndexError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
TOKEN = "a-token"


def port_in(line):
    """The port that the command says it listens on."""
    return int(line.split(" (")[0].rpartition(":")[2])


class Server:
    """The command, for one home of documents."""

    def __init__(self, folder):
        home = written(folder)
        self.variables = environment(folder, **NO_MODEL) | {
            "QMD_CONFIG_DIR": str(home.configuration.parent),
            "INDEX_PATH": home.index,
        }

    def command(self, *arguments):
        return [sys.executable, "-c", _CODE, *arguments]

    @contextmanager
    def started(self, *arguments, **variables):
        """The process, and the port that it says it listens on."""
        process = subprocess.Popen(
            self.command("--port", "0", *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self.variables | variables,
        )
        try:
            line = process.stderr.readline().decode()
            assert line.startswith("listening on http://"), line + process.stderr.read().decode()
            yield process, port_in(line)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()

    def stop(self, monkeypatch):
        """End its service, and wait until it has ended."""
        folder = self.variables["VECTOR_INDEX_RUNTIME_DIR"]
        monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", folder)
        for endpoint in all_endpoints():
            contact.stop(endpoint)

    def refused(self, *arguments, **variables):
        """What is said by a server that does not start."""
        done = subprocess.run(
            self.command(*arguments),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            env=self.variables | variables,
            check=False,
        )
        assert done.returncode != 0
        assert done.stdout == b""
        return done.stderr.decode()


@pytest.fixture
def server(tmp_path, monkeypatch):
    server = Server(tmp_path)
    yield server
    server.stop(monkeypatch)


@asynccontextmanager
async def mcp_at(port, token=""):
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


async def is_closed(port):
    """Whether nobody listens any more."""
    try:
        async with client_at(port) as client:
            await client.get("/health")
    except httpx.TransportError:
        return True
    return False


async def test_a_script_uses_it_over_http(server, tmp_path):
    with server.started("--transport", "http") as (process, port):
        async with client_at(port) as client:
            assert (await read(client, "/status"))["total_documents"] == 7
            [plan] = (await post(client, "/search", query="plan", collection="notes"))["results"]
            assert plan["file"] == "notes/plan.md"
            await post(client, "/collections/add", name="more", path=f"{tmp_path}/docs/meetings")
            assert len((await read(client, "/collections"))["collections"]) == 3
            detail(await client.get("/status", headers={"host": "evil.example"}), 403)
            assert (await read(client, "/openapi.json"))["info"]["title"] == "qmd"
        async with mcp_at(port) as mcp:
            result = await mcp.call_tool("status", {})
            assert result.structured_content["totalDocuments"] == 9
        process.send_signal(signal.SIGTERM)
        assert process.wait(ANSWER_SECONDS) == 0
        assert await is_closed(port)
        assert process.stdout.read() == b""


async def test_both_share_one_index_and_end_with_their_client(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command, *arguments = server.command("--port", str(port))
    parameters = StdioServerParameters(command=command, args=arguments, env=server.variables)
    with (tmp_path / "errors").open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as mcp:
            status = (await mcp.call_tool("status", {})).structured_content
            assert status["totalDocuments"] == 7
            async with client_at(port) as client:
                found = await post(client, "/search", query="budget")
            result = await mcp.call_tool("search", {"query": "budget"})
            assert result.structured_content == {"results": found["results"]}
    assert await is_closed(port)


async def test_who_starts_it_without_a_client_is_told_how_to_keep_it(server):
    with server.started() as (process, port):
        process.stdin.close()
        said = process.stderr.read().decode()
        assert process.wait(ANSWER_SECONDS) == 0
        assert said.endswith("ends the server; `--transport http` listens without a client\n")
        assert await is_closed(port)


async def test_after_a_stop_the_next_call_opens_the_same_port_again(server, tmp_path, monkeypatch):
    command, *arguments = server.command("--port", "0")
    parameters = StdioServerParameters(command=command, args=arguments, env=server.variables)
    said = tmp_path / "errors"
    with said.open("w", encoding="utf-8") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as mcp:
            await mcp.call_tool("status", {})
            port = port_in(said.read_text("utf-8"))
            server.stop(monkeypatch)
            assert await is_closed(port)
            assert (await mcp.call_tool("status", {})).structured_content["totalDocuments"] == 7
            async with client_at(port) as client:
                await read(client, "/health")
    assert await is_closed(port)


async def test_after_a_stop_calls_are_answered_though_nobody_reads_errors(server, monkeypatch):
    with server.started("--port", "0") as (process, port):
        process.stderr.close()
        for number in (1, 2):
            if number == 2:
                server.stop(monkeypatch)
            asked = {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": CLIENT}
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == number
        process.stdin.close()
        assert await anyio.to_thread.run_sync(process.wait, 60) == 0
    assert await is_closed(port)


async def test_a_port_closes_however_its_front_end_ends(server):
    with server.started("--transport", "http") as (first, port):
        first.send_signal(signal.SIGINT)
        assert first.wait(ANSWER_SECONDS) == 0
        assert await is_closed(port)
    with server.started() as (process, port):
        async with client_at(port) as client:
            await read(client, "/health")
        process.kill()
        process.wait()
        with anyio.fail_after(PATIENCE_SECONDS):
            while not await is_closed(port):
                pass
    with server.started() as (process, port):
        process.stdin.close()
        assert process.wait(ANSWER_SECONDS) == 0
        assert await is_closed(port)


async def test_two_front_ends_share_a_port(server):
    alone = ("--transport", "http")
    with (
        server.started(*alone) as (first, port),
        server.started(*alone, "--port", str(port)) as (_, other),
    ):
        assert other == port
        first.terminate()
        assert first.wait(ANSWER_SECONDS) == 0
        async with client_at(port) as client:
            await read(client, "/health")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = server.refused("--port", str(port))
        assert f"port {port} of 127.0.0.1 is taken by another program" in words


async def test_others_are_let_in_with_the_token_only(server):
    assert "set VECTOR_INDEX_HTTP_TOKEN" in server.refused("--host", "0.0.0.0")
    assert not _has_started(server)
    arguments = ("--transport", "http", "--host", "0.0.0.0")
    with server.started(*arguments, VECTOR_INDEX_HTTP_TOKEN=TOKEN) as (_, port):
        async with client_at(port) as client:
            detail(await client.get("/health"), 401)
        async with client_at(port, {"authorization": f"Bearer {TOKEN}"}) as client:
            await read(client, "/health")
        async with mcp_at(port, TOKEN) as mcp:
            assert (await mcp.call_tool("search", {"query": "budget"})).structured_content
        assert TOKEN not in _arguments_of_all()


def _has_started(server):
    return any(Path(server.variables["VECTOR_INDEX_RUNTIME_DIR"]).glob("*.sock"))


def _arguments_of_all():
    return subprocess.run(
        ["ps", "axww", "-o", "args"], capture_output=True, check=False
    ).stdout.decode()


async def test_a_service_that_ends_ends_its_front_ends(server, monkeypatch):
    with server.started("--transport", "http") as (process, port):
        async with client_at(port) as client:
            await read(client, "/status")
        folder = server.variables["VECTOR_INDEX_RUNTIME_DIR"]
        monkeypatch.setenv("VECTOR_INDEX_RUNTIME_DIR", folder)
        [endpoint] = all_endpoints()
        assert contact.stop(endpoint)
        assert process.wait(ANSWER_SECONDS) == 0
        assert await is_closed(port)


def test_a_front_end_imports_next_to_nothing():
    code = "import sys; from vector_index_mcp.console.documents import server; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    heavy = {"pydantic", "mcp", "anyio", "fastapi", "starlette", "uvicorn", "lancedb", "yaml"}
    assert not heavy & set(done.stdout.decode().split())


@pytest.mark.parametrize(
    "arguments", [["--port", "70000"], ["--port", "x"], ["--transport", "tcp"], ["more"]]
)
async def test_wrong_arguments_are_refused(server, arguments):
    assert "usage:" in server.refused(*arguments)
    assert not _has_started(server)

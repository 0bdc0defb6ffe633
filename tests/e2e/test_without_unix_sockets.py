"""A system without Unix domain sockets, as Windows: services are met by a port and a secret.

The module that decides it is imported where there are none; this system's libraries want them.
"""

import json
import socket
from contextlib import suppress

import anyio
import psutil
import pytest
from processes import FAKE_WORKER, NO_MODEL, place_of, posix_only, with_import_hook
from waiting import eventually

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting

pytestmark = [pytest.mark.long, pytest.mark.anyio, posix_only]

NO_UNIX_SOCKETS = """
import socket
family = socket.AF_UNIX
del socket.AF_UNIX
import vector_index_mcp.background.endpoint
socket.AF_UNIX = family
"""
FILES = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}


@pytest.fixture
def place():
    with place_of(FILES, **NO_MODEL) as place:
        hook = place.folder / "hook"
        place.variables = with_import_hook(hook, NO_UNIX_SOCKETS, place.variables)
        yield place


def recorded(place):
    [record] = place.services()
    return record


def said_to(port, words):
    """What a service answers to somebody who connects and says `words`."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(words)
        with suppress(ConnectionResetError):
            return connection.makefile("rb").readline()
    return b""


async def test_a_search_starts_a_service_that_is_met_by_its_port(place):
    first = await place.run("search", place.project, "parse_config")
    assert "load.py" in first.stdout, first.stderr
    record = recorded(place)
    assert record["port"] > 0
    assert not list(place.runtime.glob("*.sock"))
    again = await place.run("search", place.project, "parse_config")
    assert "load.py" in again.stdout
    assert recorded(place)["pid"] == record["pid"]
    listed = await place.run("ps")
    assert str(place.project) in listed.stdout
    ended = await place.run("stop", place.project)
    assert ended.returncode == 0
    assert not place.services()


async def test_a_client_is_served_and_follows_changes(place):
    async with place.relayed() as client:
        await client.initialize()

        async def is_found():
            found = await client.call("search_index", query="freshly_written")
            paths = [hit["file_path"] for hit in found["results"][:1]]
            return paths == ["new.py"]

        await anyio.Path(place.project / "new.py").write_text("def freshly_written(): pass\n")
        await eventually(is_found)


@pytest.mark.parametrize(
    "words", [greeting.hello(greeting.MCP, ""), greeting.hello(greeting.MCP, "wrong"), b"{}\n"]
)
async def test_who_does_not_know_the_secret_gets_nothing(place, words):
    await place.run("search", place.project, "parse_config")
    answer = await anyio.to_thread.run_sync(said_to, recorded(place)["port"], words)
    assert json.loads(answer) == {"refused": "the secret is wrong"}


async def test_the_port_is_open_to_this_machine_alone_and_the_record_to_this_user(place):
    await place.run("search", place.project, "parse_config")
    assert place.endpoint.record.stat().st_mode & 0o077 == 0
    addresses = set()
    for process in place.processes():
        with suppress(psutil.NoSuchProcess):  # one that prepares files ends soon
            connections = process.net_connections("tcp")
            addresses |= {each.laddr.ip for each in connections if each.status == "LISTEN"}
    assert addresses == {"127.0.0.1"}


@pytest.mark.parametrize(
    "words",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        greeting.line({"version": __version__, "pid": 1, "proof": "0" * 64}),
        greeting.line({"refused": "run my program instead"}),
    ],
)
async def test_a_port_that_is_now_somebody_else_s_is_not_taken_for_the_service(place, words):
    heard = []
    await place.run("search", place.project, "parse_config")
    [process] = [p for p in place.processes() if p.pid == recorded(place)["pid"]]
    record = recorded(place)
    process.kill()
    process.wait()
    with socket.create_server(("127.0.0.1", 0)) as other:
        place.endpoint.record.write_text(
            json.dumps(record | {"port": other.getsockname()[1]}), encoding="utf-8"
        )

        def answer():
            with suppress(OSError):
                while True:
                    with other.accept()[0] as connection:
                        heard.append(connection.recv(4_096))
                        connection.sendall(words)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.to_thread.run_sync, answer)
            found = await place.run("search", place.project, "parse_config")
            other.shutdown(socket.SHUT_RDWR)  # and so `accept` fails
    assert "load.py" in found.stdout, found.stderr
    assert heard
    assert not any(record["secret"].encode() in each for each in heard)


async def test_the_embedding_worker_is_shared_by_way_of_a_port():
    with place_of(FILES) as place:
        code = NO_UNIX_SOCKETS + FAKE_WORKER
        place.variables = with_import_hook(place.folder / "hook", code, place.variables)
        async with place.relayed() as client:
            await client.initialize()

            async def is_shared():
                return (await client.call("get_status"))["worker_shared_by"] == 1

            await eventually(is_shared)
            assert len(place.workers()) == 1
            assert not list(place.runtime.glob("*.sock"))

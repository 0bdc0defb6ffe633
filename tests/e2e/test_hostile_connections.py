"""Connections to the real service that say nothing, nonsense or too much, or that are too many."""

import json
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack

import anyio.to_thread
import pytest
from processes import ANSWER_SECONDS, Place, with_import_hook
from waiting import eventually

from vector_index_mcp.background import greeting
from vector_index_mcp.errors import BackgroundError

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX sockets"),
]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}


def connections(place: Place, number: int, says: bytes = b"") -> Iterator[socket.socket]:
    for _ in range(number):
        connection = place.endpoint.connect()
        connection.sendall(says)
        yield connection


def client_of(place: Place) -> socket.socket:
    """A connection that is a client's."""
    secret = place.endpoint.read_record()["secret"]
    connection = place.endpoint.connect()
    try:
        greeting.greet(connection, greeting.MCP, secret)
    except (OSError, BackgroundError):
        connection.close()
        raise
    return connection


@pytest.mark.parametrize("says", [b"", b'{"version": "0'])
async def test_who_connects_and_says_nothing_is_not_in_the_way(served, says):
    with ExitStack() as stack:
        silent = [stack.enter_context(c) for c in connections(served, 600, says)]
        assert served.report()["clients"] >= 1
        for oldest in silent[:300]:
            oldest.settimeout(ANSWER_SECONDS)
            assert oldest.recv(1) == b""  # given up in favour of younger ones


async def test_there_may_be_so_many_clients(served):
    with ExitStack() as stack:
        with pytest.raises(BackgroundError, match="has 128 clients"):
            for _ in range(129):
                stack.enter_context(client_of(served))
        assert served.report()["clients"] == 128
    await eventually(lambda: served.report()["clients"] < 128)
    with client_of(served):
        pass


FEW_DESCRIPTORS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
"""


async def test_a_service_without_descriptors_serves_again_when_there_are_some(place):
    place.variables = with_import_hook(place.folder / "hook", FEW_DESCRIPTORS, place.variables)
    async with place.relayed() as client:
        await client.initialize()
        await client.call("trigger_index")
        with ExitStack() as stack:
            hello = greeting.hello(greeting.MCP, place.endpoint.read_record()["secret"])
            for connection in connections(place, 128, hello):
                stack.enter_context(connection)
            log = place.endpoint.log
            await eventually(lambda: "no connection can be accepted" in log.read_text("utf-8"))
        assert "result" in await client.ask("ping")
        await eventually(lambda: place.report().get("clients") == 1)


HELLOS = {
    "no JSON": b"GET / HTTP/1.1\r\n",
    "NULs": b"\0\0\0\n",
    "too deep": b"[" * 60_000 + b"\n",
    "too long": b"x" * 70_000,
    "an array": b"[]\n",
    "a nonce that is a number": b'{"nonce": 5, "proof": "00", "wants": "mcp"}\n',
    "a proof that is an object": b'{"nonce": "x", "proof": {}, "wants": "stop"}\n',
    "a proof of odd characters": b'{"nonce": "x", "proof": "\\ud800\xc3\xa4", "wants": "stop"}\n',
    "a nonce of odd characters": b'{"nonce": "\\ud800", "proof": "00", "wants": "stop"}\n',
    "no proof": b'{"wants": "stop"}\n',
    "a null": b"null\n",
}


@pytest.mark.parametrize("name", HELLOS)
async def test_a_bad_greeting_ends_its_connection_only(served, name):
    with served.endpoint.connect() as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.sendall(HELLOS[name])
        answer = b""
        while data := await anyio.to_thread.run_sync(receive, connection):
            answer += data
    assert answer == b"" or "secret" in json.loads(answer)["refused"]
    assert served.report()["clients"] >= 1


@pytest.mark.parametrize("wish", ["", "x" * 60_000, "\ud800", 5, None, {}, ["mcp"]])
async def test_an_unknown_wish_ends_its_connection_only(served, wish):
    secret = served.endpoint.read_record()["secret"]
    with served.endpoint.connect() as connection:
        connection.settimeout(ANSWER_SECONDS)
        connection.sendall(greeting.hello(wish, secret))
        answer = json.loads(await anyio.to_thread.run_sync(receive, connection))
    assert "refused" in answer
    assert served.report()["clients"] >= 1


def receive(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100_000)
    except ConnectionResetError:
        return b""

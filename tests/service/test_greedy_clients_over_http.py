"""Clients over HTTP that listen, take no answers or send too much keep nobody else out."""

import json
import socket
from contextlib import AsyncExitStack, suppress

import anyio
import httpx
import psutil
import pytest
from fakes import FakeEmbedder
from greeting import INITIALIZE
from over_http import client_of, detail, read, request, trickled
from qmd import documents_of, written
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.serving import guard, guest, ports

pytestmark = pytest.mark.anyio

ACCEPT = {"Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
VERSION = "2026-07-28"
LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {
        "notifications": {"toolsListChanged": True},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}
LISTENING = {"mcp-protocol-version": VERSION, "mcp-method": LISTEN["method"]}
MORE_THAN_ANY_BUFFER_HOLDS = 300


@pytest.fixture
async def client(tmp_path):
    async with client_of(documents_of(written(tmp_path), FakeEmbedder()), ACCEPT) as client:
        yield client


async def begun(client):
    """The header that names a new session."""
    answer = await client.post("/mcp", json=INITIALIZE)
    assert answer.status_code == 200, answer.text
    return {"mcp-session-id": answer.headers["mcp-session-id"]}


def streamed(client, session):
    return client.stream("GET", "/mcp", headers=session)


async def test_silent_connections_keep_nobody_out(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "_MOST_CONNECTIONS", 4)
    async with (
        client_of(documents_of(written(tmp_path), FakeEmbedder()), ACCEPT) as client,
        AsyncExitStack() as stack,
    ):
        await read(client, "/health")
        silent = []
        for said in (b"", b"P", b"POST /mcp HTTP/1.1\r\nHost: ") * 3:
            stream = await anyio.connect_tcp("127.0.0.1", client.base_url.port)
            silent.append(await stack.enter_async_context(stream))
            if said:
                await stream.send(said)
        session = await begun(client)
        async with streamed(client, session) as listening:
            assert listening.status_code == 200
            for _ in range(8):  # none of them costs who listens anything
                stream = await anyio.connect_tcp("127.0.0.1", client.base_url.port)
                await stack.enter_async_context(stream)
            assert (await read(client, "/health"))["status"]
            assert (await client.get("/mcp", headers=session)).status_code == 409  # it listens
            with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(anyio.EndOfStream):
                await silent[0].receive()


async def test_a_client_gives_up_an_idle_connection_before_the_server_does(client, monkeypatch):
    """Else a request may be on its way while its connection is closed, and has no answer."""
    idle, complete = [], guest._InTime.on_response_complete

    def completed(connection):
        complete(connection)
        closing = connection.timeout_keep_alive_task
        idle.append(closing.when() - connection.loop.time())

    monkeypatch.setattr(guest._InTime, "on_response_complete", completed)
    await read(client, "/health")
    assert 2 * httpx.Limits().keepalive_expiry < idle[0] < guest._HEADER_SECONDS


@pytest.mark.parametrize(("of", "most"), [(guard, "_MOST_UNDER_WAY"), (ports, "_MOST_CONNECTIONS")])
async def test_bodies_that_never_arrive_keep_nobody_out(tmp_path, monkeypatch, of, most):
    monkeypatch.setattr(of, most, 4)
    async with (
        client_of(documents_of(written(tmp_path), FakeEmbedder()), ACCEPT) as client,
        AsyncExitStack() as stack,
    ):
        port = client.base_url.port
        body = {"content_type": "application/json", "content_length": "100"}
        unfinished = []
        for _ in range(12):
            stream = await anyio.connect_tcp("127.0.0.1", port)
            unfinished.append(await stack.enter_async_context(stream))
            await stream.send(request("POST", "/search", port, connection="keep-alive", **body))
            await stream.send(b'{"query":')
            # They come one after the other, and a whole request finds its way each time.
            assert (await client.post("/search", json={"query": "budget"})).status_code == 200
        with anyio.fail_after(PATIENCE_SECONDS):
            said = b""
            with suppress(anyio.EndOfStream):
                while True:
                    said += await unfinished[0].receive()
        assert b"had not arrived yet" in said or of is ports


async def test_clients_that_listen_keep_nobody_from_asking(client, monkeypatch):
    monkeypatch.setattr(guard, "_MOST_UNDER_WAY", 1)
    monkeypatch.setattr(guard, "_MOST_LISTENING", 3)
    async with (
        streamed(client, await begun(client)) as first,
        streamed(client, await begun(client)) as second,
        client.stream("POST", "/mcp", json=LISTEN, headers=LISTENING) as third,
    ):
        assert {each.status_code for each in (first, second, third)} == {200}
        await read(client, "/status")
        session = await begun(client)
        refused = await client.get("/mcp", headers=session)
        assert "ask without listening" in detail(refused, 503)
        refused = await client.post("/mcp", json=LISTEN, headers=LISTENING)
        assert "ask without listening" in detail(refused, 503)
        assert (await client.post("/mcp", json=PING, headers=session)).status_code == 200
    async with streamed(client, session) as later:
        assert later.status_code == 200


@pytest.mark.parametrize("event", ["0", "9" * 400, "x/../y"])
async def test_a_stream_cannot_be_resumed_but_goes_on(client, event):
    headers = await begun(client) | {"last-event-id": event}
    async with streamed(client, headers) as stream:
        assert stream.status_code == 200
        assert stream.headers["content-type"] == "text/event-stream"


async def test_a_client_that_takes_no_answers_is_given_up(client, monkeypatch):
    monkeypatch.setattr(guest, "_PATIENCE_SECONDS", 1.0)
    port = client.base_url.port
    await read(client, "/openapi.json")
    with socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        deaf.connect(("127.0.0.1", port))
        one = request("GET", "/openapi.json", port, connection="keep-alive")
        deaf.sendall(one * MORE_THAN_ANY_BUFFER_HOLDS)
        sent_from = deaf.getsockname()
        await eventually(lambda: sent_from in peers_of_this_process())
        await eventually(lambda: sent_from not in peers_of_this_process())
    assert (await client.get("/health")).status_code == 200


def peers_of_this_process():
    """The other ends of our connections."""
    return {tuple(each.raddr) for each in psutil.Process().net_connections() if each.raddr}


@pytest.mark.parametrize("value", ["[]", '"xy"'])
@pytest.mark.parametrize("path", ["/search", "/mcp", "/none"])
async def test_values_that_take_much_memory_are_refused(client, path, value):
    many = "[" + ",".join([value] * 100_000) + "]"
    body = json.dumps(PING | {"query": "budget"})[:-1] + f', "x": {many}}}'
    assert len(body) < guard.LONGEST_BODY_BYTES
    headers = {"content-type": "application/json"}
    refused = await client.post(path, content=body.encode(), headers=headers)
    assert "besides strings" in detail(refused, 413)


async def test_a_long_text_is_no_such_value(client):
    body = {"query": "budget " + 'x\\"' * 100_000}
    refused = await client.post("/search", json=body)
    assert "besides strings" not in detail(refused, 400)


async def test_a_body_that_nobody_needs_must_arrive_in_time(client, monkeypatch):
    monkeypatch.setattr(guest, "_HEADER_SECONDS", 0.1)
    monkeypatch.setattr(guest, "_BODY_SECONDS", 0.1)
    port = client.base_url.port
    length = {"content_type": "application/json", "content_length": "999999"}
    head = request("GET", "/health", port, connection="keep-alive", **length)
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(head)
        await trickled(stream)

"""The port of the documents: who may ask there and how much, and how it is opened and shared."""

import socket

import anyio
import httpx
import pytest
from fakes import FakeEmbedder
from greeting import INITIALIZE
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from over_http import (
    as_json,
    client_at,
    client_of,
    detail,
    ports_of,
    post,
    read,
    request,
    spoken,
    wish,
)
from qmd import documents_of, settled, written
from waiting import PATIENCE_SECONDS, eventually

from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.serving import guard, guest

pytestmark = pytest.mark.anyio

TOKEN = "a-token"
CHANGES = as_json({"path": "/", "text": "changed"})
PAGES = [
    {"origin": "http://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "http://localhost:{port}.evil.example"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
]
HOSTS = [
    {"host": "evil.example"},
    {"host": "evil.example:{port}"},
    {"host": "127.0.0.1"},
    {"host": "127.0.0.1:1"},
    {"host": "127.0.0.1.evil.example:{port}"},
    {"host": "127.0.0.1:{port}@evil.example"},
    {"host": ""},
]
HELLO = as_json(INITIALIZE)


@pytest.fixture(scope="module")
async def client(tmp_path_factory):
    """A client of documents whose contexts no test of this module changes."""
    documents = documents_of(written(tmp_path_factory.mktemp("port")), FakeEmbedder())
    async with client_of(documents) as client:
        await read(client, "/status")
        await settled(documents)
        yield client


@pytest.fixture
async def documents(tmp_path):
    return documents_of(written(tmp_path), FakeEmbedder())


# -- pages and hosts -------------------------------------------------------------------------


@pytest.mark.parametrize("headers", PAGES + HOSTS, ids=str)
async def test_pages_and_forged_hosts_get_nothing_and_change_nothing(client, headers):
    port = client.base_url.port
    forged = {name: value.format(port=port) for name, value in headers.items()}
    before = await read(client, "/contexts")
    for path in ("/status", "/health", "/openapi.json", "/mcp", "/contexts", "/none"):
        refused = await client.get(path, headers=forged)
        assert "site" in detail(refused, 403) or "host" in detail(refused, 403)
    json = {"content-type": "application/json"}
    accepts = {"accept": "application/json, text/event-stream"}
    posts = [("/contexts/add", CHANGES), ("/mcp", HELLO), ("/index", b""), ("/update", b"")]
    for path, body in posts:
        detail(await client.post(path, content=body, headers=json | accepts | forged), 403)
    detail(await client.delete("/contexts/%2F", headers=forged), 403)
    detail(await client.options("/contexts/add", headers=forged), 403)
    assert await read(client, "/contexts") == before


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "text/plain; application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "application/json; charset=utf-16",
        "application/json, text/plain",
    ],
)
async def test_bodies_are_json(client, kind):
    headers = {} if kind is None else {"content-type": kind}
    for path, body in (("/contexts/add", CHANGES), ("/index", CHANGES), ("/mcp", HELLO)):
        detail(await client.post(path, content=body, headers=headers), 415)


async def test_a_program_may_name_the_host_in_any_way(client):
    port = client.base_url.port
    for headers in (
        {"host": f"localhost:{port}"},
        {"host": f"LOCALHOST:{port}"},
        {"host": f"localhost:{port}", "origin": f"http://localhost:{port}"},
        {"sec-fetch-site": "none"},
    ):
        assert (await client.get("/health", headers=headers)).status_code == 200


async def test_answers_are_for_programs(client):
    for path in ("/health", "/none"):
        headers = (await client.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers


# -- tokens ----------------------------------------------------------------------------------


async def test_only_the_holder_of_the_token_may_ask(documents):
    async with client_of(documents, token=TOKEN) as client:
        for given in ({}, {"authorization": "Bearer"}, {"authorization": f"Bearer {TOKEN}x"}):
            for path in ("/status", "/mcp", "/openapi.json", "/health"):
                refused = await client.get(path, headers=given)
                detail(refused, 401)
                assert refused.headers["www-authenticate"] == "Bearer"
        for given in (f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN} {TOKEN}"):
            detail(await client.get("/status", headers={"authorization": given}), 401)
        client.headers["authorization"] = f"Bearer {TOKEN}"
        assert (await read(client, "/status"))["total_documents"] == 7
        described = await read(client, "/openapi.json")
        assert described["components"]["securitySchemes"]["token"]["scheme"] == "bearer"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.invalid"])
async def test_others_are_let_in_with_a_token_only(documents, host):
    async with ports_of(documents) as ports:
        with pytest.raises(BackgroundError, match=r"token|no address"):
            async with ports.opened(wish(host=host)):
                raise AssertionError("it was opened")


async def test_a_machine_is_called_by_the_address_that_was_reached(documents):
    everywhere = wish(host="0.0.0.0", token=TOKEN)
    async with ports_of(documents) as ports, ports.opened(everywhere) as told:
        port = told["port"]
        async with client_at(port, {"authorization": f"Bearer {TOKEN}"}) as client:
            await read(client, "/health")
            other = f"http://127.0.0.2:{port}/health"
            assert (await client.get(other)).status_code == 200
            detail(await client.get(other, headers={"host": f"10.9.8.7:{port}"}), 403)


# -- how much --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/search", "/mcp", "/none"])
async def test_bodies_are_bounded(client, path):
    body = b"{" + b" " * guard.LONGEST_BODY_BYTES + b"}"
    headers = {"content-type": "application/json"}
    detail(await client.post(path, content=body, headers=headers), 413)

    async def parts():
        for start in range(0, len(body), 65_536):
            yield body[start : start + 65_536]

    detail(await client.post(path, content=parts(), headers=headers), 413)
    assert (await client.get("/health")).status_code == 200


async def test_a_long_body_is_not_even_read(client):
    port = client.base_url.port
    length = {"content_type": "application/json", "content_length": "999999999999"}
    head = request("POST", "/search", port, **length)
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(head)
        with anyio.fail_after(PATIENCE_SECONDS):
            assert b" 413 " in await stream.receive()


async def test_slow_bodies_are_given_up(client, monkeypatch):
    monkeypatch.setattr(guard, "_BODY_SECONDS", 0.1)
    port = client.base_url.port
    length = {"content_type": "application/json", "content_length": "100"}
    answer = await spoken(port, request("POST", "/search", port, b'{"que', **length))
    assert b" 408 " in answer


async def test_clients_that_say_nothing_are_given_up(client, monkeypatch):
    monkeypatch.setattr(guest, "_HEADER_SECONDS", 0.1)
    port = client.base_url.port
    assert await spoken(port) == b""
    assert await spoken(port, b"GET /status HTTP/1.1\r\nHo") == b""


async def test_silent_clients_keep_out_nobody_for_long(client, monkeypatch):
    monkeypatch.setattr(guest, "_HEADER_SECONDS", 0.1)
    port = client.base_url.port
    silent = [await anyio.connect_tcp("127.0.0.1", port) for _ in range(200)]
    with anyio.fail_after(PATIENCE_SECONDS):
        # A connection that is kept would be ended, too, perhaps during the next test's request.
        while (await client.get("/health", headers={"connection": "close"})).status_code != 200:
            await anyio.lowlevel.checkpoint()
    for stream in silent:
        await stream.aclose()


async def test_requests_at_once_are_bounded(client, monkeypatch):
    monkeypatch.setattr(guard, "_MOST_UNDER_WAY", 0)
    detail(await client.get("/status"), 503)


@pytest.mark.parametrize(
    "smuggled",
    [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5\r\ntransfer-encoding: chunked",
        "transfer-encoding: chunked, identity",
        "content-length: -1",
        "content-length: +5",
        "content-length: 0x5",
        "host: evil.example",
        "origin: http://evil.example\r\norigin: http://127.0.0.1:{port}",
        "content-type: application/json\r\ncontent-type: text/plain",
        "x: \0",
        "{long}: x",
    ],
)
async def test_what_can_be_read_in_two_ways_is_refused(client, smuggled):
    port = client.base_url.port
    header = smuggled.format(port=port, long="x" * 40_000)
    head = request("POST", "/contexts/add", port).removesuffix(b"\r\n")
    answer = await spoken(port, head + header.encode() + b"\r\n\r\n" + CHANGES)
    assert answer.split(b" ")[1] in {b"400", b"403", b"415", b"501"}
    assert answer.count(b"HTTP/1.1") == 1
    assert {"path": "/", "text": "changed"} not in (await read(client, "/contexts"))["contexts"]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\0" * 100_000,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
    ids=["TLS", "too short", "zeros", "HTTP/2"],
)
async def test_other_protocols_end_the_connection(client, data):
    answer = await spoken(client.base_url.port, data)
    assert answer == b"" or answer.split(b" ")[1] in {b"400", b"403"}
    assert (await client.get("/health")).status_code == 200


@pytest.mark.parametrize("header", ["content-length: 5\r\n", ""])
@pytest.mark.parametrize("path", ["/search", "/status", "/nowhere"])
async def test_a_body_that_is_no_http_is_refused_once_and_is_no_error_of_ours(
    client, caplog, header, path
):
    port = client.base_url.port
    head = request("POST", path, port, content_type="application/json", transfer_encoding="chunked")
    start = head.removesuffix(b"\r\n") + header.encode() + b"\r\n"
    for parts in (
        [start + b"zz\r\nx"],
        [start + b"2\r\n{}\r\n0\r\nzz\r\n\r\n"],
        [start, b"zz\r\nx"],
    ):
        answer = await spoken(port, *parts)
        assert answer.count(b"HTTP/1.1") == 1
        assert answer.split(b" ")[1] in {b"400", b"404", b"405"}
    assert (await client.get("/health")).status_code == 200
    assert [record for record in caplog.records if record.exc_info] == []


async def test_a_client_may_leave_at_any_point(client):
    port = client.base_url.port
    whole = request(
        "POST",
        "/search",
        port,
        as_json({"query": "budget"}),
        content_type="application/json",
        content_length="19",
    )
    for end in range(0, len(whole), 20):
        async with await anyio.connect_tcp("127.0.0.1", port) as stream:
            await stream.send(whole[:end] or b"G")
    assert (await client.get("/health")).status_code == 200


# -- MCP -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_mcp_over_http_finds_what_rest_finds(client, mode):
    async with Client(streamable_http_client(f"{client.base_url}/mcp"), mode=mode) as mcp:
        names = {tool.name for tool in (await mcp.list_tools()).tools}
        assert names == {"search", "vsearch", "query", "get", "multi_get", "status"}
        result = await mcp.call_tool("search", {"query": "budget"})
        rest = await post(client, "/search", query="budget")
        assert result.structured_content == {"results": rest["results"]}
        document = await mcp.read_resource("qmd://docs/api.md")
        assert "Bearer" in document.contents[0].text


async def test_mcp_takes_the_token(documents):
    async with ports_of(documents) as ports, ports.opened(wish(token=TOKEN)) as told:
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with httpx.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http:
            url = f"http://127.0.0.1:{told['port']}/mcp"
            async with Client(streamable_http_client(url, http_client=http)) as mcp:
                assert (await mcp.call_tool("status", {})).structured_content


# -- opening and sharing ---------------------------------------------------------------------


async def test_a_port_closes_when_nobody_wants_it(documents):
    async with ports_of(documents) as ports:
        async with ports.opened(wish()) as first:
            port = first["port"]
            async with ports.opened(wish(port=port)) as second, client_at(port) as client:
                assert second == first
                await read(client, "/health")
            async with client_at(port) as client:
                await read(client, "/health")
        with pytest.raises(httpx.ConnectError):
            async with client_at(port) as client:
                await client.get("/health")
        async with ports.opened(wish(port=port)), client_at(port) as client:
            await read(client, "/health")


async def test_a_port_that_nobody_used_closes_as_well(documents):
    async with ports_of(documents) as ports:
        async with ports.opened(wish()) as told:
            pass
        with socket.create_server(("127.0.0.1", told["port"])):
            pass


async def test_two_ports_are_open_at_once(documents):
    async with (
        ports_of(documents) as ports,
        ports.opened(wish()) as one,
        ports.opened(wish()) as two,
    ):
        for told in (one, two):
            async with client_at(told["port"]) as client:
                await read(client, "/health")
                url = f"{client.base_url}/mcp"
                async with Client(streamable_http_client(url)) as mcp:
                    assert (await mcp.list_tools()).tools


async def test_a_port_is_shared_by_those_who_agree(documents):
    async with ports_of(documents) as ports, ports.opened(wish(token=TOKEN)) as told:
        with pytest.raises(BackgroundError, match="another token"):
            async with ports.opened(wish(port=told["port"])):
                raise AssertionError("it was shared")


async def test_a_port_that_is_taken_is_said_to_be(documents):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        async with ports_of(documents) as ports:
            with pytest.raises(BackgroundError, match=f"port {port} of 127.0.0.1 is taken"):
                async with ports.opened(wish(port=port)):
                    raise AssertionError("it was opened")


@pytest.mark.parametrize(
    "values", [{}, wish(port="x"), wish(port=99_999), wish(port=-1), wish(host=1), wish(token=None)]
)
async def test_a_wish_may_make_no_sense(documents, values):
    async with ports_of(documents) as ports:
        with pytest.raises(BackgroundError):
            async with ports.opened(values):
                raise AssertionError("it was opened")


async def test_an_operation_under_way_does_not_keep_the_port_open(documents):
    async with (
        ports_of(documents) as ports,
        documents.operations.doing("something long"),
        anyio.create_task_group() as tasks,
        client_at(0) as client,
        ports.opened(wish()) as told,
    ):
        client.base_url = f"http://127.0.0.1:{told['port']}"
        await read(client, "/status")
        tasks.start_soon(_refused, client)
        await eventually(lambda: len(documents.operations.listed) == 2)


async def _refused(client):
    with pytest.raises(httpx.HTTPError):
        (await client.post("/update")).raise_for_status()

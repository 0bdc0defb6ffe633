"""Sessions of MCP over HTTP that nobody ends keep nobody out."""

import json

import anyio
import pytest
from fakes import FakeEmbedder
from greeting import INITIALIZE
from over_http import client_of
from qmd import documents_of, written
from waiting import PATIENCE_SECONDS

from vector_index_mcp.serving import ports

pytestmark = pytest.mark.anyio

MOST = 4
ACCEPT = {"Accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


@pytest.fixture
async def client(tmp_path, monkeypatch):
    monkeypatch.setattr(ports, "_MOST_SESSIONS", MOST)
    async with client_of(documents_of(written(tmp_path), FakeEmbedder()), ACCEPT) as client:
        yield client


async def begun(client):
    """The name of a new session."""
    answer = await client.post("/mcp", json=INITIALIZE)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


async def status_of(client, name):
    return (await client.post("/mcp", json=PING, headers={"mcp-session-id": name})).status_code


async def test_the_session_that_was_unused_longest_ends_for_a_new_one(client):
    first, second, *others = [await begun(client) for _ in range(MOST)]
    assert await status_of(client, first) == 200  # now the second is unused longest
    new = await begun(client)
    found = [await status_of(client, name) for name in (second, first, *others, new)]
    assert found == [404, *[200] * MOST]


async def test_any_number_of_clients_that_never_end_a_session_is_served(client):
    for _ in range(5 * MOST):
        await begun(client)


async def test_many_at_once_are_served(client):
    names = []

    async def begin():
        names.append(await begun(client))

    async with anyio.create_task_group() as tasks:
        for _ in range(MOST):
            tasks.start_soon(begin)
    assert [await status_of(client, name) for name in names] == [200] * MOST


async def test_a_session_that_is_listened_to_is_kept(client):
    name = await begun(client)
    async with client.stream("GET", "/mcp", headers={"mcp-session-id": name}) as stream:
        assert stream.status_code == 200
        for _ in range(2 * MOST):
            await begun(client)
        assert await status_of(client, name) == 200


async def test_an_id_used_many_times_at_once_is_answered_as_often(client):
    headers = {"mcp-session-id": await begun(client)}
    found = []

    async def ask(id_):
        call = PING | {"id": id_, "method": "tools/call", "params": {"name": "status"}}
        answer = await client.post("/mcp", json=call, headers=headers)
        found.append((answer.status_code, "result" in answer.text))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for id_ in [7, "7"] * 20:
                tasks.start_soon(ask, id_)
    assert found == [(200, True)] * 40


@pytest.mark.parametrize("id_", [1.5, 1.0, None, True, [1], {"a": 1}, "Infinity"])
async def test_a_request_with_an_id_that_none_may_have_is_refused_as_one(client, id_):
    name = await begun(client)
    body = json.dumps(PING | {"id": id_}).replace('"Infinity"', "1e999").encode()
    headers = {"mcp-session-id": name, "content-type": "application/json"}
    answer = await client.post("/mcp", content=body, headers=headers)
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
    error = answer.json().pop("error")
    assert (answer.json()["id"], error["code"]) == (None, -32600)
    assert error["message"] == "the id of a request must be a string or a whole number"
    assert await status_of(client, name) == 200


async def test_what_is_no_request_is_no_request_without_an_id(client):
    headers = {"mcp-session-id": await begun(client)}
    notification = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = {"jsonrpc": "2.0", "id": 7, "result": {}}
    for message in (notification, response):
        answer = await client.post("/mcp", json=message, headers=headers)
        assert answer.status_code == 202, answer.text


async def test_what_begins_no_session_costs_nobody_theirs(client):
    names = [await begun(client) for _ in range(MOST)]
    for _ in range(2 * MOST):
        for junk in (PING, [], "no message"):
            assert (await client.post("/mcp", json=junk)).status_code >= 400
        assert (await client.get("/mcp")).status_code >= 400
        assert (await client.delete("/mcp")).status_code >= 400
    assert [await status_of(client, name) for name in names] == [200] * MOST


async def test_an_ended_session_makes_room(client):
    names = [await begun(client) for _ in range(MOST)]
    ended = await client.delete("/mcp", headers={"mcp-session-id": names[-1]})
    assert ended.status_code == 200
    await begun(client)
    assert [await status_of(client, name) for name in names] == [*[200] * (MOST - 1), 404]


@pytest.mark.parametrize(
    "others",
    [
        [("mcp-protocol-version", "1.0")],  # with which the library ends none
        [("mcp-session-id", "nobody's")],
    ],
)
async def test_a_session_that_is_not_ended_by_its_end_still_counts(client, others):
    first = await begun(client)
    for _ in range(MOST):
        headers = [*others, ("mcp-session-id", await begun(client))]
        assert (await client.delete("/mcp", headers=headers)).status_code >= 400
    assert await status_of(client, first) == 404


@pytest.mark.parametrize(
    ("body", "code", "id_"),
    [
        (b"{nonsense", -32700, None),
        (b"\xff", -32700, None),
        (b"", -32700, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 5}', -32600, 7),
        (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}', -32600, "a"),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": []}', -32600, 7),
    ],
)
@pytest.mark.parametrize("version", [{}, {"mcp-protocol-version": "2026-07-28"}])
async def test_a_body_that_is_no_message_is_refused_in_words_of_ours(
    client, body, code, id_, version
):
    headers = {"content-type": "application/json"} | version
    answer = await client.post("/mcp", content=body, headers=headers)
    assert answer.status_code == 400
    assert (answer.json()["id"], answer.json()["error"]["code"]) == (id_, code)
    assert "pydantic" not in answer.text.lower()
    assert "validation error" not in answer.text.lower()

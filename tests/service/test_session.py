"""A session, with clients that misbehave. Nothing here is told by a clock: what waits, waits."""

import json
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from greeting import CLIENT
from mcp.server.mcpserver import MCPServer
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND
from waiting import PATIENCE_SECONDS

from vector_index_mcp.serving import session, sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.server import build_server

pytestmark = pytest.mark.anyio

LONGEST = 1_000_000
"""Bytes of a message."""
ENOUGH = 50
"""Requests: more than a client may have under way."""


class Client:
    """A client in memory: what it says is there at once, what it is told waits to be taken."""

    def __init__(self):
        self._says, self._said = anyio.create_memory_object_stream[bytes](10_000)
        self._tells, self._told = anyio.create_memory_object_stream[bytes]()

    def say(self, *messages):
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self._says.send_nowait(line + b"\n")

    @property
    def unread(self):
        """How many of the lines it has said nobody has read yet."""
        return self._said.statistics().current_buffer_used

    async def told(self):
        with anyio.fail_after(PATIENCE_SECONDS):
            return json.loads(await self._told.receive())

    async def receive(self):
        with suppress(anyio.EndOfStream):
            return await self._said.receive()
        return b""

    async def send(self, data):
        await self._tells.send(data)

    def leave(self):
        self._says.close()

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        for stream in (self._says, self._said, self._tells, self._told):
            stream.close()


def request(id_, method="tools/call", **params):
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}


def waiting(id_, **arguments):
    return request(id_, name="wait", arguments=arguments)


class Waiting:
    """A server whose only tool waits until it is let go."""

    def __init__(self):
        self.calls = 0
        self.says = ""
        self.let_go = anyio.Event()
        self.server = MCPServer("waiting")

        @self.server.tool()
        async def wait(text: str = "") -> str:
            self.calls += 1
            await self.let_go.wait()
            return f"waited {self.says}"


@asynccontextmanager
async def speaking_to(server, longest=LONGEST):
    async with Client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(session.serve, server, client.receive, client.send, longest)
        yield client
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def connected(waiting):
    async with speaking_to(waiting.server) as client:
        client.say(request("hello", "initialize", **CLIENT))
        assert "result" in await client.told()
        yield client


@pytest.fixture(params=[sets.CODEBASE, sets.DOCUMENTS, sets.NOTES, sets.DATASETS])
async def of_a_set(request):
    """A client, before `initialize`, of a server whose service is not needed."""
    async with speaking_to(build_server(sets.named(request.param), Lazily(never))) as client:
        yield client


async def never():
    raise AssertionError("nothing here needs the service")


async def test_a_client_that_floods_is_read_no_further():
    server = Waiting()
    async with connected(server) as client:
        client.say(*(waiting(i) for i in range(ENOUGH)))
        await anyio.wait_all_tasks_blocked()
        assert server.calls == 16
        assert client.unread >= ENOUGH - 16 - 2  # of which one waits for room, one to be replayed
        server.let_go.set()
        assert {(await client.told())["id"] for _ in range(ENOUGH)} == set(range(ENOUGH))
        assert server.calls == ENOUGH


async def test_what_is_under_way_is_bounded_in_bytes_too():
    server = Waiting()
    async with connected(server) as client:
        client.say(*(waiting(i, text="x" * 400_000) for i in range(ENOUGH)))
        await anyio.wait_all_tasks_blocked()
        assert server.calls == 2
        server.let_go.set()
        for _ in range(ENOUGH):
            await client.told()
        assert server.calls == ENOUGH


async def test_a_request_that_is_cancelled_makes_room():
    server = Waiting()
    async with connected(server) as client:
        for i in range(ENOUGH):
            cancel = {"method": "notifications/cancelled", "params": {"requestId": i}}
            client.say(waiting(i), {"jsonrpc": "2.0"} | cancel)
        await anyio.wait_all_tasks_blocked()
        assert (server.calls, client.unread) == (ENOUGH, 0)


async def test_an_id_used_twice_at_once_is_answered_twice():
    server = Waiting()
    async with connected(server) as client:
        client.say(*(waiting("same") for _ in range(ENOUGH)))
        await anyio.wait_all_tasks_blocked()
        server.let_go.set()
        assert {(await client.told())["id"] for _ in range(ENOUGH)} == {"same"}


async def test_a_client_that_takes_no_answers_is_read_no_further_and_given_up(monkeypatch):
    server = Waiting()
    server.let_go.set()
    ended = anyio.Event()

    async def serve():
        await session.serve(server.server, client.receive, client.send, LONGEST)
        ended.set()

    async with Client() as client, anyio.create_task_group() as tasks:
        tasks.start_soon(serve)
        client.say(request("hello", "initialize", **CLIENT))
        await client.told()
        client.say(*(waiting(i) for i in range(ENOUGH)))
        await anyio.wait_all_tasks_blocked()
        assert server.calls <= 16 + 1  # one answer is with the writer, and has made room
        assert not ended.is_set()
        monkeypatch.setattr(session, "_PATIENCE_SECONDS", 0.0)
        await client.told()  # the next answer meets less patience
        with anyio.fail_after(PATIENCE_SECONDS):
            await ended.wait()


async def test_garbage_without_end_waits_until_its_answers_are_taken():
    async with connected(Waiting()) as client:
        client.say(*[b"garbage"] * ENOUGH)
        await anyio.wait_all_tasks_blocked()
        assert client.unread >= ENOUGH - 4
        for _ in range(ENOUGH):
            assert (await client.told())["error"]["code"] == -32700


async def test_a_client_that_leaves_ends_its_session():
    async with Client() as client:
        client.leave()
        with anyio.fail_after(PATIENCE_SECONDS):
            await session.serve(Waiting().server, client.receive, client.send, LONGEST)


async def test_what_was_asked_before_the_end_is_answered():
    server = Waiting()
    async with connected(server) as client:
        client.say(waiting(1), waiting(2))
        client.leave()
        await anyio.wait_all_tasks_blocked()
        server.let_go.set()
        assert {(await client.told())["id"] for _ in range(2)} == {1, 2}


async def test_a_client_that_has_gone_is_not_served_for_ever(monkeypatch):
    monkeypatch.setattr(session, "_LAST_SECONDS", 0.0)

    async def drop(_):
        """Nobody reads it."""

    async with Client() as client:
        client.say(request("hello", "initialize", **CLIENT), waiting(1))
        client.leave()
        with anyio.fail_after(PATIENCE_SECONDS):
            await session.serve(Waiting().server, client.receive, drop, LONGEST)


async def test_a_name_that_is_not_valid_unicode_does_not_end_the_session():
    server = Waiting()
    server.says = "for \udcff"
    server.let_go.set()
    async with connected(server) as client:
        client.say(waiting(1), request(2, "ping"))
        answers = [await client.told(), await client.told()]
        [waited] = [answer["result"] for answer in answers if answer["id"] == 1]
        assert waited["content"][0]["text"] == "waited for ?"


WITHOUT_VERSION = {key: value for key, value in CLIENT.items() if key != "protocolVersion"}
WRONG_PARAMETERS = [
    ("initialize", WITHOUT_VERSION, "params.protocolVersion is missing"),
    ("initialize", CLIENT | {"protocolVersion": 5}, "params.protocolVersion must be a text"),
    ("initialize", CLIENT | {"capabilities": []}, "params.capabilities must be an object"),
    ("initialize", CLIENT | {"clientInfo": {"name": "x"}}, "params.clientInfo.version is missing"),
    ("ping", {"_meta": 5}, "params._meta must be an object"),
]


@pytest.mark.parametrize(("method", "params", "words"), WRONG_PARAMETERS)
async def test_what_is_wrong_with_parameters_is_said_by_name(of_a_set, method, params, words):
    of_a_set.say(request(1, method, **params))
    assert (await of_a_set.told())["error"] == {"code": INVALID_PARAMS, "message": words}


@pytest.mark.parametrize("method", ["logging/setLevel", "completion/complete", "no/such"])
async def test_what_is_not_offered_is_no_method_whatever_its_parameters(of_a_set, method):
    of_a_set.say(request(1, method))
    error = (await of_a_set.told())["error"]
    assert (error["code"], error["message"]) == (METHOD_NOT_FOUND, "Method not found")


async def test_a_call_without_a_tool_is_told_that(of_a_set):
    of_a_set.say(request(0, "initialize", **CLIENT), request(1, "tools/call"))
    await of_a_set.told()
    error = (await of_a_set.told())["error"]
    assert error["code"] == INVALID_PARAMS
    assert "name" in error["message"]
    assert "is missing" in error["message"]


@pytest.mark.parametrize("of_a_set", [sets.DOCUMENTS], indirect=True)
@pytest.mark.parametrize(
    ("given", "kind"), [([], "array"), ([1], "array"), ("", "string"), (0, "number")]
)
async def test_arguments_that_are_no_object_are_refused_as_that(of_a_set, given, kind):
    of_a_set.say(request(1, name="search", arguments=given))
    answer = (await of_a_set.told())["result"]
    assert answer["isError"]
    assert f"Invalid input: expected object, received {kind}" in answer["content"][0]["text"]


BULK = b"x" * LONGEST
MANY = b'"",' * 12_000
REFUSED_UNREAD = [
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}' % BULK, 1),
    (b' { "id" : "a-b" , "method" : "ping" , "params":{"x":"%s"}}\r' % BULK, "a-b"),
    (b'{"method":"ping","params":{"x":"%s"},"jsonrpc":"2.0","id":-2}' % BULK, -2),
    (b'{"jsonrpc":"2.0","id":3,"params":{"x":"%s"},"method":"ping" } ' % BULK, 3),
    (b'{"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}' % BULK, None),
    (b'{"jsonrpc":"2.0","method":"ping","params":{"x":"%s","id":1}}' % BULK, None),
    (b'{"params":{"x":"%s","id":1,"method":"ping"}}' % BULK, None),
    (b'{"id":1.5,"method":"ping","params":{"x":"%s"}}' % BULK, None),
    (b'{"id":"\xff","method":"ping","params":{"x":"%s"}}' % BULK, None),
    (b'{"id":007,"method":"ping","params":{"x":"%s"}}' % BULK, None),
    (BULK + BULK, None),
]


@pytest.mark.parametrize(("line", "id_"), REFUSED_UNREAD, ids=range(len(REFUSED_UNREAD)))
async def test_who_asks_too_much_learns_which_request_is_refused(line, id_):
    async with speaking_to(Waiting().server) as client:
        client.say(line, request("next", "ping"))
        refused, answer = await client.told(), await client.told()
        assert (refused["id"], refused["error"]["code"]) == (id_, INVALID_REQUEST)
        assert answer["id"] == "next"


async def test_who_asks_in_too_many_strings_learns_that_too():
    async with speaking_to(Waiting().server, 3 * LONGEST) as client:
        client.say(
            b'{"jsonrpc":"2.0","id":4,"method":"ping","params":{"x":["%s",%s""]}}' % (BULK, MANY)
        )
        refused = await client.told()
        assert (refused["id"], refused["error"]["code"]) == (4, INVALID_REQUEST)
        assert "10000 strings" in refused["error"]["message"]

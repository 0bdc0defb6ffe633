"""What a front end does with requests when its service ends; the services are the tests' own."""

import json
import os
import select
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
import pytest
from anyio.abc import SocketAttribute
from anyio.streams.buffered import BufferedByteReceiveStream
from greeting import INITIALIZE
from processes import ANSWER_SECONDS, MAX_LINE_BYTES, linux_only

from vector_index_mcp import __version__
from vector_index_mcp.background import greeting
from vector_index_mcp.background.births import birth_of

pytestmark = [pytest.mark.long, pytest.mark.anyio, linux_only]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
SECRET = "a secret"
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}
LOOK = {"jsonrpc": "2.0", "id": "look", "method": "tools/call", "params": {"name": "look"}}
WRITE = {"jsonrpc": "2.0", "id": "write", "method": "tools/call", "params": {"name": "write"}}
PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}
TOOLS = [
    {"name": "look", "annotations": {"readOnlyHint": True}},
    {"name": "write", "annotations": {"readOnlyHint": False}},
]
CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
MODERN = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
LISTEN = {
    "jsonrpc": "2.0",
    "id": "listen",
    "method": "subscriptions/listen",
    "params": {**MODERN, "notifications": {"toolsListChanged": True}},
}


@dataclass
class Session:
    """A front end's session at a service, which does only what a test says."""

    stream: anyio.abc.SocketStream
    lines: BufferedByteReceiveStream

    async def next(self):
        """What the front end says next."""
        with anyio.fail_after(ANSWER_SECONDS):
            return json.loads(await self.lines.receive_until(b"\n", MAX_LINE_BYTES))

    async def has_unread(self):
        """Wait until the front end has said something more, and leave it unread."""
        with anyio.fail_after(ANSWER_SECONDS):
            await anyio.wait_readable(self.stream.extra(SocketAttribute.raw_socket))

    async def answer(self, request, result=None):
        await self.stream.send(
            greeting.line({"jsonrpc": "2.0", "id": request["id"], "result": result or {}})
        )

    async def introduce(self, *, promises=True):
        request = await self.next()
        assert request["method"] == "initialize"
        capabilities = {"tools": {"listChanged": True} if promises else {}}
        await self.answer(request, {"capabilities": capabilities})
        return request

    async def go_on(self, tools=None):
        """Take over a session in which a client has listed the tools."""
        await self.introduce()
        assert await self.next() == INITIALIZED
        await self.list(tools)

    async def list(self, tools=None):
        request = await self.next()
        assert request["method"] == "tools/list"
        await self.answer(request, {"tools": tools or TOOLS})

    async def end(self):
        await self.stream.aclose()


@dataclass
class Service:
    """All services of a place, one after another: each connection may be another one."""

    listener: anyio.abc.Listener
    pid: int
    connections: AsyncExitStack
    """Closes what a test has left open."""

    async def met(self):
        """The session of the next front end that comes."""
        with anyio.fail_after(ANSWER_SECONDS):
            stream = await self.connections.enter_async_context(await self.listener.accept())
        lines = BufferedByteReceiveStream(stream)
        hello = json.loads(await lines.receive_until(b"\n", MAX_LINE_BYTES))
        proof = greeting.proof_for(hello, SECRET)
        await stream.send(greeting.line({"version": __version__, "pid": self.pid, **proof}))
        return Session(stream, lines)

    async def asked_next(self, request):
        """The session that a front end goes on with, once it has asked this in it."""
        session = await self.met()
        await session.go_on()
        assert await session.next() == request
        return session

    def is_wanted(self):
        """Whether a front end waits to be met."""
        return bool(select.select([self.listener.extra(SocketAttribute.raw_socket)], [], [], 0)[0])


@asynccontextmanager
async def started(place):
    """Services of a place, in the record as one that has died, and a client with its front end."""
    gone = await anyio.run_process(["sh", "-c", "echo $$"])
    pid = int(gone.stdout)
    place.endpoint.make_folder()
    place.endpoint.write_record(
        {"pid": pid, "birth": birth_of(os.getpid()), "secret": SECRET, "version": __version__}
    )
    async with (
        await anyio.create_unix_listener(place.endpoint.socket_path) as listener,
        AsyncExitStack() as connections,
        place.relayed() as client,
    ):
        yield Service(listener, pid, connections), client


async def begun(service, client, *, promises=True):
    """The session of a client that has listed the tools."""
    session = await service.met()
    await client.send(INITIALIZE)
    await session.introduce(promises=promises)
    await client.hear()
    await client.send(INITIALIZED)
    assert await session.next() == INITIALIZED
    await client.send(LIST)
    await session.list()
    await client.hear()
    return session


def reason_in(answer):
    assert answer["result"]["isError"]
    return answer["result"]["content"][0]["text"]


async def test_what_only_reads_is_asked_once_more(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(LOOK)
        assert await session.next() == LOOK
        await session.end()
        session = await service.asked_next(LOOK)
        await session.answer(LOOK, {"content": []})
        assert await client.hear() == {"jsonrpc": "2.0", "id": "look", "result": {"content": []}}


async def test_what_only_reads_is_not_asked_for_ever(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(LOOK)
        assert await session.next() == LOOK
        await session.end()
        session = await service.asked_next(LOOK)
        await session.end()
        reason = reason_in(await client.hear())
        assert "killed or has crashed" in reason
        assert reason.endswith("; ask again")


@pytest.mark.parametrize("name", ["write", "of a tool that nobody has listed"])
async def test_what_may_have_been_written_is_not_written_again(place, name):
    call = WRITE | {"params": {"name": name}}
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(call)
        assert await session.next() == call
        await session.end()
        reason = reason_in(await client.hear())
        assert "killed or has crashed" in reason
        assert "may already have been made" in reason
        await client.send(LOOK)
        session = await service.asked_next(LOOK)


async def test_what_no_service_has_read_is_sent_to_the_next_one(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(WRITE)
        await session.has_unread()
        await session.end()
        session = await service.asked_next(WRITE)


async def test_what_was_read_before_the_rest_is_not_taken_for_unread(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(WRITE)
        assert await session.next() == WRITE
        later = WRITE | {"id": "later"}
        await client.send(later)
        await session.has_unread()
        await session.end()
        answer = await client.hear()
        assert answer["id"] == WRITE["id"]
        assert "may already have been made" in reason_in(answer)
        session = await service.asked_next(later)


async def test_a_call_right_after_the_end_is_never_lost(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        for number in range(20):
            call = WRITE | {"id": number}
            await session.end()
            await client.send(call)
            session = await service.asked_next(call)
            await session.answer(call)
            assert (await client.hear())["id"] == number


async def test_while_a_service_is_awaited_pings_and_cancellations_are_heard(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await session.end()
        await client.send(LOOK | {"id": "unwanted"})
        await client.send(PING)
        assert await client.hear() == {"jsonrpc": "2.0", "id": "ping", "result": {}}
        cancelled = {"method": "notifications/cancelled", "params": {"requestId": "unwanted"}}
        await client.send({"jsonrpc": "2.0", **cancelled})
        await client.send(LOOK)
        await client.send(PING)  # once it is answered, what was sent before has been heard
        assert (await client.hear())["id"] == "ping"
        session = await service.asked_next(LOOK)


async def test_a_ping_under_way_needs_no_other_service(place):
    async with started(place) as (service, client):
        session = await begun(service, client)
        await client.send(PING)
        assert await session.next() == PING
        await session.end()
        assert await client.hear() == {"jsonrpc": "2.0", "id": "ping", "result": {}}
        await client.ask("ping")
        assert not service.is_wanted()


async def test_all_that_waits_for_a_service_gets_there_in_order(place):
    calls = [LOOK | {"id": number} for number in range(1_000)]
    async with started(place) as (service, client), anyio.create_task_group() as tasks:
        session = await begun(service, client)
        await session.end()

        async def send() -> None:
            for call in calls:
                await client.send(call)

        tasks.start_soon(send)
        session = await service.met()
        await session.go_on()
        assert [await session.next() for _ in calls] == calls


async def test_a_client_that_begins_meanwhile_begins_at_the_next_service(place):
    async with started(place) as (service, client):
        session = await service.met()
        await session.end()
        await client.send(INITIALIZE)
        await client.send(INITIALIZED)
        session = await service.met()
        assert await session.introduce() == INITIALIZE
        assert await session.next() == INITIALIZED
        assert "capabilities" in (await client.hear())["result"]


async def test_what_a_service_refused_to_begin_is_not_begun_at_the_next_one(place):
    look = LOOK | {"params": {"name": "look", **MODERN}}
    async with started(place) as (service, client):
        session = await service.met()
        await client.send(INITIALIZE)
        refusal = {"error": {"code": -32600, "message": "of another era"}}
        assert await session.next() == INITIALIZE
        await session.stream.send(greeting.line({"jsonrpc": "2.0", "id": 1, **refusal}))
        assert "error" in await client.hear()
        await session.end()
        await client.send(look)
        session = await service.met()
        assert await session.next() == look


@pytest.mark.parametrize("promises", [True, False])
async def test_other_tools_are_told_of_as_promised(place, promises):
    async with started(place) as (service, client):
        session = await begun(service, client, promises=promises)
        for tools in (TOOLS, TOOLS[:1]):
            await session.end()
            await client.send(LOOK)
            session = await service.met()
            await session.go_on(tools)
            assert await session.next() == LOOK
            if promises and tools != TOOLS:
                assert await client.hear() == CHANGED
            await session.answer(LOOK)
            assert (await client.hear())["id"] == "look"


async def test_who_listens_for_changes_is_told_and_goes_on_listening(place):
    list_tools, look = LIST | {"params": MODERN}, LOOK | {"params": {"name": "look", **MODERN}}
    async with started(place) as (service, client):
        session = await service.met()
        await client.send(list_tools)
        await session.list()
        await client.hear()
        await client.send(LISTEN)
        assert await session.next() == LISTEN
        await session.end()
        while "error" in await client.ask("ping"):
            pass
        assert not service.is_wanted()
        await client.send(look)
        session = await service.met()
        await session.list(TOOLS[:1])
        assert await session.next() == LISTEN
        assert await session.next() == look
        subscription = {"io.modelcontextprotocol/subscriptionId": "listen"}
        assert await client.hear() == CHANGED | {"params": {"_meta": subscription}}

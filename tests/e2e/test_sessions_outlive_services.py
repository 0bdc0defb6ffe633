"""A client's session goes on when the service that answers it is stopped, killed or replaced."""

import json
import shutil

import anyio
import pytest
from processes import (
    ANOTHER_VERSION,
    Wire,
    linux_only,
    wired,
    with_import_hook,
)
from waiting import eventually

from vector_index_mcp import __version__

pytestmark = [pytest.mark.anyio, linux_only]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
UNKNOWN_ID = 99
SEARCH = {"name": "search_index", "arguments": {"query": "parse_config"}}
# A service that dies while it answers: it has sent half of a list of tools when it answers again.
HALF_AN_ANSWER = """
import os, sys
if "host" in sys.orig_argv:
    from vector_index_mcp.serving import session
    whole, has_begun = session._line, []
    def half(message):
        line = whole(message)
        if has_begun:
            os._exit(9)
        if b'"tools":[' in line:
            has_begun.append(line)
            return line[: len(line) // 2]
        return line
    session._line = half
"""


async def is_answered(client: Wire) -> None:
    """Wait until a search finds what is there."""

    async def is_found() -> bool:
        answer = await client.ask("tools/call", **SEARCH)
        assert not answer["result"].get("isError"), answer
        found = answer["result"]["structuredContent"]
        return [hit["file_path"] for hit in found["results"]] == ["load.py"]

    await eventually(is_found)


async def test_after_a_stop_the_next_call_has_a_new_service(place):
    async with place.relayed() as client:
        await client.initialize()
        await is_answered(client)
        former = place.service()
        for _ in range(2):
            assert (await place.run("stop", place.project)).returncode == 0
            await is_answered(client)
        assert place.service() != former
        assert (await client.ask("tools/list"))["result"]["tools"]
        assert await client.leave() == 0
    assert (place.folder / "stderr.txt").read_text("utf-8") == ""


async def test_after_a_kill_what_was_under_way_is_answered_with_the_reason(place):
    async with place.relayed() as client:
        await client.initialize()
        service = place.service()
        service.suspend()
        asked = {"jsonrpc": "2.0", "method": "tools/list", "id": "a list"}
        await client.send(asked)
        async with anyio.create_task_group() as tasks:
            answers = []

            async def call() -> None:
                answers.append(await client.ask("tools/call", **SEARCH))

            tasks.start_soon(call)
            await anyio.wait_all_tasks_blocked()
            service.kill()
        [answer] = answers
        assert answer["result"]["isError"]
        [content] = answer["result"]["content"]
        assert content["text"].startswith("the background service was killed or has crashed")
        assert content["text"].endswith("; the next call starts it again")
        refused = json.loads(client.received[-2])
        assert refused["id"] == asked["id"]
        assert refused["error"] == {"code": -32603, "message": content["text"]}
        await is_answered(client)
        assert place.service() != service


async def test_each_of_many_kills_costs_the_calls_under_way_and_no_more(place):
    async with place.relayed() as client:
        await client.initialize()
        for _ in range(5):
            await is_answered(client)
            service = place.service()
            service.kill()
            await client.ask("tools/call", **SEARCH)  # which may be too late, or may not


async def test_half_an_answer_is_not_passed_on(place):
    variables = with_import_hook(place.folder / "hook", HALF_AN_ANSWER, place.variables)
    async with wired(place.project, cwd=place.folder, variables=variables) as client:
        await client.initialize()
        await client.send({"jsonrpc": "2.0", "id": UNKNOWN_ID, "method": "tools/list"})
        answer = await client.ask("tools/call", name="get_status", arguments={})
        assert answer["result"]["isError"]
        received = [json.loads(line) for line in client.received]
        assert [message.get("id") for message in received[-2:]] == [UNKNOWN_ID, answer["id"]]
        assert "error" in received[-2]


async def test_pings_and_notes_start_no_service(place):
    async with place.relayed() as client:
        await client.initialize()
        assert (await place.run("stop", place.project)).returncode == 0
        note = {"method": "notifications/cancelled", "params": {"requestId": UNKNOWN_ID}}
        await client.send({"jsonrpc": "2.0", **note})
        assert (await client.ask("ping"))["result"] == {}
        assert place.report() == {}
        await is_answered(client)


async def test_a_service_of_another_version_that_took_over_stays(place):
    old = with_import_hook(place.folder / "hook", ANOTHER_VERSION, place.variables)
    async with wired(place.project, cwd=place.folder, variables=old) as client:
        await client.initialize()
        async with place.relayed() as newer:
            assert (await newer.initialize())["serverInfo"]["version"] == __version__
            service = place.service()
            await is_answered(client)
            await is_answered(newer)
            assert place.service() == service


async def test_where_none_can_be_started_each_call_says_why_until_one_can(place):
    moved = place.folder / "elsewhere"
    async with place.relayed() as client:
        await client.initialize()
        assert (await place.run("stop", place.project)).returncode == 0
        shutil.move(place.project, moved)
        for _ in range(2):
            answer = await client.ask("tools/call", **SEARCH)
            assert answer["result"]["isError"]
            assert "does not exist" in answer["result"]["content"][0]["text"]
            assert str(place.project) in answer["result"]["content"][0]["text"]
        shutil.move(moved, place.project)
        await is_answered(client)


async def test_a_client_can_leave_while_there_is_no_service(place):
    async with place.relayed() as client:
        await client.initialize()
        assert (await place.run("stop", place.project)).returncode == 0
        assert await client.leave() == 0
    assert place.report() == {}

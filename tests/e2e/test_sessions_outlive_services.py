"""A client's session goes on when the service that answers it is stopped, killed or replaced."""

import json
import shutil
from contextlib import AsyncExitStack

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import (
    ANOTHER_VERSION,
    COMMAND,
    MODEL_SECONDS,
    Wire,
    linux_only,
    wired,
    with_import_hook,
)
from waiting import eventually

from vector_index_mcp import __version__
from vector_index_mcp.background import contact

pytestmark = [pytest.mark.long, pytest.mark.anyio, linux_only]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
UNKNOWN_ID = 99
TRIGGER = {"name": "trigger_index", "arguments": {}}
SEARCH = {"name": "search_index", "arguments": {"query": "parse_config"}}
# How many services are started, and how long a front end waits for one that hangs.
STARTS = """
import os, sys
if "host" in sys.orig_argv and "codebase" in sys.orig_argv:
    with open(os.environ["STARTS"], "a") as file:
        print(os.getpid(), file=file)
"""
IMPATIENCE = """
from vector_index_mcp.background import connection
connection._LAST_ANSWERS_SECONDS = 0.5
"""
SOON_GIVEN_UP = """
from vector_index_mcp.background import relay
relay.SILENT_SECONDS, relay.PATIENCE_SECONDS = 0.2, 0.5
"""
# A service that answers a search when it has been asked three times whether it is there.
SLOW_TO_SEARCH = """
import sys
if "host" in sys.orig_argv:
    import anyio
    from vector_index_mcp.background import greeting
    from vector_index_mcp.codebase.service import Codebase
    wishes, proof_for, search = [], greeting.proof_for, Codebase.search
    def noted(hello, secret):
        wishes.append(hello["wants"])
        return proof_for(hello, secret)
    async def slow(*arguments, **named):
        while wishes.count(greeting.REPORT) < 3:
            await anyio.sleep(0.01)
        return await search(*arguments, **named)
    greeting.proof_for, Codebase.search = noted, slow
"""
# A service that dies at each greeting, once there is a certain file.
DIES_AT_GREETINGS = """
if "host" in sys.orig_argv and os.path.exists(os.environ["STARTS"] + ".dies"):
    from vector_index_mcp.background import greeting
    def die(*_):
        os.write(2, b"no such luck\\n")
        os._exit(9)
    greeting.proof_for = die
"""
# A service that dies of a call of this tool.
DIES_OF_A_TRIGGER = """
import os, sys
if "host" in sys.orig_argv:
    from vector_index_mcp.serving import session
    is_cheap = session.is_cheap
    session.is_cheap = lambda line: os._exit(9) if b"trigger_index" in line else is_cheap(line)
"""
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


async def is_answered(client: Wire, *, may_be_slow: bool = False) -> None:
    """Wait until a search finds what is there.

    Args:
        client: The client that asks.
        may_be_slow: Whether the service may take longer than its front end waits; then it is asked
            again, as the error says.
    """

    async def is_found() -> bool:
        answer = await client.ask("tools/call", **SEARCH)
        if answer["result"].get("isError"):
            assert may_be_slow, answer
            assert "does not answer" in answer["result"]["content"][0]["text"]
            return False
        found = answer["result"]["structuredContent"]
        return [hit["file_path"] for hit in found["results"]] == ["load.py"]

    await eventually(is_found)


async def has_noticed(client: Wire) -> None:
    """Wait until a front end knows that its service is dead: then it answers pings itself."""

    async def answers() -> bool:
        return "result" in await client.ask("ping")

    await eventually(answers)


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


async def test_after_a_kill_the_next_service_answers_what_was_under_way(place):
    async with place.relayed() as client:
        await client.initialize()
        assert (await client.ask("tools/list"))["result"]["tools"]
        service = place.service()
        service.suspend()
        await client.send({"jsonrpc": "2.0", "method": "tools/list", "id": UNKNOWN_ID})
        await client.send(
            {"jsonrpc": "2.0", "method": "tools/call", "id": "search", "params": SEARCH}
        )
        service.kill()
        answers = {answer["id"]: answer for answer in [await client.hear(), await client.hear()]}
        assert answers[UNKNOWN_ID]["result"]["tools"]
        assert "structuredContent" in answers["search"]["result"]
        assert place.service() != service


async def test_no_kill_costs_a_search(place):
    async with place.relayed() as client:
        await client.initialize()
        await client.ask("tools/list")
        await is_answered(client)
        for _ in range(5):
            place.service().kill()
            assert not (await client.ask("tools/call", **SEARCH))["result"].get("isError")


async def test_what_waits_for_a_service_that_hangs_is_told_so(place):
    variables = with_import_hook(place.folder / "hook", SOON_GIVEN_UP, place.variables)
    async with wired(place.project, cwd=place.folder, variables=variables) as client:
        await client.initialize()
        await client.ask("tools/list")
        await is_answered(client, may_be_slow=True)
        service = place.service()
        service.suspend()
        answer = await client.ask("tools/call", **SEARCH)
        assert answer["result"]["isError"]
        [told] = answer["result"]["content"]
        assert f"of {place.project} does not answer" in told["text"]
        assert told["text"].endswith(f"`vector-index-mcp stop {place.project}`; ask again")
        told = (await client.ask("tools/call", **TRIGGER))["result"]["content"][0]["text"]
        assert told.endswith("may already have been made: check before you repeat it")
        assert "does not answer" in (await client.ask("ping"))["error"]["message"]
        service.resume()
        await is_answered(client, may_be_slow=True)
        assert place.service() == service
        ids = [json.loads(line).get("id") for line in client.received]
        assert len(ids) == len(set(ids))  # what it answers late is dropped


async def test_a_service_that_is_there_may_take_its_time(place):
    hook = with_import_hook(place.folder / "hook", SOON_GIVEN_UP + SLOW_TO_SEARCH, place.variables)
    async with wired(place.project, cwd=place.folder, variables=hook) as client:
        await client.initialize()
        await is_answered(client)


async def test_half_an_answer_is_not_passed_on(place):
    variables = with_import_hook(place.folder / "hook", HALF_AN_ANSWER, place.variables)
    async with wired(place.project, cwd=place.folder, variables=variables) as client:
        await client.initialize()
        await client.send({"jsonrpc": "2.0", "id": UNKNOWN_ID, "method": "tools/list"})
        for _ in range(2):  # the second service is asked for the list again, and dies likewise
            answer = await client.ask("tools/call", **TRIGGER)
            assert answer["result"]["isError"]
        received = [json.loads(line) for line in client.received]
        [listed] = [message for message in received if message.get("id") == UNKNOWN_ID]
        assert listed["error"]["message"].endswith("; ask again")


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


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_clients_of_every_protocol_era_understand_the_reason(place, mode):
    variables = with_import_hook(place.folder / "hook", DIES_OF_A_TRIGGER, place.variables)
    command, *arguments = [*COMMAND, str(place.project)]
    parameters = StdioServerParameters(
        command=command, args=arguments, env=variables, cwd=place.folder
    )
    with (place.folder / "stderr.txt").open("a", encoding="utf-8") as stderr:
        transport = stdio_client(parameters, errlog=stderr)
        async with Client(transport, mode=mode, read_timeout_seconds=MODEL_SECONDS) as client:
            answer = await client.call_tool("trigger_index")
            assert answer.is_error
            assert "has crashed" in answer.content[0].text
            assert "may already have been made" in answer.content[0].text
            assert not (await client.call_tool("get_status")).is_error


async def test_a_ping_without_an_id_does_not_end_the_session(place):
    async with place.relayed() as client:
        await client.initialize()
        assert (await place.run("stop", place.project)).returncode == 0
        await client.send({"jsonrpc": "2.0", "method": "ping"})
        await is_answered(client)


async def test_a_client_that_leaves_does_not_wait_for_what_is_never_answered(place):
    async with place.relayed() as client:
        await client.initialize()
        last = {"jsonrpc": "2.0", "id": UNKNOWN_ID, "method": "tools/list"}
        await client.process.stdin.send(json.dumps(last).encode())  # without its newline
        assert await client.leave() == 0
        answer = json.loads((await client.rest())[-1])
    assert answer["id"] == UNKNOWN_ID
    assert answer["error"]["message"].startswith("the client left before")


async def test_a_client_can_leave_while_its_service_hangs(place):
    variables = with_import_hook(place.folder / "hook", IMPATIENCE, place.variables)
    async with wired(place.project, cwd=place.folder, variables=variables) as client:
        await client.initialize()
        await is_answered(client)
        service = place.service()
        service.suspend()
        await client.send({"jsonrpc": "2.0", "id": UNKNOWN_ID, "method": "tools/list"})
        assert await client.leave() == 0
        service.resume()


async def test_many_front_ends_start_one_service(place):
    starts = place.folder / "starts"
    place.variables["STARTS"] = str(starts)
    variables = with_import_hook(place.folder / "hook", STARTS, place.variables)
    async with AsyncExitStack() as stack:
        clients = []
        for _ in range(6):
            front_end = wired(place.project, cwd=place.folder, variables=variables)
            clients.append(await stack.enter_async_context(front_end))
        async with anyio.create_task_group() as tasks:
            for client in clients:
                tasks.start_soon(client.initialize)
        for number in (1, 2):
            assert len(starts.read_text("utf-8").splitlines()) == number
            place.service().kill()
            for client in clients:
                await has_noticed(client)
            async with anyio.create_task_group() as tasks:
                for client in clients:
                    tasks.start_soon(is_answered, client)
        assert place.report()["clients"] == len(clients)


async def test_a_newer_version_takes_over_though_others_go_on_calling(place):
    old = with_import_hook(place.folder / "hook", ANOTHER_VERSION, place.variables)
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(anyio.create_task_group())

        async def call_for_ever(client: Wire) -> None:
            while True:
                await client.ask("tools/call", name="get_status", arguments={})

        for _ in range(2):
            front_end = wired(place.project, cwd=place.folder, variables=old)
            client = await stack.enter_async_context(front_end)
            await client.initialize()
            tasks.start_soon(call_for_ever, client)
        async with place.relayed() as newer:
            assert (await newer.initialize())["serverInfo"]["version"] == __version__
            await is_answered(newer)
        tasks.cancel_scope.cancel()


async def test_a_service_that_dies_at_each_greeting_is_started_a_few_times_and_the_reason_told(
    place,
):
    starts = place.folder / "starts"
    place.variables["STARTS"] = str(starts)
    code = STARTS + DIES_AT_GREETINGS
    variables = with_import_hook(place.folder / "hook", code, place.variables)
    async with wired(place.project, cwd=place.folder, variables=variables) as client:
        await client.initialize()
        place.service().kill()
        await has_noticed(client)
        starts.with_name("starts.dies").touch()
        answer = await client.ask("tools/call", **SEARCH)
        assert "has crashed (no such luck); look at" in answer["result"]["content"][0]["text"]
        assert len(starts.read_text("utf-8").splitlines()) == 1 + contact._MOST_STARTS
        starts.with_name("starts.dies").unlink()
        await is_answered(client)


async def test_a_service_is_started_though_the_folder_of_its_socket_is_gone(place):
    async with place.relayed() as client:
        await client.initialize()
        assert (await place.run("stop", place.project)).returncode == 0
        shutil.rmtree(place.runtime)
        await is_answered(client)
        assert place.runtime.stat().st_mode & 0o777 == 0o700

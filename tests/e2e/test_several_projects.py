"""One client that searches two projects: real processes, as an installed entry starts them."""

import json
import signal

import anyio
import anyio.to_thread
import psutil
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from processes import ANSWER_SECONDS, COMMAND, MODEL_SECONDS, NO_MODEL, place_of, posix_only, wired
from waiting import eventually
from writing import write

from vector_index_mcp.background import contact
from vector_index_mcp.background.endpoint import all_endpoints
from vector_index_mcp.sharing.place import TOOL_SET

pytestmark = pytest.mark.anyio

GIVEN_UP_SECONDS = 10.0  # far less than anybody waits for a service that does not answer
WEB = {"src/cart.ts": "export function renderCart(cart) { return cart.totalPrice(); }\n"}
API = {"api/prices.py": "def total_price(cart):\n    return sum(cart.prices)\n"}


@pytest.fixture
def place():
    with place_of(WEB, **NO_MODEL) as place:
        write(place.folder / "api", API)
        yield place


async def installed(place):
    """The entry for both, as it is written."""
    other = place.folder / "api"
    words = ("--client", "claude-code", "--scope", "project", "--yes")
    ran = await place.run("install", place.project, "--also", other, *words)
    assert ran.returncode == 0, ran.stderr
    written = await anyio.Path(place.project / ".mcp.json").read_text()
    [entry] = json.loads(written)["mcpServers"].values()
    assert entry["args"][1:] == [str(other)]
    return entry


def client_of(place, entry):
    words = [word.replace("${CLAUDE_PROJECT_DIR:-.}", ".") for word in entry["args"]]
    parameters = StdioServerParameters(
        command=entry["command"], args=words, env=place.variables, cwd=place.project
    )
    return Client(stdio_client(parameters), read_timeout_seconds=MODEL_SECONDS)


def endpoint_for(place, project):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(place.runtime))
        return next(each for each in all_endpoints() if each.place == str(project))


async def test_a_folder_that_is_missing_stops_no_other(place):
    api = place.folder / "api"
    away = api.rename(place.folder / "away")
    entry = {"command": COMMAND[0], "args": [*COMMAND[1:], str(place.project), str(api)]}
    async with client_of(place, entry) as client:
        answer = await client.call_tool("search_index", {"query": "cart"})
        [hit, *_] = answer.structured_content["results"]
        assert hit["file_path"] == str(place.project / "src/cart.ts")
        assert f"{api} does not exist" in answer.structured_content["note"]
        away.rename(api)
        answer = await client.call_tool("search_index", {"query": "total_price"})
        paths = [hit["file_path"] for hit in answer.structured_content["results"]]
        assert str(api / "api/prices.py") in paths


async def test_if_all_folders_are_missing_nothing_is_served(place):
    ran = await place.run(place.folder / "no", place.folder / "none")
    assert (ran.returncode, "/no does not exist" in ran.stderr) == (2, True)


async def paths_of(client, query, **arguments):
    result = await client.call_tool("search_index", {"query": query, **arguments})
    assert not result.is_error, result.content
    return [hit["file_path"] for hit in result.structured_content["results"]]


async def finds(client, query, *paths):
    async def are_found():
        return [str(path) for path in paths] == sorted(await paths_of(client, query))

    await eventually(are_found, ANSWER_SECONDS)


@pytest.mark.long
async def test_both_are_found_and_followed_and_both_have_a_service(place):
    web, api = place.project / "src/cart.ts", place.folder / "api/api/prices.py"
    async with client_of(place, await installed(place)) as client:
        await finds(client, "total_price", api, web)
        late = place.folder / "api" / "late.py"
        await anyio.Path(late).write_text("def total_price_later(): pass\n")
        await finds(client, "total_price", api, late, web)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("VECTOR_INDEX_RUNTIME_DIR", str(place.runtime))
            services = {e.place for e in all_endpoints() if e.tool_set != TOOL_SET}
            assert services == {str(place.project), str(place.folder / "api")}


@pytest.mark.long
@posix_only
async def test_a_killed_service_is_started_again_and_a_stopped_one_not_waited_for(place):
    web, api = place.project / "src/cart.ts", place.folder / "api/api/prices.py"
    async with client_of(place, await installed(place)) as client:
        await finds(client, "total_price", api, web)
        endpoint = endpoint_for(place, place.folder / "api")
        report = await anyio.to_thread.run_sync(contact.ask, endpoint, "report")
        psutil.Process(report["pid"]).send_signal(signal.SIGKILL)
        await finds(client, "total_price", api, web)
        service = psutil.Process(endpoint.read_record()["pid"])
        assert service.pid != report["pid"]
        service.suspend()
        try:
            result = await client.call_tool("search_index", {"query": "total_price"})
            assert "api could not be searched: no answer within" in result.content[0].text
            [hit] = result.structured_content["results"]
            assert hit["file_path"] == str(web)
        finally:
            service.resume()
        await finds(client, "total_price", api, web)


@pytest.mark.long
@posix_only
async def test_a_client_that_leaves_while_a_service_is_stopped_leaves_no_process(place):
    projects = (place.project, place.folder / "api")
    async with wired(*projects, cwd=place.folder, variables=place.variables) as wire:
        await wire.initialize()
        await wire.call("trigger_index")
        service = psutil.Process(endpoint_for(place, place.project).read_record()["pid"])
        service.suspend()
        try:
            given = {"name": "search_index", "arguments": {"query": "total_price"}}
            await wire.send({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": given})
            limit = {**given["arguments"], "project": "api"}
            assert (await wire.call("search_index", **limit))["results"]  # and so the other is read
            await wire.process.stdin.aclose()
            with anyio.fail_after(GIVEN_UP_SECONDS):
                assert await wire.process.wait() == 0
        finally:
            service.resume()


@pytest.mark.long
async def test_the_same_project_twice_is_one_and_no_project_is_told(place):
    again = place.folder / "again"
    again.symlink_to(place.project)
    entry = await installed(place)
    entry["args"] = [str(place.project), str(again)]
    async with client_of(place, entry) as client:
        await finds(client, "totalPrice", place.project / "src/cart.ts")
    nowhere = await place.run(place.project, place.folder / "nowhere")  # and no client
    said = f"{place.folder}/nowhere does not exist; the other projects are served\n"
    assert (nowhere.returncode, nowhere.stderr) == (0, said)
    alone = await place.run("serve", "--foreground", place.project, place.folder / "api")
    assert (alone.returncode, "leave out --foreground" in alone.stderr) == (2, True)

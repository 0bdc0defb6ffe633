"""The notes as a client gets them that knows JSON-RPC and nothing else, over the real program."""

import json
from contextlib import asynccontextmanager

import processes
import pytest
from processes import place_of, wired
from stores import git, log

pytestmark = [pytest.mark.long, pytest.mark.anyio]

P = {"project_id": "My Project"}
MAIN = "projects/my-project/main.md"
MOST_CHARS = 10 * 1024 * 1024
"""Of a content."""
MOST_BYTES = 64_000_000
"""Of a message."""
CHEAP_BYTES = 1_000_000
"""Up to here a message may be made of anything."""
METHOD_NOT_FOUND, INVALID_REQUEST, PARSE_ERROR = -32601, -32600, -32700


@asynccontextmanager
async def notes():
    """The program, serving a store that is not there yet, and the folder of that store."""
    with place_of({}) as place:
        store = place.folder / "store"
        command = ("notes", "serve", "--home", store)
        async with wired(*command, cwd=place.folder, variables=place.variables) as wire:
            yield wire, store


async def called(wire, tool, **arguments):
    answer = await wire.ask("tools/call", name=tool, arguments=arguments)
    assert "result" in answer, answer["error"]["message"][:1000]
    [content] = answer["result"]["content"]
    found = json.loads(content["text"])
    assert found.pop("success"), found
    return found


async def refused(wire, message, id_=None):
    """The code with which something is refused; what is no request has no id."""
    await wire.send(message)
    line = await wire._stdout.receive_until(b"\n", processes.MAX_LINE_BYTES)
    answer = json.loads(line)
    assert answer["id"] == id_
    return answer["error"]["code"]


def message_with(arguments):
    """The bytes of a call with these arguments, which are JSON."""
    start = b'{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": '
    return (
        start + b'"get_project_main", "arguments": {"project_id": "p", "x": ' + arguments + b"}}}"
    )


async def test_a_client_that_never_says_hello_is_served():
    async with notes() as (wire, store):
        listed = (await wire.ask("tools/list"))["result"]["tools"]
        assert len(listed) == 27
        assert (await called(wire, "get_project_main", **P))["exists"] is False
        await called(wire, "update_project_main", **P, content="# Mine\n")
        resources = (await wire.ask("resources/list"))["result"]["resources"]
        assert [each["uri"] for each in resources] == ["knowledge://projects/My%20Project/main"]
        templates = (await wire.ask("resources/templates/list"))["result"]
        assert len(templates["resourceTemplates"]) == 3
        read = (await wire.ask("resources/read", uri=resources[0]["uri"]))["result"]
        assert read["contents"][0]["text"] == "# Mine\n"
        assert (store / MAIN).read_bytes() == b"# Mine\n"
        last = (store / "activity.log").read_text(encoding="utf-8").splitlines()[-1]
        assert json.loads(last)["method"] == "update_project_main"


@pytest.mark.parametrize("says_hello", [True, False])
async def test_there_are_no_prompts_and_completions(says_hello):
    async with notes() as (wire, _):
        if says_hello:
            capabilities = (await wire.initialize())["capabilities"]
            assert capabilities.keys() == {"tools", "resources"}
        for method in ("prompts/list", "prompts/get", "completion/complete", "no/such"):
            error = (await wire.ask(method))["error"]
            assert error["code"] == METHOD_NOT_FOUND
        assert (await called(wire, "list_todos", **P)) == {"todos": []}


async def test_ten_megabytes_are_kept_to_the_letter(monkeypatch):
    monkeypatch.setattr(processes, "MAX_LINE_BYTES", 4 * MOST_BYTES)
    unit = 'a"\\\n\t\x01\r\nü\u2028 ~~~'
    content = (unit * (MOST_CHARS // len(unit) + 1))[:MOST_CHARS]
    async with notes() as (wire, store):
        await called(wire, "update_project_main", **P, content=content)
        assert (await called(wire, "get_project_main", **P))["content"] == content
        assert (store / MAIN).read_bytes() == content.encode()
        answer = await wire.ask(
            "tools/call", name="update_project_main", arguments={**P, "content": content + "a"}
        )
        assert "at most 10485760 character(s)" in answer["error"]["message"]
        assert len(log(store)) == 2
        assert git(store, "cat-file", "-s", f"HEAD:{MAIN}") == str(len(content.encode()))


async def test_a_message_above_the_limit_is_refused_and_the_session_goes_on():
    async with notes() as (wire, store):
        await called(wire, "update_project_main", **P, content="before")
        start = b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {"x": "'
        assert await refused(wire, start + b"x" * MOST_BYTES + b'"}}', 7) == INVALID_REQUEST
        assert (await called(wire, "get_project_main", **P))["content"] == "before"
        await called(wire, "update_project_main", **P, content="after")
        assert (store / MAIN).read_bytes() == b"after"


@pytest.mark.parametrize(
    "values",
    [
        b"[" + b"[]," * (CHEAP_BYTES // 3) + b"0]",
        b"[" + b'"",' * (CHEAP_BYTES // 3) + b"0]",
        b"[" + b"0," * (CHEAP_BYTES // 2) + b"0]",
        b"[" * CHEAP_BYTES + b"]" * CHEAP_BYTES,
        b'["\\"",' + b"{}," * (CHEAP_BYTES // 3) + b'"\\\\"]',
    ],
    ids=["lists", "texts", "numbers", "depth", "quotes"],
)
async def test_a_large_message_of_many_tiny_values_is_refused(values):
    async with notes() as (wire, _):
        assert await refused(wire, message_with(values), 7) == INVALID_REQUEST
        assert (await called(wire, "get_project_main", **P))["exists"] is False


async def test_a_large_message_of_texts_is_taken():
    async with notes() as (wire, _):
        texts = json.dumps([f'"{"x" * 300}\\' for _ in range(9_000)]).encode()
        assert len(texts) > 2 * CHEAP_BYTES
        await wire.send(message_with(texts))
        answer = json.loads(await wire._stdout.receive_until(b"\n", processes.MAX_LINE_BYTES))
        assert (answer["id"], "result" in answer) == (7, True)


async def test_what_is_no_message_is_refused_and_the_session_goes_on():
    async with notes() as (wire, _):
        assert await refused(wire, b"{") == PARSE_ERROR
        assert await refused(wire, b"[]") == INVALID_REQUEST
        assert await refused(wire, b"\xff") == PARSE_ERROR
        assert (await called(wire, "get_project_main", **P))["exists"] is False

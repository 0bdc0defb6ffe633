"""Clients that are broken or mean ill, at the real service: it answers, and nobody else notices."""

import json
import sys

import anyio
import psutil
import pytest
from processes import (
    ANSWER_SECONDS,
    MAX_LINE_BYTES,
    Wire,
    foreground,
    linux_only,
    wired,
    with_import_hook,
)
from waiting import eventually
from writing import write

pytestmark = [
    pytest.mark.long,
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="uses POSIX sockets"),
]

PROJECT = {"load.py": "def parse_config(path):\n    return read_settings(path)\n"}
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
FLOOD = 2_000
MORE_THAN_ANY_PIPE_HOLDS = 100_000  # a front end could take 6,000 a second
LOOKS = 6  # in a tenth of a second
ENDLESS_BYTES = 100_000_000
MOST_GROWTH_BYTES = 40_000_000
"""Of a service's memory by what one client does. The same without bounds: hundreds of millions."""


def request(id_: object, method: str = "ping", params: object = None) -> bytes:
    message = {"jsonrpc": "2.0", "id": id_, "method": method}
    return json.dumps(message if params is None else message | {"params": params}).encode()


def call(id_: object, tool: object, arguments: object) -> bytes:
    return request(id_, "tools/call", {"name": tool, "arguments": arguments})


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


# What is sent, and the answer's error code and id. None: there is no answer.
NO_MESSAGES = {
    "no JSON": (b"GET / HTTP/1.1", PARSE_ERROR, None),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE_ERROR, None),
    "NUL bytes": (b"\0" * 100, PARSE_ERROR, None),
    "brackets": (b"[" * 100_000, PARSE_ERROR, None),
    "an id of 6,000 digits": (request(0)[:-1] + b',"id":' + b"9" * 6_000 + b"}", PARSE_ERROR, None),
    "a number": (b"5", INVALID_REQUEST, None),
    "an empty batch": (b"[]", INVALID_REQUEST, None),
    "a batch": (b"[" + request(1) + b"]", INVALID_REQUEST, None),
    "another version": (b'{"jsonrpc":"1.0","id":3,"method":"ping"}', INVALID_REQUEST, 3),
    "a method that is a number": (b'{"jsonrpc":"2.0","id":"x","method":5}', INVALID_REQUEST, "x"),
    "half a character as id": (
        b'{"jsonrpc":"2.0","id":"\\ud800","method":5}',
        INVALID_REQUEST,
        None,
    ),
    "too deep": (
        b'{"jsonrpc":"2.0","id":7,"method":"ping","params":%s}' % nested(500),
        INVALID_REQUEST,
        7,
    ),
    "parameters in an array": (request(6, "tools/call", [1]), INVALID_REQUEST, 6),
    "10 MB": (call(21, "search_index", {"query": "x" * 10_000_000}), INVALID_REQUEST, 21),
    "10 MB before the id": (
        b'{"method":"tools/call","params":{"x":"%s"},"jsonrpc":"2.0","id":"a-b"}'
        % (b"x" * 10_000_000),
        INVALID_REQUEST,
        "a-b",
    ),
    "10 MB without a method": (
        b'{"jsonrpc":"2.0","id":22,"result":{"x":"%s"}}' % (b"x" * 10_000_000),
        INVALID_REQUEST,
        None,
    ),
    "10 MB and an id inside": (
        b'{"jsonrpc":"2.0","method":"ping","params":{"x":"%s","id":23}}' % (b"x" * 10_000_000),
        INVALID_REQUEST,
        None,
    ),
    "UTF-16": (request(25).decode().encode("utf-16-le"), PARSE_ERROR, None),
    "no such method": (request(5, "no/such"), NO_METHOD, 5),
    "no parameters": (request(8, "tools/call"), INVALID_PARAMS, 8),
    "arguments in an array": (call(9, "search_index", []), INVALID_PARAMS, 9),
    "a tool that is a number": (call(10, 10, {}), INVALID_PARAMS, 10),
    "a bad initialize": (request(11, "initialize", {}), INVALID_PARAMS, 11),
    "an answer to no question": (b'{"jsonrpc":"2.0","id":70,"result":{}}', None, None),
    "an id that is no number": (
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        INVALID_REQUEST,
        None,
    ),
    "an id with a fraction": (request(1.5), INVALID_REQUEST, None),
    "an id that is null": (request(None), INVALID_REQUEST, None),
    "an object as id": (request({"a": 1}), INVALID_REQUEST, None),
    "half a character": (call(12, "search_index", {"query": "\ud83d"}), INVALID_REQUEST, 12),
    "nothing": (b"\r", None, None),
    "a bad notification": (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
        None,
        None,
    ),
}
# Arguments that are wrong: a tool error.
WRONG = [
    ("search_index", {}),
    ("search_index", {"query": None}),
    ("search_index", {"query": {"a": 1}}),
    ("search_index", {"query": "x" * 900_000}),
    ("search_index", {"query": "a", "top_k": float("nan")}),
    ("search_index", {"query": "a", "top_k": float("inf")}),
    ("search_index", {"query": "a", "top_k": 10**400}),
    ("search_index", {"query": "a", "top_k": "5; DROP"}),
    ("search_index", {"query": "a", "path": ["*.py"]}),
    ("search_index", {"query": "a", "path": "{" * 5_000}),
    ("search_index", {"query": "a", "path": "**/" * 100_000 + "a"}),
    ("search_index", {"query": "a", "language": 5}),
    ("search_index", {"query": "a", "language": "x" * 900_000}),
    ("search_index", {"query": "a", "max_tokens": -1}),
    ("trigger_index", {"force_reindex": "perhaps"}),
    ("no_such_tool", {}),
]  # fmt: skip


@pytest.fixture(scope="module", params=["relayed", "foreground"])
async def client(request, served):
    """A session that all bad messages are sent in, one after the other."""
    folder, variables = served.folder, served.variables
    arguments = [served.project] if request.param == "relayed" else foreground(served.project)
    async with wired(*arguments, cwd=folder, variables=variables) as client:
        await client.initialize()
        yield client


async def answers_to(client: Wire, message: bytes) -> list[dict]:
    """What is said between `message` and the answer to a ping that follows it."""
    await client.send(message)
    before = len(client.received)
    assert "result" in await client.ask("ping")
    return [json.loads(line) for line in client.received[before:-1]]


@pytest.mark.parametrize("name", NO_MESSAGES)
async def test_what_is_no_request_is_refused_and_the_session_goes_on(client, name):
    message, code, id_ = NO_MESSAGES[name]
    answers = await answers_to(client, message)
    assert [(a["error"]["code"], a["id"]) for a in answers] == ([(code, id_)] if code else [])


async def test_a_byte_order_mark_before_a_message_is_no_part_of_it(client):
    [answer] = await answers_to(client, b"\xef\xbb\xbf" + request(26))
    assert (answer["id"], answer["result"]) == (26, {})


@pytest.mark.parametrize(("tool", "arguments"), WRONG, ids=lambda value: str(value)[:40])
async def test_wrong_arguments_are_a_tool_error_and_the_session_goes_on(client, tool, arguments):
    answer = await client.ask("tools/call", name=tool, arguments=arguments)
    assert answer["result"]["isError"]
    assert len(str(answer)) < 20_000
    assert "result" in await client.ask("ping")


async def test_who_does_not_introduce_himself_gets_nothing(served):
    async with served.relayed() as client:
        answer = await client.ask("tools/call", name="search_index", arguments={"query": "config"})
        assert answer["error"]["code"] == INVALID_PARAMS
        assert answer["error"]["message"] == "the session has not begun; send `initialize` first"
        assert "serverInfo" in await client.initialize()
        assert (await client.call("search_index", query="config"))["results"]


@linux_only
async def test_a_line_without_end_is_not_kept(served):
    service = served.service()
    async with served.relayed() as client:
        await client.initialize()
        before = service.memory_info().rss
        piece = b"x" * 1_000_000
        for _ in range(ENDLESS_BYTES // len(piece)):
            await client.process.stdin.send(piece)
        [answer] = await answers_to(client, b"")
        assert (answer["error"]["code"], answer["id"]) == (INVALID_REQUEST, None)
        assert service.memory_info().rss - before < MOST_GROWTH_BYTES


async def test_a_client_that_floods_does_not_keep_others_from_their_answers(served):
    answered = 0
    async with served.relayed() as flooding, served.relayed() as other:
        for client in (flooding, other):
            await client.initialize()

        async def flood() -> None:
            for i in range(FLOOD):
                await flooding.send(call(f"flood {i}", "search_index", {"query": f"config {i}"}))

        async def count() -> None:
            nonlocal answered
            while answered < FLOOD:
                await flooding._stdout.receive_until(b"\n", MAX_LINE_BYTES)
                answered += 1

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(flood)
            tasks.start_soon(count)
            with anyio.fail_after(ANSWER_SECONDS):
                while not answered:  # the flood has begun
                    await anyio.lowlevel.checkpoint()
            assert (await other.call("search_index", query="config"))["results"]
            assert answered < FLOOD
            tasks.cancel_scope.cancel()


async def ask_and_ask(client: Wire, asked: list[int]) -> None:
    """Ask until nobody reads it any more, or the session is ended; `asked` gets the ids."""
    try:
        for i in range(MORE_THAN_ANY_PIPE_HOLDS):
            asked.append(i)
            await client.send(call(i, "search_index", {"query": "config " + "x" * 500}))
    except anyio.BrokenResourceError:
        return
    pytest.fail("somebody reads all that")


@linux_only
async def test_a_client_that_stops_reading_costs_little_and_hinders_nobody(place):
    async with place.relayed() as deaf, place.relayed() as other:
        for client in (deaf, other):
            await client.initialize()
        await other.call("trigger_index")
        service = place.service()
        before = service.memory_info().rss
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_ask, deaf, [])
            for i in range(5):
                write(place.project, {f"{i}.py": f"def value_{i}():\n    pass\n"})
                found = await until_found(other, f"value_{i}")
                assert found == [f"{i}.py"]
            assert service.memory_info().rss - before < MOST_GROWTH_BYTES
            assert place.report()["clients"] == 2
            tasks.cancel_scope.cancel()


async def until_found(client: Wire, word: str) -> list[str]:
    """The file of the first hit, once a hit holds `word`."""

    async def first_if_found() -> list[str] | None:
        hits = (await client.call("search_index", query=word))["results"]
        is_found = any(word in hit["extracted_text_chunk"] for hit in hits)
        return [hits[0]["file_path"]] if is_found else None

    return await eventually(first_if_found)


LITTLE_PATIENCE = """
import sys
class Hook:
    def find_spec(name, path=None, target=None):
        if name == "vector_index_mcp.serving.server":
            sys.meta_path.remove(Hook)
            import vector_index_mcp.serving.session
            vector_index_mcp.serving.session._PATIENCE_SECONDS = 0.2
sys.meta_path.insert(0, Hook)
"""


@linux_only
async def test_a_client_that_stops_reading_is_given_up_and_answered_once_it_reads_again(place):
    place.variables = with_import_hook(place.folder / "hook", LITTLE_PATIENCE, place.variables)
    async with place.relayed() as deaf:
        await deaf.initialize()
        await deaf.call("trigger_index")
        assert place.report()["clients"] == 1
        asked: list[int] = []
        bytes_taken: list[int] = []

        def takes_no_more() -> bool:
            bytes_taken.append(psutil.Process(deaf.process.pid).io_counters().read_chars)
            return bytes_taken[-LOOKS:] == bytes_taken[-1:] * LOOKS

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask_and_ask, deaf, asked)
            await eventually(lambda: place.report()["clients"] == 0)
            assert "takes no answers" in place.endpoint.log.read_text("utf-8")
            await eventually(takes_no_more)
            tasks.cancel_scope.cancel()
        answered = [(await deaf.hear())["id"] for _ in asked]
        assert sorted(answered) == asked

"""What a front end understands of the messages that it carries."""

import json

import pytest
from mcp_types import PROTOCOL_VERSION_META_KEY

from vector_index_mcp.background import messages
from vector_index_mcp.background.messages import Message


def reading(*parts):
    """A function that returns one part after another, and then the end."""
    left = [*parts, b""]
    return lambda: left.pop(0)


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([b"a\nb\n"], [b"a\n", b"b\n"]),
        ([b"a", b"b\nc", b"\n"], [b"ab\n", b"c\n"]),
        ([b"a\n\n", b"b"], [b"a\n", b"\n", b"b"]),
        ([], []),
    ],
)
def test_bytes_come_as_lines(parts, lines):
    assert list(messages.lines(reading(*parts))) == lines


def test_a_line_without_an_end_is_carried_in_pieces(monkeypatch):
    monkeypatch.setattr(messages, "LONGEST_BYTES", 3)
    read = reading(b"ab", b"cd", b"ef\ng\n")
    assert list(messages.lines(read)) == [b"abcd", b"ef\n", b"g\n"]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "ping", "id": 7}, Message("ping", "7")),
        ({"method": "ping", "id": "7"}, Message("ping", '"7"')),
        ({"method": "ping", "id": True}, Message("ping")),
        ({"method": "ping", "id": 1.5}, Message("ping")),
        ({"method": "ping", "id": None}, Message("ping")),
        ({"method": "notifications/x"}, Message("notifications/x")),
        ({"method": ["ping"], "id": 7}, Message()),
        ({"result": {}, "id": 7}, Message()),
        ([{"method": "ping", "id": 7}], Message()),
        (
            {"method": "notifications/cancelled", "params": {"requestId": 7}, "id": 8},
            Message("notifications/cancelled", cancels="7"),
        ),
        ({"method": "notifications/cancelled", "params": []}, Message("notifications/cancelled")),
        (
            {"method": "ping", "id": 7, "params": {"_meta": {PROTOCOL_VERSION_META_KEY: "x"}}},
            Message("ping", "7", names_version=True),
        ),
        ({"method": "ping", "id": 7, "params": {"_meta": "x"}}, Message("ping", "7")),
        ({"method": "prompts/get", "id": 7, "params": {"name": "x"}}, Message("prompts/get", "7")),
        (
            {"method": "tools/call", "id": 7, "params": {"name": "x"}},
            Message("tools/call", "7", tool="x"),
        ),
        ({"method": "tools/call", "id": 7, "params": {"name": 7}}, Message("tools/call", "7")),
    ],
)
def test_a_clients_line_is_understood(values, message):
    assert messages.understood(json.dumps(values).encode()) == message


PING = '{"jsonrpc": "2.0", "id": 7, "method": "ping"}'


def test_a_byte_order_mark_is_no_part_of_a_message():
    assert messages.understood(PING.encode("utf-8-sig")) == Message("ping", "7")


@pytest.mark.parametrize(
    "line", [b"", b"{", b"\xff", b"[" * 100_000, b"7", PING.encode("utf-16-le")]
)
def test_what_is_no_message_is_not_understood(line):
    assert messages.understood(line) == Message()
    assert messages.answered(messages.parsed(line)) == ""


@pytest.mark.parametrize(
    ("values", "identity"),
    [
        ({"id": 7, "result": {}}, "7"),
        ({"id": "7", "error": {}}, '"7"'),
        ({"id": None, "error": {}}, ""),
        ({"id": 7, "method": "roots/list"}, ""),
        ({"method": "notifications/progress"}, ""),
    ],
)
def test_an_answer_names_its_request(values, identity):
    assert messages.answered(values) == identity


def test_a_call_of_a_tool_is_refused_in_words_that_agents_see():
    answer = json.loads(messages.refusal(Message("tools/call", '"a"'), "gone"))
    assert answer == {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"content": [{"type": "text", "text": "gone"}], "isError": True},
    }


@pytest.mark.parametrize("names_version", [False, True])
def test_a_result_has_a_type_if_the_client_expects_one(names_version):
    asked = Message("tools/call", "7", names_version=names_version)
    answer = json.loads(messages.refusal(asked, "gone"))
    assert answer["result"].get("resultType") == ("complete" if names_version else None)


def test_another_request_is_refused_by_an_error():
    answer = json.loads(messages.refusal(Message("tools/list", "7"), "gone"))
    assert answer["error"] == {"code": -32603, "message": "gone"}

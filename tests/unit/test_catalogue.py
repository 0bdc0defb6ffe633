"""What a front end learns of the tools from the answers that it carries."""

import json

import pytest

from vector_index_mcp.background import messages
from vector_index_mcp.background.catalogue import Catalogue

LISTING = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": {"x": 1}}}
TOOLS = [
    {"name": "look", "annotations": {"readOnlyHint": True}},
    {"name": "write", "annotations": {"readOnlyHint": False}},
    {"name": "unknown"},
]
MODERN_LISTENER = {"params": {"notifications": {"toolsListChanged": True}}}


def learnt(catalogue, request, result):
    line = json.dumps(request).encode() + b"\n"
    catalogue.note(messages.understood(line), line, {"result": result})


def begun(list_changed):
    catalogue = Catalogue()
    capabilities = {"tools": {"listChanged": list_changed}}
    learnt(catalogue, {"method": "initialize", "id": 1}, {"capabilities": capabilities})
    return catalogue


def test_tools_that_say_so_only_read():
    catalogue = Catalogue()
    assert not catalogue.only_reads("look")
    learnt(catalogue, LISTING, {"tools": TOOLS})
    assert [tool["name"] for tool in TOOLS if catalogue.only_reads(tool["name"])] == ["look"]


@pytest.mark.parametrize(
    "tools", [None, 7, [7, None], [{"name": ["look"], "annotations": {"readOnlyHint": True}}]]
)
def test_what_is_no_list_of_tools_tells_nothing(tools):
    catalogue = Catalogue()
    learnt(catalogue, LISTING, {"tools": tools})
    assert not catalogue.only_reads("look")
    learnt(catalogue, {"method": "initialize", "id": 1}, {"capabilities": tools})
    assert catalogue.notes_of_change({}) == []


def test_the_client_s_own_question_is_asked_again_under_another_id():
    catalogue = Catalogue()
    assert catalogue.question == b""
    learnt(catalogue, LISTING, {"tools": TOOLS})
    question = json.loads(catalogue.question)
    assert question.pop("id") != LISTING["id"]
    assert question == {key: value for key, value in LISTING.items() if key != "id"}
    assert not catalogue.differs({"result": {"tools": TOOLS}})
    assert catalogue.differs({"result": {"tools": TOOLS[:1]}})
    assert not catalogue.differs({"error": {"code": -1}})


@pytest.mark.parametrize(("list_changed", "notes"), [(True, 1), (False, 0), (None, 0), ("yes", 0)])
def test_a_change_is_told_to_a_client_that_was_promised_to_hear_of_it(list_changed, notes):
    told = begun(list_changed).notes_of_change({})
    whole = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    assert [json.loads(line) for line in told] == [whole] * notes


@pytest.mark.parametrize(
    ("asked", "is_told"),
    [(MODERN_LISTENER, True), ({"params": {"notifications": {}}}, False), ({"params": 7}, False)],
)
def test_a_change_is_told_to_whoever_listens_for_it(asked, is_told):
    told = Catalogue().notes_of_change({'"a"': json.dumps(asked).encode()})
    subscriptions = [json.loads(line)["params"]["_meta"] for line in told]
    assert subscriptions == [{"io.modelcontextprotocol/subscriptionId": "a"}] * is_told

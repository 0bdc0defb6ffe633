"""The MCP tools and resources of the notes: a layer between the protocol and the service.

Names, arguments and texts are the contract's. These functions answer each request before the MCP
library sees it, for two reasons: the contract has its own messages for wrong arguments, and it
serves clients that never send `initialize`.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic_core import PydanticSerializationError, to_json

from vector_index_mcp.notes import resources
from vector_index_mcp.notes.activity import Call
from vector_index_mcp.notes.arguments import WrongArguments, checked, schema_of
from vector_index_mcp.notes.calls import Answer
from vector_index_mcp.notes.guide import TOOLS
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.protocol import CACHE, Result, answer_before, told_of_ignored

if TYPE_CHECKING:
    from vector_index_mcp.notes.service import Notes

GetService = Callable[[], Awaitable["Notes"]]
_Answer = Callable[[GetService, Mapping[str, Any]], Awaitable[Result]]


def register(server: MCPServer[Any], get_service: GetService) -> None:
    """Offer the tools and resources on `server`.

    Args:
        server: The server to register them with.
        get_service: Waits for the running service. The service is loaded after the first answer,
            so that a client can list the tools before the service exists.
    """
    methods = {method: partial(make, get_service) for method, make in _METHODS.items()}
    answer_before(server, methods, "prompts")


async def _list_tools(_: GetService, __: Mapping[str, Any]) -> Result:
    tools = [
        {
            "name": name,
            "title": words.title,
            "description": words.description,
            "inputSchema": schema_of(name),
            "annotations": {
                "readOnlyHint": words.reads_only,
                "destructiveHint": words.destroys,
                "openWorldHint": False,
            },
        }
        for name, words in TOOLS.items()
    ]
    return {**CACHE, "tools": tools}


async def _call_tool(get_service: GetService, params: Mapping[str, Any]) -> Result:
    name, given = params.get("name"), params.get("arguments")
    if not isinstance(name, str):
        raise MCPError(INVALID_PARAMS, "the tool's name is missing")
    call = Call(name, given if isinstance(given, dict) else {})
    ignored: list[str] = []
    try:
        arguments = checked(name, given, ignored)
    except WrongArguments as wrong:
        notes = await get_service()
        await notes.note(call.entry(str(wrong), "INVALID_INPUT"))
        raise MCPError(INVALID_PARAMS, str(wrong)) from None
    answer = await (await get_service()).answer(call, arguments)
    if told := told_of_ignored(ignored):
        answer = {**answer, "note": ". ".join(filter(None, [told, answer.get("note", "")]))}
    text, values = _texted(answer)
    return {"content": [{"type": "text", "text": text}], "structuredContent": values}


def _texted(answer: Answer) -> tuple[str, Answer]:
    """Return the answer as JSON text, and as the values that this text contains."""
    try:
        # Python's own encoder takes ten times as long when it indents.
        return to_json(answer, indent=2).decode(), answer
    except PydanticSerializationError:  # a file name need not be valid Unicode
        text = json.dumps(answer, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode()
        values: Answer = json.loads(text)
        return text, values


async def _list_templates(_: GetService, __: Mapping[str, Any]) -> Result:
    templates = [
        {
            "name": name,
            "uriTemplate": address,
            "title": title,
            "description": description,
            "mimeType": kind,
        }
        for name, (address, title, description, kind) in resources.TEMPLATES.items()
    ]
    return {**CACHE, "resourceTemplates": templates}


async def _list_resources(get_service: GetService, _: Mapping[str, Any]) -> Result:
    notes = await get_service()
    try:
        found = await anyio.to_thread.run_sync(resources.addresses, notes.store)
    except Refusal as refusal:
        raise MCPError(INVALID_PARAMS, str(refusal)) from None
    listed = [{"uri": address, "name": name, "mimeType": kind} for address, name, kind in found]
    return {**CACHE, "resources": listed}


async def _read_resource(get_service: GetService, params: Mapping[str, Any]) -> Result:
    address = params.get("uri")
    if not isinstance(address, str):
        raise MCPError(INVALID_PARAMS, "the resource's address (uri) is missing")
    notes = await get_service()
    try:
        text, kind = await notes.read(address)
    except resources.UnknownResource:
        message = f"MCP error {INVALID_PARAMS}: Resource {address} not found"
        raise MCPError(INVALID_PARAMS, message) from None
    except Refusal as refusal:
        text, kind = str(refusal), "text/plain"
    text = text.encode("utf-8", "replace").decode()
    return {**CACHE, "contents": [{"uri": address, "mimeType": kind, "text": text}]}


_METHODS: Mapping[str, _Answer] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}

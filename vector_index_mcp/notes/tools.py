"""The MCP tools and resources of the notes: a layer between the protocol and the service.

Names, arguments and texts are the contract's, which has its own messages for wrong arguments.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from vector_index_mcp import protocol
from vector_index_mcp.errors import encodable
from vector_index_mcp.notes import resources
from vector_index_mcp.notes.activity import Call
from vector_index_mcp.notes.arguments import WrongArguments, checked, schema_of
from vector_index_mcp.notes.guide import TOOLS
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.protocol import Request, Result, cacheable, told_of_ignored

if TYPE_CHECKING:
    from vector_index_mcp.notes.service import Notes

GetService = Callable[[], Awaitable["Notes"]]


def register(server: MCPServer[Any], get_service: GetService) -> None:
    """Offer the tools and resources on `server`.

    Args:
        server: The server to register them with.
        get_service: Waits for the running service. The service is loaded after the first answer,
            so that a client can list the tools before the service exists.
    """
    methods = {method: partial(make, get_service) for method, make in _METHODS.items()}
    protocol.answer_before(server, methods, offers=("tools", "resources"))


async def _list_tools(_: GetService, __: Request) -> Result:
    return cacheable(
        tools=[
            protocol.tool(name, words.title, words.description, schema_of(name), words.annotations)
            for name, words in TOOLS.items()
        ]
    )


async def _call_tool(get_service: GetService, request: Request) -> Result:
    name, given = request.tool, request.arguments
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
    return protocol.answered_in_json(answer)


async def _list_templates(_: GetService, __: Request) -> Result:
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
    return cacheable(resourceTemplates=templates)


async def _list_resources(get_service: GetService, _: Request) -> Result:
    notes = await get_service()
    try:
        found = await anyio.to_thread.run_sync(resources.addresses, notes.store)
    except Refusal as refusal:
        raise MCPError(INVALID_PARAMS, str(refusal)) from None
    listed = [
        {"uri": address, "name": encodable(name), "mimeType": kind} for address, name, kind in found
    ]
    return cacheable(resources=listed)


async def _read_resource(get_service: GetService, request: Request) -> Result:
    address = request.text("uri", "the address of a resource (uri)")
    notes = await get_service()
    try:
        text, kind = await notes.read(address)
    except resources.UnknownResource:
        message = f"MCP error {INVALID_PARAMS}: Resource {address} not found"
        raise MCPError(INVALID_PARAMS, message) from None
    except Refusal as refusal:
        text, kind = str(refusal), "text/plain"
    return cacheable(contents=[{"uri": address, "mimeType": kind, "text": encodable(text)}])


_METHODS: Mapping[str, Callable[[GetService, Request], Awaitable[Result]]] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}

"""The three MCP tools, which only translate between the protocol and the service."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel

from vector_index_mcp.codebase import arguments, rendering, text, wire
from vector_index_mcp.codebase.arguments import (
    SearchArguments,
    StatusArguments,
    TriggerArguments,
    WorkspaceArguments,
)
from vector_index_mcp.codebase.hits import SearchResult
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.codebase.triggering import PATIENCE_SECONDS, triggered
from vector_index_mcp.errors import QueryError, VectorIndexError, sentence
from vector_index_mcp.protocol import (
    Report,
    Request,
    Result,
    Tool,
    answer_before,
    answered,
    listed,
    refused,
)

if TYPE_CHECKING:  # the service imports lancedb, which takes a second
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.codebase.workspace import Workspace

GetService = Callable[[], Awaitable[Any]]
"""Waits for the service that answers, and returns it: a codebase, or a workspace."""

_USE = """\
search_index: your first step to find code, configuration or documentation here. Ask \
for what the code does ("where are retries with backoff handled"), or name an identifier in any \
spelling ("get_user_name", "HttpClient"), or both. It finds by meaning and by word at once, so it \
replaces several rounds of grep. Use grep afterwards for a complete list of literal occurrences.
get_status: the progress of indexing, and why something is not found (skipped files, a missing \
model).
trigger_index: rarely needed, since the server follows changes by itself. Call it when get_status \
shows an error, or with force_reindex=true to rebuild the index.\
"""
INSTRUCTIONS = f"""\
This server keeps one software project indexed: every saved file is searchable within a second.

{_USE}"""


def instructions_for(projects: Sequence[str]) -> str:
    """The server's instructions for agents if it searches several projects."""
    return (
        f"This server keeps {len(projects)} software projects indexed and searches them as one: "
        f"{', '.join(projects)}. Every saved file is searchable within a second. The paths of "
        f"results are absolute; project limits a search to one of them.\n\n{_USE}"
    )


def register(
    server: MCPServer[Any], get_service: GetService, tools: Mapping[str, Tool] | None = None
) -> None:
    """Offer the tools on `server`.

    Args:
        server: The server that offers them.
        get_service: Waits for the running service. The service is loaded after the server's first
            answer, so clients can list the tools before it exists.
        tools: `TOOLS` (the default), or `OF_WORKSPACE`.
    """
    offered = TOOLS if tools is None else tools

    async def list_tools(_: Request) -> Result:
        return listed(offered, arguments.schema_of)

    async def call_tool(request: Request) -> Result:
        return await _called(offered, get_service, request)

    methods = {"tools/list": list_tools, "tools/call": call_tool}
    answer_before(server, methods, to_strangers=False)


async def _called(tools: Mapping[str, Tool], get_service: GetService, request: Request) -> Result:
    """The answer to the call of a tool. Errors that an agent can correct are results, too."""
    name, given = request.tool, request.arguments
    if not isinstance(given, dict):
        raise MCPError(INVALID_PARAMS, "arguments must be an object")
    if name not in tools:
        return refused(f"Unknown tool: {name[:100]!a}; there are {', '.join(tools)}")
    called = tools[name]
    try:
        asked = arguments.checked(name, called.arguments, given)
    except QueryError as error:
        return refused(str(error))
    try:
        return await called.answer(await get_service(), asked, request.report)
    except VectorIndexError as error:
        return refused(REMEDIES.message(error))


# -- the tools of several projects --------------------------------------------------------------


async def _search_all(workspace: "Workspace", asked: WorkspaceArguments, _: Report) -> Result:
    return _found(await workspace.search(asked), asked)


async def _status_of_all(workspace: "Workspace", asked: StatusArguments, _: Report) -> Result:
    statuses = await workspace.status(asked)
    return answered(text.of_projects(statuses), _each(workspace, statuses))


async def _trigger_all(workspace: "Workspace", asked: TriggerArguments, _: Report) -> Result:
    results = await workspace.trigger(asked)
    return answered(text.of_triggered(results), _each(workspace, results))


def _each(workspace: "Workspace", results: Mapping[str, BaseModel | Exception]) -> Result:
    projects = [
        {"project_path": str(workspace.projects[name]), "error_message": sentence(result)}
        if isinstance(result, Exception)
        else result.model_dump(mode="json")
        for name, result in results.items()
    ]
    return {"projects": projects}


# -- the tools -------------------------------------------------------------------------------


async def _search(codebase: "Codebase", asked: SearchArguments, _: Report) -> Result:
    answer = await codebase.search(asked.query, asked.top_k, **asked.limits)
    result = rendering.search_result(
        answer, asked.max_tokens, asked.detail, of_a_miss=asked.detail_of_a_miss
    )
    return _found(result, asked)


def _found(result: SearchResult, asked: SearchArguments) -> Result:
    structured = result.model_dump(mode="json") if asked.verbose else result.compact()
    return answered(text.of_search(result), structured)


async def _status(codebase: "Codebase", _: StatusArguments, __: Report) -> Result:
    status = await wire.index_status(codebase)
    return answered(text.of_status(status), status.model_dump(mode="json"))


async def _trigger(codebase: "Codebase", asked: TriggerArguments, report: Report) -> Result:
    result = await triggered(codebase, report, force_reindex=asked.force_reindex)
    return answered(text.of_trigger(result), result.model_dump(mode="json"))


TOOLS: Mapping[str, Tool] = {
    "search_index": Tool(
        "Search the project",
        "Find the places in this project that answer a question or hold an identifier. Returns "
        "chunks of files with path, line range and exact text, best first. Good queries: "
        '"where is the retry delay computed", "parse_config", "websocket reconnect after timeout".',
        SearchArguments,
        _search,
    ),
    "get_status": Tool(
        "State of the index",
        "Show the progress of indexing, what the index holds and skips, and any errors. "
        "status is INITIALIZING, SCANNING (being brought up to date; searches work), WATCHING (up "
        "to date, changes are followed; meaning covers the chunks that are embedded so far) or "
        "ERROR (error_message says what to do).",
        StatusArguments,
        _status,
    ),
    "trigger_index": Tool(
        "Bring the index up to date",
        "Compare the whole project with the index and index what differs. Not needed after edits: "
        "the server follows changes by itself. Joins the run that is under way, if there is one. "
        f"Answers when the index is complete, or after {PATIENCE_SECONDS:.0f} seconds while the "
        "work goes on in the background.",
        TriggerArguments,
        _trigger,
        {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    ),
}
"""The tools by name, in the order in which agents read them."""
OF_WORKSPACE: Mapping[str, Tool] = {
    "search_index": replace(
        TOOLS["search_index"],
        title="Search the projects",
        description=TOOLS["search_index"].description.replace("this project", "these projects"),
        arguments=WorkspaceArguments,
        answer=_search_all,
    ),
    "get_status": replace(TOOLS["get_status"], answer=_status_of_all),
    "trigger_index": replace(
        TOOLS["trigger_index"], title="Bring the indexes up to date", answer=_trigger_all
    ),
}
"""The same tools for a server of several projects."""

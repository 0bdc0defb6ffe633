"""The two MCP tools of the datasets: a layer between the protocol and the service."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer

from vector_index_mcp import protocol
from vector_index_mcp.checks import shown
from vector_index_mcp.datasets import arguments
from vector_index_mcp.datasets.arguments import LIST, SEARCH, WrongArguments
from vector_index_mcp.datasets.guide import TOOLS
from vector_index_mcp.datasets.refusal import Refusal
from vector_index_mcp.protocol import Request, Result, refused

if TYPE_CHECKING:  # the service imports LanceDB
    from vector_index_mcp.datasets.service import Datasets

GetService = Callable[[], Awaitable["Datasets"]]
_SCORE_DIGITS = 4


def register(server: MCPServer[Any], get_service: GetService) -> None:
    """Offer the tools on `server`.

    Args:
        server: The server to register them with.
        get_service: Waits for the running service. The service is loaded after the first answer,
            so that a client can list the tools before the service exists.
    """

    async def list_tools(_: Request) -> Result:
        return protocol.cacheable(
            tools=[
                protocol.tool(
                    name, title, description, arguments.schema_of(name), protocol.READ_ONLY
                )
                for name, (title, description) in TOOLS.items()
            ]
        )

    async def call_tool(request: Request) -> Result:
        return await _called(get_service, request.tool, request.arguments)

    methods = {"tools/list": list_tools, "tools/call": call_tool}
    protocol.answer_before(server, methods, offers=["tools"])


async def _called(get_service: GetService, name: str, given: object) -> Result:
    """Answer a tool call. An error becomes a result with `isError`, not a protocol error."""
    try:
        if name == SEARCH:
            asked = arguments.asked(given)
            return protocol.answered_in_json(await _search(await get_service(), asked))
        if name == LIST:
            with_errors = arguments.includes_errors(given)
            return protocol.answered_in_json(
                await _list(await get_service(), with_errors=with_errors)
            )
    except WrongArguments as wrong:
        return refused(str(wrong))
    except Refusal as refusal:
        return refused(f"Search failed: {refusal}")
    return refused(f"Unknown tool: {shown(name)}")


async def _search(datasets: "Datasets", asked: arguments.Asked) -> Result:
    found = await datasets.search(asked)
    are_several = len(asked.ids) != 1
    return {
        "results": [
            {
                **({"dataset": result.dataset} if are_several else {}),
                "score": round(result.score, _SCORE_DIGITS),
                "title": result.title,
                "path": result.path,
                "snippet": result.snippet,
            }
            for result in found.results
        ],
        "metadata": {
            "dataset": ",".join(asked.ids) or arguments.EVERYTHING,
            "query": asked.query,
            "resultCount": len(found.results),
            "durationMs": found.milliseconds,
            **({"note": "; ".join(found.notes)} if found.notes else {}),
        },
    }


async def _list(datasets: "Datasets", *, with_errors: bool) -> Result:
    from vector_index_mcp.datasets import listing  # imports LanceDB, which is loaded by now

    ready, errors = await datasets.listed()
    listed = [listing.ready(dataset) for dataset in ready]
    if with_errors:
        listed += [
            listing.failed(each) | {"timestamp": each.when.isoformat(timespec="milliseconds")}
            for each in errors
        ]
    return {
        "datasets": sorted(listed, key=lambda each: each["id"]),
        "metadata": {
            "totalDatasets": len(ready) + len(errors),
            "readyDatasets": len(ready),
            "errorDatasets": len(errors),
            **({"note": datasets.lack} if datasets.lack else {}),
        },
    }

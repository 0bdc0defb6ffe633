"""The two MCP tools of the datasets: a layer between the protocol and the service.

These functions answer each request before the MCP library sees it, because the contract has its own
messages for wrong arguments.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from vector_index_mcp.checks import shown
from vector_index_mcp.datasets import arguments
from vector_index_mcp.datasets.arguments import LIST, SEARCH, WrongArguments
from vector_index_mcp.datasets.guide import TOOLS
from vector_index_mcp.datasets.refusal import Refusal
from vector_index_mcp.protocol import CACHE, Result, answer_before

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

    async def list_tools(_: Mapping[str, Any]) -> Result:
        return {**CACHE, "tools": _listed()}

    async def call_tool(params: Mapping[str, Any]) -> Result:
        if not isinstance(params.get("name"), str):
            raise MCPError(INVALID_PARAMS, "the tool's name is missing")
        return await _called(get_service, params["name"], params.get("arguments"))

    methods = {"tools/list": list_tools, "tools/call": call_tool}
    answer_before(server, methods, "prompts", "resources")


def _listed() -> list[Result]:
    return [
        {
            "name": name,
            "title": title,
            "description": description,
            "inputSchema": arguments.schema_of(name),
            "annotations": {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False},
        }
        for name, (title, description) in TOOLS.items()
    ]


async def _called(get_service: GetService, name: str, given: object) -> Result:
    """Answer a tool call. An error becomes a result with `isError`, not a protocol error."""
    try:
        if name == SEARCH:
            asked = arguments.asked(given)
            return _answer(await _search(await get_service(), asked))
        if name == LIST:
            with_errors = arguments.includes_errors(given)
            return _answer(await _list(await get_service(), with_errors=with_errors))
    except WrongArguments as wrong:
        return _error(str(wrong))
    except Refusal as refusal:
        return _error(f"Search failed: {refusal}")
    return _error(f"Unknown tool: {shown(name)}")


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


def _answer(values: Result) -> Result:
    text = json.dumps(values, indent=2, ensure_ascii=False).encode("utf-8", "replace").decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": values}


def _error(words: str) -> Result:
    words = words.encode("utf-8", "replace").decode()
    return {"content": [{"type": "text", "text": words}], "isError": True}

"""The six MCP tools, the resource and the prompt: they translate between protocol and service.

The contract fixes names, arguments, defaults and texts, also those of errors.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import ValidationError

from vector_index_mcp import protocol
from vector_index_mcp.documents import arguments, text
from vector_index_mcp.documents.guide import GUIDE
from vector_index_mcp.documents.limits import line, whole
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.wire import Document, Results
from vector_index_mcp.errors import VectorIndexError, quoted
from vector_index_mcp.protocol import Request, Result, Tool, cacheable, refused, told_of_ignored

if TYPE_CHECKING:  # the service imports lancedb, which takes a second
    from vector_index_mcp.documents.service import Documents

GetService = Callable[[], Awaitable["Documents"]]
_Answer = Callable[["Documents", Any], Awaitable[Result]]

_DOCUMENT = {
    "name": "document",
    "title": "QMD Document",
    "uriTemplate": "qmd://{+path}",
    "description": (
        "A markdown document from your QMD knowledge base. Use search tools to discover documents."
    ),
    "mimeType": "text/markdown",
}
_PROMPT = {
    "name": "query",
    "title": "QMD Query Guide",
    "description": "How to effectively search your knowledge base with QMD",
}


def register(server: MCPServer[Any], get_service: GetService) -> None:
    """Offer tools, resource and prompt on `server`.

    Args:
        server: The server to register with.
        get_service: Waits for the running service and returns it. The service is loaded after the
            first answer, so tools can be listed before it exists.
    """
    methods = {method: partial(make, get_service) for method, make in _METHODS.items()}
    protocol.answer_before(server, methods)


async def _list_tools(_: GetService, __: Request) -> Result:
    return protocol.listed(TOOLS, arguments.schema_of)


async def _list_prompts(_: GetService, __: Request) -> Result:
    return cacheable(prompts=[_PROMPT])


async def _list_templates(_: GetService, __: Request) -> Result:
    return cacheable(resourceTemplates=[_DOCUMENT])


async def _list_resources(_: GetService, __: Request) -> Result:
    return cacheable(resources=[])


async def _get_prompt(_: GetService, request: Request) -> Result:
    name = request.text("name", "the name of a prompt")
    if name != _PROMPT["name"]:
        raise MCPError(INVALID_PARAMS, f"Unknown prompt: {quoted(name)}")
    return {"messages": [{"role": "user", "content": protocol.text(GUIDE)}]}


async def _call_tool(get_service: GetService, request: Request) -> Result:
    """Answer the call of a tool; an error is a result too, not an error of the protocol."""
    name, given = request.tool, request.arguments
    if name not in TOOLS:
        return refused(arguments.unknown(name))
    tool = TOOLS[name]
    try:
        asked = tool.arguments.model_validate(given)
    except ValidationError as error:
        return refused(arguments.refusal(name, error))
    try:
        answer = await tool.answer(await get_service(), asked)
    except VectorIndexError as error:
        return refused(REMEDIES.message(error))
    told = told_of_ignored(arguments.ignored(tool.arguments, given))
    return _noted(answer, told) if told else answer


def _noted(answer: Result, words: str) -> Result:
    """Return an answer with a note, for which the contract has no place, behind its own."""
    noted = answer | {"content": [*answer["content"], protocol.text(f"{words}.")]}
    if values := answer.get("structuredContent"):
        note = ". ".join(filter(None, [values.get("note"), words]))
        noted["structuredContent"] = values | {"note": note}
    return noted


# -- the tools -------------------------------------------------------------------------------


def _searching(mode: str) -> _Answer:
    async def answer(documents: "Documents", asked: arguments.SearchArguments) -> Result:
        from vector_index_mcp.documents import rendering

        found = await rendering.answer_to(documents, asked, mode)
        items = rendering.items_of(found)
        structured = Results(results=items).model_dump(mode="json")
        content = [protocol.text(text.of_results(items, asked.query))]
        if found.note:  # the contract has no place for it, but nobody may believe such an answer
            structured["note"] = found.note
            content.append(protocol.text(f"{found.note}."))
        return {"content": content, "structuredContent": structured}

    return answer


async def _get(documents: "Documents", asked: arguments.GetArguments) -> Result:
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(
        line(asked.from_line), line(asked.max_lines), is_numbered=asked.line_numbers
    )
    found = await retrieval.get(documents, asked.file, part)
    if isinstance(found, retrieval.Missing):
        return refused(found.sentence)
    content = [_resource(rendering.document_of(found))]
    if found.note:  # the contract has no place for it, but an empty text looks like an empty file
        content.append(protocol.text(f"{found.note}."))
    return {"content": content}


async def _multi_get(documents: "Documents", asked: arguments.MultiGetArguments) -> Result:
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(None, line(asked.max_lines), is_numbered=asked.line_numbers)
    many = await retrieval.multi_get(documents, asked.pattern, part, whole(asked.max_bytes))
    content = [protocol.text("Errors:\n" + "\n".join(many.errors))] if many.errors else []
    for each in many.documents:
        shown = rendering.part_of(each)
        content.append(
            _resource(shown) if isinstance(shown, Document) else protocol.text(shown.text)
        )
    return {"content": content, "isError": not many.documents}


async def _status(documents: "Documents", _: arguments.StatusArguments) -> Result:
    from vector_index_mcp.documents import rendering

    state = await documents.look()
    status, problems = rendering.status_of(state), rendering.problems_of(state)
    structured = status.camel() | ({"problems": problems} if problems else {})
    return protocol.answered(text.of_status(status, problems), structured)


def _resource(document: Document) -> Result:
    return {"type": "resource", "resource": document.model_dump(mode="json")}


async def _read_resource(get_service: GetService, request: Request) -> Result:
    """Return a document as a resource, with numbered lines; if there is none, its text says so."""
    from vector_index_mcp.documents import rendering, retrieval
    from vector_index_mcp.documents.uris import SCHEME, key_of

    uri = request.text("uri", "the address of a resource (uri)")
    asked = uri if uri.startswith(SCHEME) else ""
    try:
        found = await retrieval.get(await get_service(), asked, retrieval.Part(is_numbered=True))
    except VectorIndexError as error:
        return cacheable(contents=[{"uri": uri, "text": REMEDIES.message(error)}])
    if isinstance(found, retrieval.Missing):
        return cacheable(contents=[{"uri": uri, "text": f"Document not found: {key_of(uri)}"}])
    return cacheable(contents=[rendering.document_of(found).model_dump(mode="json") | {"uri": uri}])


TOOLS: Mapping[str, Tool] = {
    "search": Tool(
        "Search (BM25)",
        "Find documents by their words: names, exact terms, error messages. Words are compared "
        "without their endings; a document with more of them, or with rarer ones, comes first.",
        arguments.SearchArguments,
        _searching("search"),
    ),
    "vsearch": Tool(
        "Vector Search (Semantic)",
        "Find documents by meaning, even if they use other words than the query.",
        arguments.MeaningArguments,
        _searching("vsearch"),
    ),
    "query": Tool(
        "Hybrid Query (Best Quality)",
        "Find documents by words and by meaning together: the first choice for a question.",
        arguments.QueryArguments,
        _searching("query"),
    ),
    "get": Tool(
        "Get Document",
        "Read one document as it is now, or a part of it: by path, by the end of a path, or by a "
        "docid (#abc123) from a result. If there is no such document, the answer names similar "
        "ones.",
        arguments.GetArguments,
        _get,
    ),
    "multi_get": Tool(
        "Multi-Get Documents",
        "Read several documents at once: by a glob (journals/2025-05*.md) or a list with commas. "
        "Large documents are skipped; the answer lists them.",
        arguments.MultiGetArguments,
        _multi_get,
    ),
    "status": Tool(
        "Index Status",
        "Show the collections, how many documents they have, and how many lack vectors.",
        arguments.StatusArguments,
        _status,
    ),
}
"""The tools by name."""
_METHODS: Mapping[str, Callable[[GetService, Request], Awaitable[Result]]] = {
    "tools/list": _list_tools,
    "tools/call": _call_tool,
    "prompts/list": _list_prompts,
    "prompts/get": _get_prompt,
    "resources/list": _list_resources,
    "resources/templates/list": _list_templates,
    "resources/read": _read_resource,
}

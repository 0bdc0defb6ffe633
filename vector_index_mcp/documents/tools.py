"""The six MCP tools, the resource and the prompt: they translate between protocol and service.

The contract fixes names, arguments, defaults and texts, also those of errors. So we check the
arguments of a call ourselves, before the MCP library would.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, ValidationError

from vector_index_mcp.documents import arguments, text
from vector_index_mcp.documents.guide import GUIDE
from vector_index_mcp.documents.limits import line, whole
from vector_index_mcp.documents.remedies import REMEDIES
from vector_index_mcp.documents.wire import Document, Results
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.protocol import CACHE, Result, enveloped, told_of_ignored, values_of

if TYPE_CHECKING:  # the service imports lancedb, which takes a second
    from vector_index_mcp.documents.service import Documents

GetService = Callable[[], Awaitable["Documents"]]
_Answer = Callable[["Documents", Any], Awaitable[Result]]

_URI = "qmd://{+path}"
_PROMPT = "query"
_DOCUMENT = (
    "A markdown document from your QMD knowledge base. Use search tools to discover documents."
)


@dataclass(frozen=True, slots=True)
class _Tool:
    """A tool as it is listed, and the function that answers its calls."""

    title: str
    description: str
    arguments: type[BaseModel]
    answer: _Answer


def register(server: MCPServer[Any], get_service: GetService) -> None:
    """Offer tools, resource and prompt on `server`.

    Args:
        server: The server to register with.
        get_service: Waits for the running service and returns it. The service is loaded after the
            first answer, so tools can be listed before it exists.
    """
    for name, tool in TOOLS.items():
        server.add_tool(
            _listed_only,
            name=name,
            title=tool.title,
            description=tool.description,
            annotations=ToolAnnotations(
                read_only_hint=True, idempotent_hint=True, open_world_hint=False
            ),
        )

    @server.resource(
        _URI,
        name="document",
        title="QMD Document",
        description=_DOCUMENT,
        mime_type="text/markdown",
    )
    async def document(path: str) -> str:
        raise AssertionError("the middleware answers this before")

    @server.prompt(
        name=_PROMPT,
        title="QMD Query Guide",
        description="How to effectively search your knowledge base with QMD",
    )
    def query_guide() -> str:
        raise AssertionError("the middleware answers this before")

    async def answer(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        params = ctx.params or {}
        if ctx.method == "tools/list":
            listed = await call_next(ctx)
            return _with_schemas(listed)
        if ctx.method == "tools/call" and isinstance(params.get("name"), str):
            given = params.get("arguments")
            given = {} if given is None else given
            return enveloped(ctx, await _called(get_service, params["name"], given))
        if ctx.method == "prompts/list":
            return _without_arguments(await call_next(ctx))
        if ctx.method == "prompts/get" and params.get("name") == _PROMPT:
            return enveloped(ctx, {"messages": [{"role": "user", "content": _text(GUIDE)}]})
        if ctx.method == "resources/read" and isinstance(params.get("uri"), str):
            read = await _read(get_service, params["uri"])
            return enveloped(ctx, CACHE | read)
        return await call_next(ctx)

    server.middleware.append(answer)


async def _listed_only() -> None:
    """Stand in for a tool; never called, since the middleware answers calls before."""


def _with_schemas(listed: Any) -> Result:
    """Return the list of tools with the schemas of the contract."""
    values = values_of(listed)
    for tool in values["tools"]:
        tool["inputSchema"] = arguments.schema_of(TOOLS[tool["name"]].arguments)
        tool.pop("outputSchema", None)
    return values


def _without_arguments(listed: Any) -> Result:
    """Return the list of prompts as in the contract: the one that there is takes no arguments."""
    values = values_of(listed)
    for prompt in values["prompts"]:
        prompt.pop("arguments", None)
    return values


async def _called(get_service: GetService, name: str, given: object) -> Result:
    """Answer the call of a tool; an error is a result too, not an error of the protocol."""
    if name not in TOOLS:
        return _error(arguments.unknown(name))
    tool = TOOLS[name]
    try:
        asked = tool.arguments.model_validate(given)
    except ValidationError as error:
        return _error(arguments.refusal(name, error))
    try:
        answer = await tool.answer(await get_service(), asked)
    except VectorIndexError as error:
        return _error(REMEDIES.message(error))
    told = told_of_ignored(arguments.ignored(tool.arguments, given))
    return _noted(answer, told) if told else answer


def _noted(answer: Result, words: str) -> Result:
    """Return an answer with a note, for which the contract has no place, behind its own."""
    noted = answer | {"content": [*answer["content"], _text(f"{words}.")]}
    if values := answer.get("structuredContent"):
        note = ". ".join(filter(None, [values.get("note"), words]))
        noted["structuredContent"] = values | {"note": note}
    return noted


def _error(words: str) -> Result:
    return {"content": [_text(words)], "isError": True}


def _text(words: str) -> Result:
    return {"type": "text", "text": words.encode("utf-8", "replace").decode()}


# -- the tools -------------------------------------------------------------------------------


def _searching(mode: str) -> _Answer:
    async def answer(documents: "Documents", asked: arguments.SearchArguments) -> Result:
        from vector_index_mcp.documents import rendering

        found = await rendering.answer_to(documents, asked, mode)
        items = rendering.items_of(found)
        structured = Results(results=items).model_dump(mode="json")
        content = [_text(text.of_results(items, asked.query))]
        if found.note:  # the contract has no place for it, but nobody may believe such an answer
            structured["note"] = found.note
            content.append(_text(f"{found.note}."))
        return {"content": content, "structuredContent": structured}

    return answer


async def _get(documents: "Documents", asked: arguments.GetArguments) -> Result:
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(
        line(asked.from_line), line(asked.max_lines), is_numbered=asked.line_numbers
    )
    found = await retrieval.get(documents, asked.file, part)
    if isinstance(found, retrieval.Missing):
        return _error(found.sentence)
    content = [_resource(rendering.document_of(found))]
    if found.note:  # the contract has no place for it, but an empty text looks like an empty file
        content.append(_text(f"{found.note}."))
    return {"content": content}


async def _multi_get(documents: "Documents", asked: arguments.MultiGetArguments) -> Result:
    from vector_index_mcp.documents import rendering, retrieval

    part = retrieval.Part(None, line(asked.max_lines), is_numbered=asked.line_numbers)
    many = await retrieval.multi_get(documents, asked.pattern, part, whole(asked.max_bytes))
    content = [_text("Errors:\n" + "\n".join(many.errors))] if many.errors else []
    for each in many.documents:
        shown = rendering.part_of(each)
        content.append(_resource(shown) if isinstance(shown, Document) else _text(shown.text))
    return {"content": content, "isError": not many.documents}


async def _status(documents: "Documents", _: arguments.StatusArguments) -> Result:
    from vector_index_mcp.documents import rendering

    state = await documents.look()
    status, problems = rendering.status_of(state), rendering.problems_of(state)
    structured = status.camel() | ({"problems": problems} if problems else {})
    return {"content": [_text(text.of_status(status, problems))], "structuredContent": structured}


def _resource(document: Document) -> Result:
    return {"type": "resource", "resource": document.model_dump(mode="json")}


async def _read(get_service: GetService, uri: str) -> Result:
    """Return a document as a resource, with numbered lines; if there is none, its text says so."""
    from vector_index_mcp.documents import rendering, retrieval
    from vector_index_mcp.documents.uris import SCHEME, key_of

    asked = uri if uri.startswith(SCHEME) else ""
    try:
        found = await retrieval.get(await get_service(), asked, retrieval.Part(is_numbered=True))
    except VectorIndexError as error:
        return {"contents": [{"uri": uri, "text": REMEDIES.message(error)}]}
    if isinstance(found, retrieval.Missing):
        return {"contents": [{"uri": uri, "text": f"Document not found: {key_of(uri)}"}]}
    return {"contents": [rendering.document_of(found).model_dump(mode="json") | {"uri": uri}]}


TOOLS: Mapping[str, _Tool] = {
    "search": _Tool(
        "Search (BM25)",
        "Find documents by their words: names, exact terms, error messages. Words are compared "
        "without their endings; a document with more of them, or with rarer ones, comes first.",
        arguments.SearchArguments,
        _searching("search"),
    ),
    "vsearch": _Tool(
        "Vector Search (Semantic)",
        "Find documents by meaning, even if they use other words than the query.",
        arguments.MeaningArguments,
        _searching("vsearch"),
    ),
    "query": _Tool(
        "Hybrid Query (Best Quality)",
        "Find documents by words and by meaning together: the first choice for a question.",
        arguments.QueryArguments,
        _searching("query"),
    ),
    "get": _Tool(
        "Get Document",
        "Read one document as it is now, or a part of it: by path, by the end of a path, or by a "
        "docid (#abc123) from a result. If there is no such document, the answer names similar "
        "ones.",
        arguments.GetArguments,
        _get,
    ),
    "multi_get": _Tool(
        "Multi-Get Documents",
        "Read several documents at once: by a glob (journals/2025-05*.md) or a list with commas. "
        "Large documents are skipped; the answer lists them.",
        arguments.MultiGetArguments,
        _multi_get,
    ),
    "status": _Tool(
        "Index Status",
        "Show the collections, how many documents they have, and how many lack vectors.",
        arguments.StatusArguments,
        _status,
    ),
}
"""The tools by name."""

"""The three MCP tools: they translate between the protocol and the service, nothing else."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError, WrapValidator

from vector_index_mcp.codebase import text, wire
from vector_index_mcp.codebase.limits import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TOP_K,
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
    MAX_TOKENS,
    TOP_K,
)
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.errors import VectorIndexError
from vector_index_mcp.indexing.run import Run

if TYPE_CHECKING:  # the service imports lancedb, which takes a second
    from vector_index_mcp.codebase.service import Codebase
    from vector_index_mcp.indexing.service import LiveIndex
    from vector_index_mcp.indexing.status import Status

_T = TypeVar("_T")
_Validator = Callable[[object, Callable[[object], _T]], _T]
GetService = Callable[[], Awaitable["Codebase"]]

INSTRUCTIONS = """\
This server keeps one software project indexed: every saved file is searchable within a second.

search_index: your first step to find code, configuration or documentation in this project. Ask \
for what the code does ("where are retries with backoff handled"), or name an identifier in any \
spelling ("get_user_name", "HttpClient"), or both. It finds by meaning and by word at once, so it \
replaces several rounds of grep. Use grep afterwards for a complete list of literal occurrences.
get_status: how far the index is, and why something is not found (skipped files, a missing model).
trigger_index: rarely needed, since changes are followed by themselves. Call it when get_status \
shows an error, or with force_reindex=true to build the index anew.\
"""

# Clients give up on a call after 60 s unless configured otherwise; the run goes on without us.
_TRIGGER_PATIENCE_SECONDS = 45.0
_READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def _named(name: str, rule: str) -> _Validator[_T]:
    """Say what an argument must be, in a sentence; pydantic's own names half of it, or nothing."""

    def validate(value: object, validate_it: Callable[[object], _T]) -> _T:
        try:
            return validate_it(value)
        except ValidationError:
            raise ValueError(f"{name} must be {rule}") from None

    return validate


def _in_range(name: str, lowest: int, highest: int) -> _Validator[int]:
    return _named(name, f"a whole number from {lowest} to {highest}")


def _no_longer_than(name: str, most: int) -> _Validator[str]:
    return _named(name, f"a text of at most {most:,} characters, in valid Unicode")


def register(server: MCPServer, get_service: GetService) -> None:
    """Offer the tools on `server`.

    Args:
        server: Where to register.
        get_service: Waits for the running service. It is loaded after the first answer, so the
            tools are listed before it exists.
    """

    @server.tool(
        name="trigger_index",
        title="Bring the index up to date",
        annotations=ToolAnnotations(
            read_only_hint=False,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        ),
    )
    async def trigger_index_tool(
        ctx: Context,
        force_reindex: Annotated[
            bool,
            Field(
                description="Read every file again into a new index, which replaces the current "
                "one when it is complete; until then the current one answers"
            ),
        ] = False,
    ) -> Annotated[CallToolResult, wire.TriggerResult]:
        """Compare the whole project with the index and index what differs.

        Not needed after edits: changes are followed by themselves. Joins the pass that is under
        way, if there is one. Answers when the index is complete, or after 45 seconds while the
        work goes on in the background.
        """
        with _tool_errors():
            codebase = await get_service()
            run = await codebase.index.trigger(force_reindex=force_reindex)
            with anyio.move_on_after(_TRIGGER_PATIENCE_SECONDS):
                await _follow(ctx, codebase.index, run)
            result = _trigger_result(await codebase.index.status(), run, codebase.pending)
        return _answer(text.of_trigger(result), result)

    @server.tool(name="get_status", title="State of the index", annotations=_READ_ONLY)
    async def get_status_tool() -> Annotated[CallToolResult, wire.IndexStatus]:
        """Show how far the index is, what it holds and skips, and what is wrong if anything.

        status is INITIALIZING, SCANNING (being brought up to date; searches work), WATCHING (up to
        date, changes are followed) or ERROR (error_message says what to do).
        """
        with _tool_errors():
            status = await wire.index_status(await get_service())
        return _answer(text.of_status(status), status)

    @server.tool(name="search_index", title="Search the project", annotations=_READ_ONLY)
    async def search_index_tool(
        query: Annotated[
            str,
            Field(
                description="What to look for: a question or description in plain words, an "
                "identifier in any spelling, or both",
                max_length=LONGEST_QUERY_CHARS,
            ),
            WrapValidator(_no_longer_than("query", LONGEST_QUERY_CHARS)),
        ],
        top_k: Annotated[
            int,
            Field(description="How many results, 1 to 100", ge=TOP_K[0], le=TOP_K[1]),
            WrapValidator(_in_range("top_k", *TOP_K)),
        ] = DEFAULT_TOP_K,
        path: Annotated[
            str | None,
            Field(
                description="Only this file or folder, or files that match this glob: "
                '"src/app.py", "src", "src/**/*.ts", "*.py"',
                max_length=LONGEST_PATH_CHARS,
            ),
            WrapValidator(_no_longer_than("path", LONGEST_PATH_CHARS)),
        ] = None,
        language: Annotated[
            str | None,
            Field(
                description='Only files in this language: "python", "ts", "c++"',
                max_length=LONGEST_LANGUAGE_CHARS,
            ),
            WrapValidator(_no_longer_than("language", LONGEST_LANGUAGE_CHARS)),
        ] = None,
        max_tokens: Annotated[
            int,
            Field(
                description="About how long the answer may be, 500 to 100000; texts are shortened "
                "before results are left out",
                ge=MAX_TOKENS[0],
                le=MAX_TOKENS[1],
            ),
            WrapValidator(_in_range("max_tokens", *MAX_TOKENS)),
        ] = DEFAULT_MAX_TOKENS,
    ) -> Annotated[CallToolResult, wire.SearchResult]:
        """Find the places in this project that answer a question or hold an identifier.

        Returns chunks of files with path, line range and exact text, best first. Good queries:
        "where is the retry delay computed", "parse_config", "websocket reconnect after timeout".
        """
        with _tool_errors():
            codebase = await get_service()
            answer = await codebase.search(query, top_k, path=path or "", language=language or "")
            result = wire.search_result(answer, max_tokens)
        return _answer(text.of_search(result), result)


@contextmanager
def _tool_errors() -> Iterator[None]:
    """What a smarter caller could have avoided or may mend goes to the caller, as a tool error."""
    try:
        yield
    except VectorIndexError as error:
        raise ToolError(REMEDIES.told(error)) from error


def _answer(readable: str, result: BaseModel) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=readable)],
        structured_content=result.model_dump(mode="json"),
    )


async def _follow(ctx: Context, index: "LiveIndex", run: Run) -> None:
    """Report progress until the text of `run` is indexed and has its vectors, if it gets any."""
    while not run.finished.is_set():
        progressed = run.progressed
        if run.files_to_do:
            message = f"{run.files_done} of {run.files_to_do} files indexed"
            await ctx.report_progress(run.files_done, run.files_to_do, message)
        await progressed.wait()
    steps = run.files_to_do + 1  # that all text is found by words is a step of its own
    reported = -1
    while (now := index.progress).waits_for_vectors:
        if now.embedded > reported:  # the protocol wants it to grow, and loading takes a while
            reported = now.embedded
            message = f"{now.embedded} of {now.chunks} chunks embedded"
            await ctx.report_progress(steps + now.embedded, steps + now.chunks, message)
        await index.embedding_progressed()


def _trigger_result(now: "Status", run: Run, pending: int) -> wire.TriggerResult:
    progress = now.progress
    if run.error:
        raise ToolError(run.error)
    if not run.finished.is_set():
        message = "Indexing goes on in the background; get_status shows how far it is."
    elif pending:
        message = f"What changed meanwhile is still to be indexed: {pending} paths."
    elif progress.lacks_vectors:
        lack = progress.embedder_reason or "Embedding goes on in the background."
        message = f"All text is indexed and found by words. {lack}"
    else:
        message = "The index is complete and up to date."
    return wire.TriggerResult(
        message=message,
        complete=run.finished.is_set() and not pending and not progress.lacks_vectors,
        run=wire.run_report(run),
        indexed_file_count=now.indexed,
        indexed_chunk_count=now.chunks,
        embedded_chunk_count=now.embedded,
    )

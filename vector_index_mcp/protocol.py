"""Results of MCP, for tool sets that answer a request before the protocol's library looks at it.

A contract may word what is wrong with arguments, and then everything is checked and answered by the
tool set; what every such answer has in common stands here.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Result: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Result]]

CACHE = {"ttlMs": 0, "cacheScope": "private"}
"""What a list or a resource says of itself where the version of the protocol knows it."""


def enveloped(ctx: Any, result: Result) -> Result:
    """A result as the client's version of the protocol wants it: who answers owns the envelope."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | result
    return {key: value for key, value in result.items() if key not in CACHE}


def is_introduced(ctx: Any) -> bool:
    """Whether a client has said who it is, or its version of the protocol has no such greeting.

    The library refuses the others; a tool set that answers before it may do so, too. The programs
    whose contracts the others fulfil answer anybody.
    """
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern or ctx.session.client_params is not None


def answer_before(server: MCPServer[Any], methods: Mapping[str, Answer], *lacking: str) -> None:
    """Have some methods answered before the library looks at them.

    Args:
        server: Whose.
        methods: What answers each, given the parameters of the request.
        lacking: Which capabilities of the library's there are not: `prompts`, `resources`.
    """
    unknown = ("completion/", *(f"{capability}/" for capability in lacking))

    async def answer(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method == "initialize":
            return without(await call_next(ctx), *lacking)
        if ctx.method.startswith(unknown):
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        make = methods.get(ctx.method)
        if make is None:
            return await call_next(ctx)
        return enveloped(ctx, await make(ctx.params or {}))

    server.middleware.append(answer)


def values_of(answer: Any) -> Result:
    """What the library answers, as values."""
    if isinstance(answer, dict):
        return answer
    values: Result = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return values


def without(initialized: Any, *capabilities: str) -> Result:
    """The answer to `initialize`, without capabilities that there are not."""
    values = values_of(initialized)
    for capability in capabilities:
        values["capabilities"].pop(capability, None)
    return values

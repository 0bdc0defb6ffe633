"""MCP results for tool sets that answer requests before the MCP library validates them.

Some tool sets follow a contract that fixes even the messages about wrong arguments. They validate
and answer requests themselves; this module has what all such answers share.
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
"""Fields of every list and resource, in versions of the protocol that know them."""


def enveloped(ctx: Any, result: Result) -> Result:
    """`result` with the fields around it that the client's version of the protocol wants."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | result
    return {key: value for key, value in result.items() if key not in CACHE}


def is_introduced(ctx: Any) -> bool:
    """Whether the client has sent `initialize`, or its version of the protocol has no `initialize`.

    The library refuses requests of other clients. A tool set that answers before the library can
    refuse them with this, too, unless its contract is to answer anybody.
    """
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern or ctx.session.client_params is not None


def answer_before(server: MCPServer[Any], methods: Mapping[str, Answer], *lacking: str) -> None:
    """Register functions that answer some methods before the library sees the request.

    Args:
        server: The server that the requests go to.
        methods: The function that answers each method, given the parameters of the request.
        lacking: Capabilities of the library that this server does not offer, such as `prompts`.
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
    """An answer of the library as JSON values."""
    if isinstance(answer, dict):
        return answer
    values: Result = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return values


def without(initialized: Any, *capabilities: str) -> Result:
    """The answer to `initialize`, without these capabilities."""
    values = values_of(initialized)
    for capability in capabilities:
        values["capabilities"].pop(capability, None)
    return values

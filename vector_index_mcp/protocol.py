"""MCP results for tool sets that answer requests before the MCP library validates them.

Some tool sets follow a contract that fixes even the messages about wrong arguments. They validate
and answer requests themselves; this module has what all such answers share.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from vector_index_mcp.errors import quoted

Result: TypeAlias = dict[str, Any]
Answer: TypeAlias = Callable[[Mapping[str, Any]], Awaitable[Result]]

CACHE = {"ttlMs": 0, "cacheScope": "private"}
"""Fields of every list and resource, in versions of the protocol that know them."""

# What a value must be, by Pydantic's name of the problem. The braces are from its context.
_RULES = {
    "string_type": "a text",
    "string_unicode": "a text in valid Unicode",
    "string_too_long": "a text of at most {max_length:,} characters",
    "string_too_short": "a text that is not empty",
    "float_type": "a number",
    "int_type": "a whole number",
    "finite_number": "a number that is not infinite",
    "greater_than_equal": "a number of at least {ge:g}",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "literal_error": "{expected}",
}
MOST_FAULTS = 5  # an answer names at most this many of a request
_LONGEST_SHOWN = 200  # characters of the name of a value
_MOST_IGNORED = 5  # names of unknown arguments that an answer repeats


def fault_of(problem: Mapping[str, Any], place: str) -> str:
    """What is wrong with a value, in words.

    Args:
        problem: What Pydantic has found.
        place: The value's name.
    """
    kind, place = problem["type"], place[:_LONGEST_SHOWN]
    if kind == "missing":
        return f"{place} is missing"
    if rule := _RULES.get(kind):
        return f"{place} must be {rule.format(**problem.get('ctx', {}))}"
    return f"{place}: {problem['msg']}"


def faults_of(error: ValidationError) -> str:
    """What is wrong with the parameters of a request, in words."""
    problems = error.errors(include_url=False, include_input=False)[:MOST_FAULTS]
    return "; ".join(fault_of(dict(each), ".".join(map(str, each["loc"]))) for each in problems)


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


def told_of_ignored(names: Sequence[str]) -> str:
    """Say which arguments of a call were ignored, the tool not knowing them; empty for none.

    Contracts have them ignored, but an agent would believe that a filter or a date was kept.
    """
    more = len(names) - _MOST_IGNORED
    listed = ", ".join(map(quoted, names[:_MOST_IGNORED]))
    others = f" and {more} more" if more > 0 else ""
    return f"Unknown arguments were ignored: {listed}{others}" if names else ""

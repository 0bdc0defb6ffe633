"""Results of MCP, for tool sets that answer a request before the protocol's library looks at it.

A contract may word what is wrong with arguments, and then everything is checked and answered by the
tool set; what every such answer has in common stands here.
"""

from typing import Any, TypeAlias

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Result: TypeAlias = dict[str, Any]

CACHE = {"ttlMs": 0, "cacheScope": "private"}
"""What a list or a resource says of itself where the version of the protocol knows it."""


def enveloped(ctx: Any, result: Result) -> Result:
    """A result as the client's version of the protocol wants it: who answers owns the envelope."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | result
    return {key: value for key, value in result.items() if key not in CACHE}


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

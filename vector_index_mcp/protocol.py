"""How tool sets answer MCP: they do so before the MCP library validates a request.

The contracts of some tool sets fix even the messages about wrong arguments, and those of the
library are written for programmers; it also ignores unknown arguments without a word. So each tool
set validates and answers requests itself; this module has what all of their answers share.
"""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from vector_index_mcp.errors import encodable, quoted

Result: TypeAlias = dict[str, Any]
Report: TypeAlias = Callable[[float, float | None, str | None], Awaitable[None]]
"""Reports progress to the client: how much is done, of how much, and a sentence about it."""

READ_ONLY = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
"""The annotations of a tool that changes nothing, and always says the same of the same state."""
OFFERS = ("tools", "prompts", "resources")
"""What a server may offer, by the names of the library's capabilities."""
_CACHE = {"ttlMs": 0, "cacheScope": "private"}
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


# -- requests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    params: Mapping[str, Any]
    report: Report

    @property
    def tool(self) -> str:
        """The name of the tool that is called.

        Raises:
            MCPError: If it is missing.
        """
        return self.text("name", "the name of a tool")

    @property
    def arguments(self) -> object:
        """What is given as the arguments of a tool; no arguments are an empty object."""
        given = self.params.get("arguments")
        return {} if given is None else given

    def text(self, name: str, what: str) -> str:
        """The parameter `name`, a text.

        Args:
            name: Its name.
            what: What it is, for the error.

        Raises:
            MCPError: If it is missing or no text.
        """
        value = self.params.get(name)
        if not isinstance(value, str):
            raise MCPError(INVALID_PARAMS, f"{what} is missing")
        return value


Answer: TypeAlias = Callable[[Request], Awaitable[Result]]


def answer_before(
    server: MCPServer[Any],
    methods: Mapping[str, Answer],
    *,
    offers: Collection[str] = OFFERS,
    to_strangers: bool = True,
) -> None:
    """Register functions that answer some methods before the library sees the request.

    Args:
        server: The server that the requests go to.
        methods: The function that answers each method.
        offers: Those of `OFFERS` that the server has.
        to_strangers: Whether clients are answered that have not sent `initialize`, as contracts
            want it. Without it, the library refuses their requests.
    """
    lacking = [each for each in OFFERS if each not in offers]
    unknown = ("completion/", *(f"{each}/" for each in lacking))

    async def answer(ctx: Any, call_next: Callable[[Any], Awaitable[Any]]) -> Any:
        if ctx.method == "initialize":
            return _without(await call_next(ctx), lacking)
        if ctx.method.startswith(unknown):
            raise MCPError(METHOD_NOT_FOUND, "Method not found")
        make = methods.get(ctx.method)
        if make is None or not (to_strangers or is_introduced(ctx)):
            return await call_next(ctx)
        return _enveloped(ctx, await make(Request(ctx.params or {}, ctx.session.report_progress)))

    server.middleware.append(answer)


def is_introduced(ctx: Any) -> bool:
    """Whether the client has sent `initialize`, or its version of the protocol has no `initialize`.

    The library refuses requests of other clients.
    """
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern or ctx.session.client_params is not None


def _without(initialized: Any, capabilities: Sequence[str]) -> Result:
    """The answer to `initialize`, without these capabilities."""
    values: Result = (
        initialized
        if isinstance(initialized, dict)
        else initialized.model_dump(mode="json", by_alias=True, exclude_none=True)
    )
    for capability in capabilities:
        values["capabilities"].pop(capability, None)
    return values


def _enveloped(ctx: Any, result: Result) -> Result:
    """`result` with the fields around it that the client's version of the protocol wants."""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return {"resultType": "complete"} | result
    return {key: value for key, value in result.items() if key not in _CACHE}


# -- answers -------------------------------------------------------------------------------------


def cacheable(**values: Any) -> Result:
    """An answer that clients may keep, as lists and resources are: a new one is as good at once."""
    return {**_CACHE, **values}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as it is listed, and the function that answers its calls."""

    title: str
    description: str
    arguments: type[BaseModel]
    answer: Callable[..., Awaitable[Result]]
    annotations: Mapping[str, bool] = field(default_factory=lambda: READ_ONLY)


def listed(tools: Mapping[str, Tool], schema_of: Callable[[type[BaseModel]], Result]) -> Result:
    """The list of tools, by name; `schema_of` returns the JSON schema of arguments."""
    return cacheable(
        tools=[
            tool(name, each.title, each.description, schema_of(each.arguments), each.annotations)
            for name, each in tools.items()
        ]
    )


def tool(
    name: str, title: str, description: str, schema: Result, annotations: Mapping[str, bool]
) -> Result:
    """A tool as it is listed; `schema` is the JSON schema of its arguments."""
    return {
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": schema,
        "annotations": annotations,
    }


def text(words: str) -> Result:
    """A text as a part of an answer."""
    return {"type": "text", "text": encodable(words)}


def answered(words: str, values: Result) -> Result:
    """The answer of a tool, as words and as values."""
    return {"content": [text(words)], "structuredContent": values}


def answered_in_json(values: Result) -> Result:
    """The answer of a tool whose words are its values in JSON."""
    try:
        # Python's own encoder takes ten times as long when it indents.
        return answered(to_json(values, indent=2).decode(), values)
    except PydanticSerializationError:  # a file name need not be valid Unicode
        words = encodable(json.dumps(values, indent=2, ensure_ascii=False))
        return answered(words, json.loads(words))


def refused(words: str) -> Result:
    """The answer of a tool that cannot do what is asked: a result, which agents read and mend."""
    return {"content": [text(words)], "isError": True}


# -- wrong requests ------------------------------------------------------------------------------


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


def told_of_ignored(names: Sequence[str]) -> str:
    """Say which arguments of a call were ignored, the tool not knowing them; empty for none.

    Contracts have them ignored, but an agent would believe that a filter or a date was kept.
    """
    more = len(names) - _MOST_IGNORED
    listed = ", ".join(map(quoted, names[:_MOST_IGNORED]))
    others = f" and {more} more" if more > 0 else ""
    return f"Unknown arguments were ignored: {listed}{others}" if names else ""

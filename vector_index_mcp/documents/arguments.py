"""The arguments of the tools, and the messages about wrong ones, both as in the contract."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.json_schema import SkipJsonSchema
from pydantic_core import PydanticKnownError

from vector_index_mcp.checks import kind_of
from vector_index_mcp.documents.limits import LONGEST_CHARS


def _without_default(schema: dict[str, Any]) -> None:
    schema.pop("default", None)


def _but_no_null(kind: Literal["float_type", "string_type"]) -> BeforeValidator:
    """Refuse an explicit null: an optional argument may be left out, but it has its type."""

    def checked(value: Any) -> Any:
        if value is None:
            raise PydanticKnownError(kind)
        return value

    return BeforeValidator(checked)


_OptionalNumber = Annotated[float | SkipJsonSchema[None], _but_no_null("float_type")]
_OptionalText = Annotated[str | SkipJsonSchema[None], _but_no_null("string_type")]


class _Arguments(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, strict=True, extra="ignore")


class SearchArguments(_Arguments):
    """The arguments of `search`; those of `query` differ only in descriptions."""

    query: str = Field(
        description="Search query - keywords or phrases to find", max_length=LONGEST_CHARS
    )
    limit: float = Field(10, description="Maximum number of results (default: 10)", ge=0)
    min_score: float = Field(0, description="Minimum relevance score 0-1 (default: 0)")
    collection: _OptionalText = Field(
        None,
        description="Filter to a specific collection by name",
        json_schema_extra=_without_default,
    )


class MeaningArguments(SearchArguments):
    """The arguments of `vsearch`."""

    query: str = Field(
        description="Natural language query - describe what you're looking for",
        max_length=LONGEST_CHARS,
    )
    min_score: float = Field(0.3, description="Minimum relevance score 0-1 (default: 0.3)")


class QueryArguments(MeaningArguments):
    """The arguments of `query`."""

    min_score: float = Field(0, description="Minimum relevance score 0-1 (default: 0)")


class GetArguments(_Arguments):
    """The arguments of `get`."""

    file: str = Field(
        description="File path or docid from search results (e.g., 'pages/meeting.md', "
        "'#abc123', or 'pages/meeting.md:100' to start at line 100)",
        max_length=LONGEST_CHARS,
    )
    from_line: _OptionalNumber = Field(
        None,
        description="Start from this line number (1-indexed)",
        json_schema_extra=_without_default,
    )
    max_lines: _OptionalNumber = Field(
        None,
        description="Maximum number of lines to return",
        json_schema_extra=_without_default,
    )
    line_numbers: bool = Field(
        False, description="Add line numbers to output (format: 'N: content')"
    )


class MultiGetArguments(_Arguments):
    """The arguments of `multi_get`."""

    pattern: str = Field(
        description="Glob pattern or comma-separated list of file paths",
        max_length=LONGEST_CHARS,
    )
    max_lines: _OptionalNumber = Field(
        None, description="Maximum lines per file", json_schema_extra=_without_default
    )
    max_bytes: float = Field(
        10_240, description="Skip files larger than this (default: 10240 = 10KB)"
    )
    line_numbers: bool = Field(
        False, description="Add line numbers to output (format: 'N: content')"
    )


class StatusArguments(_Arguments):
    """The arguments of `status`, which takes none."""


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of arguments as in the contract: without titles and our limits."""
    left_out = {"title", "maxLength", "minimum"}
    schema = model.model_json_schema(by_alias=True)
    properties = {
        name: {key: v for key, v in values.items() if key not in left_out}
        for name, values in schema.get("properties", {}).items()
    }
    found: dict[str, Any] = {"$schema": _DIALECT, "type": "object", "properties": properties}
    if required := schema.get("required"):
        found["required"] = required
    return found


def refusal(tool: str, error: ValidationError) -> str:
    """Return the message about wrong arguments of a tool, in the contract's words."""
    problems = error.errors(include_url=False)
    # An optional argument may also be None, as pydantic would say for each of a wrong type.
    issues = [_issue(dict(each)) for each in problems if each["type"] != "none_required"]
    listed = json.dumps(issues, indent=2, ensure_ascii=False)
    return f"{_PREFIX} Input validation error: Invalid arguments for tool {tool}: {listed}"


def ignored(tool: type[BaseModel], given: object) -> list[str]:
    """Return the names of given arguments that a tool does not know, such as `min_score`."""
    known = {field.alias or name for name, field in tool.model_fields.items()}
    names = given if isinstance(given, dict) else {}
    return [str(name) for name in names if name not in known]


def unknown(tool: str) -> str:
    """Return the message about a tool that does not exist, in the contract's words."""
    return f"{_PREFIX} Tool {tool} not found"


_DIALECT = "http://json-schema.org/draft-07/schema#"
_PREFIX = "MCP error -32602:"
_EXPECTED = {
    "string_type": "string",
    "float_type": "number",
    "bool_type": "boolean",
    "model_type": "object",
}


def _issue(problem: dict[str, Any]) -> dict[str, Any]:
    path = [str(part) for part in problem["loc"]]
    kind = problem["type"]
    if kind == "missing":
        return _wrong_type(path, "string", "undefined")
    if kind in _EXPECTED:
        return _wrong_type(path[:1], _EXPECTED[kind], kind_of(problem["input"]))
    if kind == "greater_than_equal":
        return _too_small(path[:1], int(problem["ctx"]["ge"]))
    return {"code": kind, "path": path[:1], "message": problem["msg"]}


def _wrong_type(path: list[str], expected: str, received: str) -> dict[str, Any]:
    return {
        "expected": expected,
        "code": "invalid_type",
        "path": path,
        "message": f"Invalid input: expected {expected}, received {received}",
    }


def _too_small(path: list[str], minimum: int) -> dict[str, Any]:
    return {
        "origin": "number",
        "code": "too_small",
        "minimum": minimum,
        "inclusive": True,
        "path": path,
        "message": f"Too small: expected number to be >={minimum}",
    }

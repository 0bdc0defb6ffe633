"""The arguments of the tools, and sentences about what is wrong with them. Pure."""

import difflib
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    WrapValidator,
    model_validator,
)

from vector_index_mcp.codebase.hits import Detail
from vector_index_mcp.codebase.limits import (
    DEFAULT_MAX_TOKENS,
    DEFAULT_TOP_K,
    LARGEST_OFFSET,
    LONGEST_LANGUAGE_CHARS,
    LONGEST_PATH_CHARS,
    LONGEST_QUERY_CHARS,
    MAX_TOKENS,
    TOP_K,
)
from vector_index_mcp.engine.kinds import Kind
from vector_index_mcp.errors import QueryError

_T = TypeVar("_T")
_Model = TypeVar("_Model", bound=BaseModel)
_Validator = Callable[[object, Callable[[object], _T]], _T]
KINDS, DETAILS = get_args(Kind), get_args(Detail)
_OTHER_NAMES = {
    **dict.fromkeys(("limit", "n", "k", "count", "num_results", "max_results"), "top_k"),
    **dict.fromkeys(("q", "question", "text", "search"), "query"),
    **dict.fromkeys(("file", "folder", "directory", "glob", "include", "file_path"), "path"),
    **dict.fromkeys(("lang", "extension", "file_type"), "language"),
    **dict.fromkeys(("is_regex", "regexp", "use_regex"), "regex"),
}
"""What other tools call an argument of `search_index`."""
_LONGEST_SHOWN = 60  # characters of an unknown argument's name
_MOST_SHOWN = 5  # unknown arguments


def _named(name: str, rule: str, values: Sequence[str] = ()) -> _Validator[_T]:
    """Replace pydantic's message, which seldom names the argument and its rule, by a sentence.

    Of the `values` that it may have, the sentence suggests the one that is spelled most like it.
    """

    def validate(value: object, validate_it: Callable[[object], _T]) -> _T:
        try:
            return validate_it(value)
        except ValidationError:
            hint = _did_you_mean(value, values) if isinstance(value, str) else ""
            raise ValueError(f"{name} must be {rule}{hint}") from None

    return validate


def _in_range(name: str, lowest: int, highest: int) -> _Validator[int]:
    return _named(name, f"a whole number from {lowest} to {highest}")


def _no_longer_than(name: str, most: int) -> _Validator[Any]:
    return _named(name, f"a text of at most {most:,} characters, in valid Unicode")


def _one_of(name: str, values: Sequence[str]) -> _Validator[Any]:
    return _named(name, f"one of {', '.join(values)}", values)


def _did_you_mean(written: str, known: Sequence[str]) -> str:
    """A question for the one of `known` that is spelled most like a text; empty if none is."""
    near = difflib.get_close_matches(written[:_LONGEST_SHOWN].lower(), known, 1)
    return f" (did you mean {near[0]}?)" if near else ""


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: object) -> object:
        """Take null for an argument that is left out: some clients send all arguments."""
        if not isinstance(given, dict):
            return given
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {k: value for k, value in given.items() if value is not None or k not in optional}


class SearchArguments(_Arguments):
    """The arguments of `search_index`."""

    query: Annotated[
        str,
        Field(
            description="What to look for: a question or description in plain words, an "
            "identifier in any spelling, or both; or a path, an error, a stack trace or a "
            "regular expression",
            max_length=LONGEST_QUERY_CHARS,
        ),
        WrapValidator(_no_longer_than("query", LONGEST_QUERY_CHARS)),
    ]
    top_k: Annotated[
        int,
        Field(description="How many results, 1 to 100", ge=TOP_K[0], le=TOP_K[1]),
        WrapValidator(_in_range("top_k", *TOP_K)),
    ] = DEFAULT_TOP_K
    path: Annotated[
        str | None,
        Field(
            description="Only this file or folder, or files that match this glob: "
            '"src/app.py", "src", "src/**/*.ts", "*.py"',
            max_length=LONGEST_PATH_CHARS,
        ),
        WrapValidator(_no_longer_than("path", LONGEST_PATH_CHARS)),
    ] = None
    language: Annotated[
        str | None,
        Field(
            description='Only files in this language: "python", "ts", "c++"',
            max_length=LONGEST_LANGUAGE_CHARS,
        ),
        WrapValidator(_no_longer_than("language", LONGEST_LANGUAGE_CHARS)),
    ] = None
    max_tokens: Annotated[
        int,
        Field(
            description="About how many tokens the answer may have, 500 to 100000; texts are "
            "shortened before results are left out",
            ge=MAX_TOKENS[0],
            le=MAX_TOKENS[1],
        ),
        WrapValidator(_in_range("max_tokens", *MAX_TOKENS)),
    ] = DEFAULT_MAX_TOKENS

    kind: Annotated[
        Kind | None,
        Field(description="Only files of this kind"),
        WrapValidator(_one_of("kind", KINDS)),
    ] = None
    similar_to: Annotated[
        str | None,
        Field(
            description='Find code that resembles the code at "path:line"; query may then be '
            "empty, or narrow the search",
            max_length=LONGEST_PATH_CHARS,
        ),
        WrapValidator(_no_longer_than("similar_to", LONGEST_PATH_CHARS)),
    ] = None
    regex: Annotated[
        bool,
        Field(
            description="query is a regular expression in Rust's syntax; without it, what looks "
            "like one is taken for one"
        ),
        WrapValidator(_named("regex", "true or false")),
    ] = False
    detail: Annotated[
        Detail,
        Field(
            description="full: whole chunks, but only the first by default if none is likely; "
            "snippets: only the most relevant lines of each; locations: only paths and line numbers"
        ),
        WrapValidator(_one_of("detail", DETAILS)),
    ] = "full"
    offset: Annotated[
        int,
        Field(description="How many of the best results to skip", ge=0, le=LARGEST_OFFSET),
        WrapValidator(_in_range("offset", 0, LARGEST_OFFSET)),
    ] = 0
    verbose: Annotated[
        bool,
        Field(description="Also return what else is stored of a chunk: hashes, times, positions"),
        WrapValidator(_named("verbose", "true or false")),
    ] = False

    @model_validator(mode="before")
    @classmethod
    def _without_query(cls, given: object) -> object:
        """Take a query that is left out for an empty one, where there is code to compare with."""
        if isinstance(given, dict) and given.get("similar_to") and given.get("query") is None:
            return {**given, "query": ""}
        return given

    @property
    def detail_of_a_miss(self) -> Detail:
        """How much is shown of hits that are hardly right: a few lines, if no more is asked for."""
        return self.detail if "detail" in self.model_fields_set else "snippets"

    @property
    def limits(self) -> dict[str, Any]:
        """The keyword arguments for `Codebase.search`: all that do not only change the display."""
        return {
            "path": self.path or "",
            "language": self.language or "",
            "kind": self.kind or "",
            "similar_to": self.similar_to or "",
            "regex": self.regex,
            "offset": self.offset,
        }


class ExplainedArguments(SearchArguments):
    """The arguments of a search by a person, who may want an explanation of the ranking."""

    explain: bool = False


class WorkspaceArguments(SearchArguments):
    """The arguments of `search_index` for several projects."""

    project: Annotated[
        str | None,
        Field(
            description="Search only this project: the name or path of its folder",
            max_length=LONGEST_PATH_CHARS,
        ),
        WrapValidator(_no_longer_than("project", LONGEST_PATH_CHARS)),
    ] = None


class StatusArguments(_Arguments):
    """The arguments of `get_status`: none."""


class TriggerArguments(_Arguments):
    """The arguments of `trigger_index`."""

    force_reindex: Annotated[
        bool,
        Field(
            description="Read every file again into a new index, which replaces the current one "
            "when it is complete; until then the current one answers"
        ),
        WrapValidator(_named("force_reindex", "true or false")),
    ] = False


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """The JSON schema of arguments, without titles and empty defaults, which cost agents tokens."""
    schema = model.model_json_schema()
    properties = {}
    for name, given in schema.get("properties", {}).items():
        # Of two alternatives, the second one is null.
        field = {**given, **given["anyOf"][0]} if "anyOf" in given else given
        dropped = {"title", "anyOf"} | ({"default"} if field.get("default") is None else set())
        properties[name] = {key: value for key, value in field.items() if key not in dropped}
    found = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**found, "required": schema["required"]} if "required" in schema else found


def checked(tool: str, model: type[_Model], given: object) -> _Model:
    """Validate the arguments of a tool.

    Raises:
        QueryError: If any is wrong; the message names each in a sentence.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise QueryError(_refusal(tool, model, error)) from None


def _refusal(tool: str, model: type[BaseModel], error: ValidationError) -> str:
    """What is wrong with the arguments of a tool, in sentences."""
    known = [*model.model_fields]
    sentences, unknown = [], []
    for problem in error.errors(include_url=False, include_context=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        if problem["type"] == "extra_forbidden":
            unknown.append(name)
        elif problem["type"] == "missing":
            sentences.append(f"{name} is missing")
        else:
            sentences.append(problem["msg"].removeprefix("Value error, "))
    sentences += [_unknown(name, known) for name in unknown[:_MOST_SHOWN]]
    if unknown:
        sentences.append(f"{tool} takes {', '.join(known) or 'no arguments'}")
    return "; ".join(sentences)


def _unknown(name: str, known: list[str]) -> str:
    meant = _OTHER_NAMES.get(name.lower(), "")
    hint = _did_you_mean(meant if meant in known else name, known)
    return f"there is no argument {name[:_LONGEST_SHOWN]!a}{hint}"

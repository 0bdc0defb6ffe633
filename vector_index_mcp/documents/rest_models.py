"""The models of REST requests and answers. They check requests, and describe both in OpenAPI."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from vector_index_mcp.documents.configuration import DEFAULT_PATTERN
from vector_index_mcp.documents.limits import (
    LARGEST_BYTES,
    LONGEST_CHARS,
    LONGEST_QUERY_CHARS,
    MOST_TEXTS,
)
from vector_index_mcp.documents.wire import Document, ResultItem, Skipped, Text, Value

_LONGEST_PATH_CHARS = 4_096  # the limit of Linux
_LONGEST_NAME_CHARS = 200


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _as_the_tools_spell_it(cls, values: Any) -> Any:
        """Accept the names of the MCP tools, too: `maxLines` for `max_lines`."""
        if not isinstance(values, dict):
            return values
        known = {to_camel(name): name for name in cls.model_fields}
        spelled = {known.get(key, key): value for key, value in values.items()}
        return spelled | {key: value for key, value in values.items() if key in cls.model_fields}


_Query = Annotated[str, Field(max_length=LONGEST_QUERY_CHARS)]
_Long = Annotated[str, Field(max_length=LONGEST_CHARS)]
_Path = Annotated[str, Field(min_length=1, max_length=_LONGEST_PATH_CHARS)]
_Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME_CHARS)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SearchRequest(_Request):
    """The body of `/search` and `/query`."""

    query: _Query
    limit: _Count = Field(10, description="The most results to return; never more than 1000")
    min_score: _Number = Field(0.0, description="Lowest relevance, 0 to 1")
    collection: str | None = Field(None, description="Only documents of this collection")
    detailed: bool = Field(False, description="Whether to add `hits` and `note` to the answer")


class MeaningRequest(SearchRequest):
    """The body of `/vsearch`."""

    min_score: _Number = Field(0.3, description="Lowest relevance, 0 to 1")


class GetRequest(_Request):
    """The body of `/get`."""

    file: _Long = Field(description="A path, the end of one, or a docid; optionally with `:LINE`")
    from_line: _Count | None = Field(None, description="First line, from 1")
    max_lines: _Count | None = None
    line_numbers: bool = False


class MultiGetRequest(_Request):
    """The body of `/multi_get`."""

    pattern: _Long = Field(description="A glob, or names with commas between them")
    max_lines: _Count | None = Field(None, description="The most lines of each document")
    max_bytes: _Count = Field(LARGEST_BYTES, description="Larger documents are left out")
    line_numbers: bool = False


class EmbedRequest(_Request):
    """The body of `/embed`."""

    texts: list[_Long] = Field(description=f"1 to {MOST_TEXTS} texts")


class AddCollectionRequest(_Request):
    """The body of `/collections/add`."""

    name: _Name
    path: _Path = Field(description="An existing folder: an absolute path, or one with `~`")
    glob_pattern: str = Field(DEFAULT_PATTERN, min_length=1, max_length=1_000)


class RenameRequest(_Request):
    """The body of `PUT /collections/{name}`."""

    new_name: _Name


class UpdateRequest(_Request):
    """The body of `/update`."""

    pull: bool = Field(False, description="Whether to run `git pull` in the repositories first")


class AddContextRequest(_Request):
    """The body of `/contexts/add`."""

    path: _Path = Field(description="A folder of a collection, qmd://collection/path, or / for all")
    text: str = Field(min_length=1, max_length=LONGEST_CHARS)


class Error(BaseModel):
    """An error: why there is no answer."""

    detail: Text
    status_code: int


class SearchAnswer(BaseModel):
    """Documents that were found, best first."""

    results: list[ResultItem]
    content: Text
    hits: list[dict[str, Value]] | None = None
    """If `detailed`: the same results as the command line prints them."""
    note: Text | None = None
    """If `detailed`: why documents may be missing; empty if none are."""


class GetAnswer(BaseModel):
    """A document."""

    document: Document
    content: None = None


class MultiGetAnswer(BaseModel):
    """Documents, and messages about those left out."""

    results: list[Document | Skipped]
    content: None = None


class CollectionAnswer(BaseModel):
    """A collection, and how many documents of it are indexed."""

    name: Text
    path: Text
    pattern: Text
    documents: int


class CollectionInStatus(CollectionAnswer):
    """A collection, with the time when its newest document was written."""

    last_updated: str


class CollectionInDetail(CollectionAnswer):
    """One collection, with the time when its newest document was written."""

    last_indexed: str


class OperationAnswer(BaseModel):
    """An operation that runs, or waits for those before it."""

    name: Text
    seconds: float


class StatusAnswer(BaseModel):
    """The state of the index."""

    total_documents: int
    needs_embedding: int
    has_vector_index: bool
    collections: list[CollectionInStatus]
    operations: list[OperationAnswer]
    content: Text


class EmbedAnswer(BaseModel):
    """A vector for each text."""

    embeddings: list[list[float]]


class CollectionAdded(BaseModel):
    """A collection was added."""

    status: Literal["added"] = "added"
    name: Text
    path: Text
    documents: int
    content: Text


class CollectionsAnswer(BaseModel):
    """All collections."""

    collections: list[CollectionAnswer]
    content: Text


class CollectionRemoved(BaseModel):
    """A collection was removed."""

    status: Literal["removed"] = "removed"
    name: Text
    content: Text


class CollectionRenamed(BaseModel):
    """A collection was renamed."""

    status: Literal["renamed"] = "renamed"
    old_name: Text
    new_name: Text
    content: Text


class Indexed(BaseModel):
    """All collections are up to date with their folders."""

    status: Literal["indexed"] = "indexed"
    collections: int
    total_documents: int
    content: Text


class Updated(BaseModel):
    """All collections are up to date with their folders."""

    status: Literal["updated"] = "updated"
    collections: int
    content: Text


class ContextAdded(BaseModel):
    """A context was added."""

    status: Literal["added"] = "added"
    path: Text
    content: Text


class ContextAnswer(BaseModel):
    """The context of the documents below a path."""

    path: Text
    text: Text


class ContextsAnswer(BaseModel):
    """All contexts."""

    contexts: list[ContextAnswer]


class ContextRemoved(BaseModel):
    """A context was removed."""

    status: Literal["removed"] = "removed"
    path: Text


class Health(BaseModel):
    """Whether the server can answer requests."""

    status: Literal["healthy", "unhealthy"]
    model_loaded: bool

"""What the REST interface takes and answers: the models that check requests and describe both."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from vector_index_mcp.documents.configuration import DEFAULT_PATTERN
from vector_index_mcp.documents.limits import (
    LARGEST_BYTES,
    LONGEST_CHARS,
    LONGEST_QUERY_CHARS,
    MOST_TEXTS,
)
from vector_index_mcp.documents.wire import Document, ResultItem, Skipped, Text

_LONGEST_PATH_CHARS = 4_096  # as Linux has it
_LONGEST_NAME_CHARS = 200


class _Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


_Query = Annotated[str, Field(max_length=LONGEST_QUERY_CHARS)]
_Long = Annotated[str, Field(max_length=LONGEST_CHARS)]
_Path = Annotated[str, Field(min_length=1, max_length=_LONGEST_PATH_CHARS)]
_Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_NAME_CHARS)]
_Number = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class SearchRequest(_Request):
    """Of `/search` and `/query`."""

    query: _Query
    limit: _Count = Field(10, description="Most results; more than 1000 are never given")
    min_score: _Number = Field(0.0, description="Lowest relevance, 0 to 1")
    collection: str | None = Field(None, description="Only documents of this collection")


class MeaningRequest(SearchRequest):
    """Of `/vsearch`."""

    min_score: _Number = Field(0.3, description="Lowest relevance, 0 to 1")


class GetRequest(_Request):
    """Of `/get`."""

    file: _Long = Field(description="A path, the end of one, or a docid; with `:LINE` or not")
    from_line: _Count | None = Field(None, description="First line, from 1")
    max_lines: _Count | None = None
    line_numbers: bool = False


class MultiGetRequest(_Request):
    """Of `/multi_get`."""

    pattern: _Long = Field(description="A glob, or names with commas between them")
    max_lines: _Count | None = Field(None, description="Most lines of each")
    max_bytes: _Count = Field(LARGEST_BYTES, description="Larger documents are left out")
    line_numbers: bool = False


class EmbedRequest(_Request):
    """Of `/embed`."""

    texts: list[_Long] = Field(description=f"1 to {MOST_TEXTS} texts")


class AddCollectionRequest(_Request):
    """Of `/collections/add`."""

    name: _Name
    path: _Path = Field(description="A folder that is there: an absolute path, or one with `~`")
    glob_pattern: str = Field(DEFAULT_PATTERN, min_length=1, max_length=1_000)


class RenameRequest(_Request):
    """Of `PUT /collections/{name}`."""

    new_name: _Name


class UpdateRequest(_Request):
    """Of `/update`."""

    pull: bool = Field(False, description="Whether git brings repositories up to date first")


class AddContextRequest(_Request):
    """Of `/contexts/add`."""

    path: _Path = Field(description="A folder of a collection, qmd://collection/path, or / for all")
    text: str = Field(min_length=1, max_length=LONGEST_CHARS)


class Error(BaseModel):
    """Why there is no answer."""

    detail: Text
    status_code: int


class SearchAnswer(BaseModel):
    """Documents that were found, best first."""

    results: list[ResultItem]
    content: Text


class GetAnswer(BaseModel):
    """A document."""

    document: Document
    content: None = None


class MultiGetAnswer(BaseModel):
    """Documents, and what is said of those left out."""

    results: list[Document | Skipped]
    content: None = None


class CollectionAnswer(BaseModel):
    """A collection and what the index holds of it."""

    name: Text
    path: Text
    pattern: Text
    documents: int


class CollectionInStatus(CollectionAnswer):
    """The same, with when the newest of its documents was written."""

    last_updated: str


class CollectionInDetail(CollectionAnswer):
    """The same, of one collection."""

    last_indexed: str


class OperationAnswer(BaseModel):
    """An operation that is under way, or waits for those before it."""

    name: Text
    seconds: float


class StatusAnswer(BaseModel):
    """How the index is."""

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
    """A collection that is new."""

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
    """A collection that is gone."""

    status: Literal["removed"] = "removed"
    name: Text
    content: Text


class CollectionRenamed(BaseModel):
    """A collection that has another name."""

    status: Literal["renamed"] = "renamed"
    old_name: Text
    new_name: Text
    content: Text


class Indexed(BaseModel):
    """All collections are as their folders."""

    status: Literal["indexed"] = "indexed"
    collections: int
    total_documents: int
    content: Text


class Updated(BaseModel):
    """All collections are as their folders."""

    status: Literal["updated"] = "updated"
    collections: int
    content: Text


class ContextAdded(BaseModel):
    """Something is said of documents."""

    status: Literal["added"] = "added"
    path: Text
    content: Text


class ContextAnswer(BaseModel):
    """What is said of the documents below a path."""

    path: Text
    text: Text


class ContextsAnswer(BaseModel):
    """All contexts."""

    contexts: list[ContextAnswer]


class ContextRemoved(BaseModel):
    """Something is not said any more."""

    status: Literal["removed"] = "removed"
    path: Text


class Health(BaseModel):
    """Whether requests are answered."""

    status: Literal["healthy", "unhealthy"]
    model_loaded: bool

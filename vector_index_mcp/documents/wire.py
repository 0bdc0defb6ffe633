"""The models of the answers of the MCP tools and the REST interface.

The contract fixes the names: camelCase in MCP, snake_case in REST.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from vector_index_mcp.errors import encodable


def _readable(value: object) -> object:
    if isinstance(value, list):
        return [*map(_readable, value)]
    return encodable(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_readable)]
"""A text with a replacement for what is not UTF-8: names of files may have any bytes."""
Value = Annotated[Any, BeforeValidator(_readable)]
"""Any value of JSON but an object, its texts as `Text`."""
_CAMEL = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ResultItem(BaseModel):
    """A document that was found."""

    docid: Text = Field(description="A short id of the document's content, like #abc123")
    file: Text = Field(description="The document's collection and its path in it")
    title: Text
    score: float = Field(description="Relevance, 0 to 1")
    context: Text | None = Field(description="The description of the document's folder")
    snippet: Text = Field(description="The best lines, each with its number in the file")


class Results(BaseModel):
    """The hits of a search, best first."""

    results: list[ResultItem]


class CollectionStatus(BaseModel):
    """A collection, and how many documents of it are indexed."""

    model_config = _CAMEL

    name: Text
    path: Text
    pattern: Text
    documents: int
    last_updated: Text


class IndexStatus(BaseModel):
    """The answer of the tool `status`."""

    model_config = _CAMEL

    total_documents: int
    needs_embedding: int
    has_vector_index: bool
    collections: list[CollectionStatus]

    def camel(self) -> dict[str, Any]:
        """Return the values with the names of MCP."""
        return self.model_dump(mode="json", by_alias=True)


class Document(BaseModel):
    """A document's text, with its URI, name and title."""

    uri: Text
    name: Text
    title: Text
    mimeType: Text
    text: Text


class Skipped(BaseModel):
    """A message in place of a document that was left out."""

    type: Text = "text"
    text: Text

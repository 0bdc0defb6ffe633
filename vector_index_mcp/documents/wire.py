"""What the tools and the REST interface answer: the models on the wire.

Names are those of the contract: camelCase in MCP, snake_case in REST; both say the same.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

_CAMEL = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ResultItem(BaseModel):
    """A document that was found."""

    docid: str = Field(description="Short name of its content, like #abc123")
    file: str = Field(description="Its collection and its path in it")
    title: str
    score: float = Field(description="Relevance, 0 to 1")
    context: str | None = Field(description="What has been said about documents like it")
    snippet: str = Field(description="Its best lines, each with its number in the file")


class Results(BaseModel):
    """What a search found, best first."""

    results: list[ResultItem]


class CollectionStatus(BaseModel):
    """A collection and what the index holds of it."""

    model_config = _CAMEL

    name: str
    path: str
    pattern: str
    documents: int
    last_updated: str


class IndexStatus(BaseModel):
    """The answer of the tool `status`."""

    model_config = _CAMEL

    total_documents: int
    needs_embedding: int
    has_vector_index: bool
    collections: list[CollectionStatus]

    def camel(self) -> dict[str, Any]:
        """As MCP wants it."""
        return self.model_dump(mode="json", by_alias=True)


class Document(BaseModel):
    """A document's text, with what names it."""

    uri: str
    name: str
    title: str
    mimeType: str
    text: str


class Skipped(BaseModel):
    """In place of a document that is too large to be sent with others."""

    type: str = "text"
    text: str

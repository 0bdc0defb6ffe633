"""What the tools and the REST interface answer: the models on the wire.

Names are those of the contract: camelCase in MCP, snake_case in REST; both say the same.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel


def _readable(text: object) -> object:
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


Text = Annotated[str, BeforeValidator(_readable)]
"""A text without what UTF-8 cannot express: names on disk may hold any bytes."""
_CAMEL = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class ResultItem(BaseModel):
    """A document that was found."""

    docid: Text = Field(description="Short name of its content, like #abc123")
    file: Text = Field(description="Its collection and its path in it")
    title: Text
    score: float = Field(description="Relevance, 0 to 1")
    context: Text | None = Field(description="What has been said about documents like it")
    snippet: Text = Field(description="Its best lines, each with its number in the file")


class Results(BaseModel):
    """What a search found, best first."""

    results: list[ResultItem]


class CollectionStatus(BaseModel):
    """A collection and what the index holds of it."""

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
        """As MCP wants it."""
        return self.model_dump(mode="json", by_alias=True)


class Document(BaseModel):
    """A document's text, with what names it."""

    uri: Text
    name: Text
    title: Text
    mimeType: Text
    text: Text


class Skipped(BaseModel):
    """In place of a document that is too large to be sent with others."""

    type: Text = "text"
    text: Text

"""The service's values as models on the wire."""

from datetime import UTC, datetime

from vector_index_mcp.documents import lines
from vector_index_mcp.documents.asking import Answer, Found, rounded
from vector_index_mcp.documents.retrieval import Text, TooLarge
from vector_index_mcp.documents.service import CollectionState, State
from vector_index_mcp.documents.snippet import Snippet, snippet_of
from vector_index_mcp.documents.wire import (
    CollectionStatus,
    Document,
    IndexStatus,
    ResultItem,
    Skipped,
)
from vector_index_mcp.engine.prose.stems import stems_of

MIME_TYPE = "text/markdown"


def snippet_for(answer: Answer, found: Found) -> Snippet:
    """The best lines of a document that was found."""
    wanted = frozenset(answer.stems)
    words = lambda line: frozenset(stems_of(line))  # noqa: E731
    return snippet_of(found.chunk.text, wanted, words, start_line=found.chunk.start_line)


def items_of(answer: Answer) -> list[ResultItem]:
    """The results of a search."""
    return [
        ResultItem(
            docid=found.entry.docid,
            file=found.entry.key,
            title=found.entry.title,
            score=rounded(found.score),
            context=found.context or None,
            snippet=snippet_for(answer, found).numbered,
        )
        for found in answer.found
    ]


def document_of(text: Text) -> Document:
    """A document that was read."""
    return Document(
        uri=text.uri,
        name=text.key,
        title=text.title,
        mimeType=MIME_TYPE,
        text=text.with_context,
    )


def part_of(each: Text | TooLarge, *, is_rest: bool = False) -> Document | Skipped:
    """One of several documents."""
    if isinstance(each, TooLarge):
        return Skipped(text=lines.skipped(each.key, each.size, is_rest=is_rest))
    return document_of(each)


def status_of(state: State) -> IndexStatus:
    """How the index is."""
    return IndexStatus(
        total_documents=state.documents,
        needs_embedding=state.unembedded,
        has_vector_index=state.has_vectors,
        collections=[*map(_collection, state.collections)],
    )


def _collection(state: CollectionState) -> CollectionStatus:
    return CollectionStatus(
        name=state.collection.name,
        path=str(state.collection.path),
        pattern=state.collection.pattern,
        documents=state.documents,
        last_updated=iso(state.updated),
    )


def iso(time: datetime | None) -> str:
    """A time as JavaScript's toISOString writes it; that of now if there is none."""
    return (time or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

"""The service's values as models on the wire."""

from datetime import UTC, datetime
from typing import Protocol

from vector_index_mcp.documents import lines
from vector_index_mcp.documents.asking import Answer, Mode, Wanted, rounded, search
from vector_index_mcp.documents.limits import MOST_RESULTS, whole
from vector_index_mcp.documents.retrieval import Text, TooLarge
from vector_index_mcp.documents.service import CollectionState, Documents, State
from vector_index_mcp.documents.wire import (
    CollectionStatus,
    Document,
    IndexStatus,
    ResultItem,
    Skipped,
)

MIME_TYPE = "text/markdown"


class Request(Protocol):
    """What a client of MCP or REST asks for."""

    query: str
    limit: float
    min_score: float
    collection: str | None


async def results_of(documents: Documents, asked: Request, mode: str) -> list[ResultItem]:
    """The results of a search that a client asks for; see `asking.search`.

    Args:
        documents: They must be running.
        asked: What for.
        mode: One of `asking.Mode`.
    """
    wanted = Wanted(
        asked.query,
        Mode(mode),
        limit=whole(asked.limit, MOST_RESULTS),
        min_score=asked.min_score,
        collection=asked.collection or "",
    )
    return items_of(await search(documents, wanted))


def items_of(answer: Answer) -> list[ResultItem]:
    """The results of a search."""
    return [
        ResultItem(
            docid=found.entry.docid,
            file=found.entry.key,
            title=found.entry.title,
            score=rounded(found.score),
            context=found.context or None,
            snippet=answer.snippet_of(found).numbered,
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

"""Turns the values of the service into the models of `wire`."""

from datetime import UTC, datetime
from typing import Protocol

from vector_index_mcp.documents import lines
from vector_index_mcp.documents.asking import Answer, Mode, Wanted, rounded, search
from vector_index_mcp.documents.limits import MOST_RESULTS, whole
from vector_index_mcp.documents.retrieval import Text, TooLarge
from vector_index_mcp.documents.service import Documents
from vector_index_mcp.documents.state import CollectionState, State
from vector_index_mcp.documents.wire import (
    CollectionStatus,
    Document,
    IndexStatus,
    ResultItem,
    Skipped,
)
from vector_index_mcp.errors import counted

MIME_TYPE = "text/markdown"
_MOST_FAILED = 5  # files to name that cannot be read


class Request(Protocol):
    """The arguments of a search by MCP or REST."""

    query: str
    limit: float
    min_score: float
    collection: str | None


async def answer_to(documents: Documents, asked: Request, mode: str) -> Answer:
    """Run a search for a client; see `asking.search`.

    Args:
        documents: The documents; they must be running.
        asked: The arguments of the search.
        mode: A value of `asking.Mode`.
    """
    wanted = Wanted(
        asked.query,
        Mode(mode),
        limit=whole(asked.limit, MOST_RESULTS),
        min_score=asked.min_score,
        collection=asked.collection or "",
    )
    return await search(documents, wanted)


def items_of(answer: Answer) -> list[ResultItem]:
    """Return the results of a search for the wire."""
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
    """Return a document that was read for the wire."""
    return Document(
        uri=text.uri,
        name=text.key,
        title=text.title,
        mimeType=MIME_TYPE,
        text=text.with_context,
    )


def part_of(each: Text | TooLarge, *, is_rest: bool = False) -> Document | Skipped:
    """Return one of several documents, or the message in place of one that is too large."""
    if isinstance(each, TooLarge):
        return Skipped(text=lines.skipped(each.key, each.size, is_rest=is_rest))
    return document_of(each)


def status_of(state: State) -> IndexStatus:
    """Return the state of the index for the wire."""
    return IndexStatus(
        total_documents=state.documents,
        needs_embedding=state.unembedded,
        has_vector_index=state.has_vectors,
        collections=[*map(_collection, state.collections)],
    )


def problems_of(state: State) -> list[str]:
    """Return what is wrong with the index, with collections and with files, in sentences."""
    problems = [state.problem, *(each.problem for each in state.collections)]
    problems += state.failed[:_MOST_FAILED]
    if len(state.failed) > _MOST_FAILED:
        problems.append(f"{counted(len(state.failed) - _MOST_FAILED, 'more file')} cannot be read")
    return [each for each in problems if each]


def _collection(state: CollectionState) -> CollectionStatus:
    return CollectionStatus(
        name=state.collection.name,
        path=str(state.collection.path),
        pattern=state.collection.pattern,
        documents=state.documents,
        last_updated=iso(state.updated),
    )


def iso(time: datetime | None) -> str:
    """Return a time as JavaScript's toISOString writes it; the present time for None."""
    return (time or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")

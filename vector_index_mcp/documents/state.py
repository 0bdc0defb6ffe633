"""The state of the documents and of each collection, as the service reports it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from vector_index_mcp.documents import catalog
from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.files.scan import moment_of
from vector_index_mcp.indexing.ledger import Ledger


@dataclass(frozen=True, slots=True)
class CollectionState:
    """The state of one collection in the index."""

    collection: Collection
    documents: int
    updated: datetime | None
    """When its newest document was written; None if it has no documents."""
    problem: str
    """Why its folder cannot be indexed; empty if it can."""


@dataclass(frozen=True, slots=True)
class State:
    """The state of the index."""

    documents: int
    unembedded: int
    """The number of documents that lack vectors."""
    embedded_chunks: int
    has_vectors: bool
    collections: tuple[CollectionState, ...]
    problem: str
    """What is wrong with the index or the configuration; empty if nothing is."""
    size_bytes: int | None
    skipped: Mapping[str, int]
    """Files that are not indexed on purpose, by reason."""
    skipped_files: tuple[str, ...]
    """The first of them, and why."""
    failed: tuple[str, ...]
    """Files that could not be read, and why."""
    model: Mapping[str, object]
    """The embedding model's `state`, `name`, `dimension`, `precision` and `server`."""


def state_of(collection: Collection, ledger: Ledger, problem: str) -> CollectionState:
    """Return the state of a collection in the index that `ledger` knows."""
    entries = [*catalog.entries_of(ledger, collection.name)]
    newest = max((entry.modified for entry in entries), default=None)
    updated = None if newest is None else moment_of(newest)
    return CollectionState(collection, len(entries), updated, problem)

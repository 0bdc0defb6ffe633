"""Counts what an update has changed in each collection."""

from collections.abc import Mapping
from dataclasses import dataclass

from vector_index_mcp.documents.catalog import entry_at, keys_of
from vector_index_mcp.documents.configuration import Collection
from vector_index_mcp.indexing.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Update:
    """What an update has changed in one collection, in numbers of documents."""

    collection: Collection
    new: int
    updated: int
    unchanged: int
    removed: int
    pulled: str
    """The output of `git pull`; empty if it did not run."""


def seen(ledger: Ledger, name: str = "") -> dict[str, str]:
    """Return the content hashes of all documents, or of one collection, in the index, by key."""
    found = ((key, entry_at(ledger, key)) for key in keys_of(ledger, name))
    return {key: entry.record.content_hash for key, entry in found if entry is not None}


def update_of(
    collection: Collection, before: Mapping[str, str], ledger: Ledger, pulled: str
) -> Update:
    """Return what has changed in a collection since `seen` returned `before`."""
    now = seen(ledger, collection.name)
    top = f"{collection.name}/"
    before = {key: content for key, content in before.items() if key.startswith(top)}
    both = now.keys() & before.keys()
    updated = sum(now[key] != before[key] for key in both)
    return Update(
        collection,
        new=len(now.keys() - before.keys()),
        updated=updated,
        unchanged=len(both) - updated,
        removed=len(before.keys() - now.keys()),
        pulled=pulled,
    )

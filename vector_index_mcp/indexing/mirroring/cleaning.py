"""Removes snapshots and objects that no branch needs any more, while others publish and fetch.

A publishing job relies on objects of the snapshots that it saw when it began, and a machine may
fetch a snapshot while its branch gets a newer one. So a snapshot stays for hours after its branch
got a newer one, and an object stays for hours after it was written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from vector_index_mcp.errors import StorageError
from vector_index_mcp.indexing.mirroring import layout, limits
from vector_index_mcp.indexing.mirroring.layout import Snapshot
from vector_index_mcp.indexing.mirroring.reading import snapshot_named
from vector_index_mcp.objects.store import Entry, Objects

_SECONDS_PER_HOUR = 3_600
_AT_ONCE = 500


@dataclass(slots=True)
class Removed:
    """What a cleaning has removed."""

    count: int = 0
    """How many snapshots and objects."""
    size: int = 0
    """How many bytes."""


async def clean(objects: Objects, hours: float) -> Removed:
    """Remove snapshots that no branch has had for `hours`, and objects that no snapshot needs.

    Raises:
        StorageError: If the store refuses or is silent, or a document in it is invalid, so that
            nobody knows what is needed.
    """
    oldest = layout.current_time() - hours * _SECONDS_PER_HOUR
    removed = Removed()
    names = await _named_by_branches(objects)
    entries = [e for e in await objects.entries(layout.SNAPSHOTS) if layout.name_in(e.name)]
    if entries and not names:
        raise StorageError(f"{objects.uri} has snapshots, but no branch: nothing is removed there")
    snapshots = {entry.name: await _read(objects, entry) for entry in entries}
    left = _superseded(snapshots, names, oldest)
    await _remove(objects, [e for e in entries if e.name in left], removed)
    needed = {
        blob.name
        for name, snapshot in snapshots.items()
        if snapshot is not None and name not in left
        for blob in snapshot.blobs.values()
    }
    unused = [
        entry
        for entry in await objects.entries(layout.OBJECTS)
        if entry.name not in needed and entry.modified < oldest
    ]
    await _remove(objects, unused, removed)
    return removed


async def _named_by_branches(objects: Objects) -> set[str]:
    names = set()
    for entry in await objects.entries(layout.BRANCHES):
        content = await objects.get(entry.name, limits.LARGEST_BRANCH_BYTES)
        if content is not None:
            names.add(layout.snapshot_at(layout.loaded_branch(content.data)))
    return names


async def _read(objects: Objects, entry: Entry) -> Snapshot | None:
    """A snapshot; None if another job has just removed it."""
    name = layout.name_in(entry.name)
    assert name is not None
    return await snapshot_named(objects, name)


def _superseded(snapshots: dict[str, Snapshot | None], named: set[str], oldest: float) -> set[str]:
    """The names of snapshots that no branch has, and that had a successor before `oldest`. Pure."""
    left = set()
    for name, snapshot in snapshots.items():
        if snapshot is None or name in named:
            continue
        later = [
            other.created
            for other in snapshots.values()
            if other and other.branch == snapshot.branch and other.created > snapshot.created
        ]
        # The branch had this snapshot at least until the next one was made.
        if min(later, default=snapshot.created) < oldest:
            left.add(name)
    return left


async def _remove(objects: Objects, entries: Sequence[Entry], removed: Removed) -> None:
    for start in range(0, len(entries), _AT_ONCE):
        portion = entries[start : start + _AT_ONCE]
        await objects.delete([entry.name for entry in portion])
        removed.count += len(portion)
        removed.size += sum(entry.size for entry in portion)

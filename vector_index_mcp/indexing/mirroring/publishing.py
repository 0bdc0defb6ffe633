"""Publishes an index: first its new objects, then the snapshot that names them, then the branch.

In this order, whatever a document names exists, even if several jobs publish at once and some of
them are killed. The last job wins the branch, unless it has an earlier commit than the published
one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.foreign import parts_of
from vector_index_mcp.engine.store.tables import table_names
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import DamagedIndexError, StorageError, StoreError, counted
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.mirroring import layout, limits, records
from vector_index_mcp.indexing.mirroring.layout import Blob, Made, Snapshot
from vector_index_mcp.indexing.mirroring.reading import snapshot_of
from vector_index_mcp.indexing.stamps import digest_of
from vector_index_mcp.objects.store import Content, Objects, at_once

_LEAST_COMMON = 0.2
"""The share of the files that two states of one project have in common at least."""
_TRIES = 20  # to write the branch's document, while other jobs write it, too


@dataclass(frozen=True, slots=True)
class State:
    """The state of a project that is published: a branch at a commit."""

    branch: str
    commit: str
    """Empty if it is unknown."""
    bases: tuple[str, ...] = ()
    """Branches from which this one may have been made; their objects need no second upload."""


@dataclass(slots=True)
class Published:
    """The result of a publishing job."""

    branch: str
    commit: str
    snapshot: str
    """The name of the snapshot that the branch has now."""
    behind: str = ""
    """The commit that the branch has, if it is later than ours and was therefore kept."""
    files: int = 0
    """How many files of the project are indexed."""
    chunks: int = 0
    size: int = 0
    """The size of the whole index, in bytes."""
    uploaded: int = 0
    """How many objects were uploaded."""
    uploaded_bytes: int = 0
    removed: int = 0
    """How many unused objects and snapshots were removed."""
    removed_bytes: int = 0
    vectors_shared: int = 0
    """How many vectors were written to the team's store of vectors, if there is one."""
    problems: list[str] = field(default_factory=list)
    """Errors that happened after the index was published."""


IsAncestor = Callable[[str, str], bool]
"""Whether the first commit is the second one, or an ancestor of it, as far as is known. Blocks."""


async def ahead_of(objects: Objects, state: State, is_ancestor: IsAncestor) -> Published | None:
    """The published snapshot of the branch, if it has a later commit than `state`; else None.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    found = await _current(objects, state.branch)
    if found is None or not await _is_behind(state, found[1], is_ancestor):
        return None
    return _done(state, *found, behind=found[1].commit)


async def publish(objects: Objects, live: Live, state: State, is_ancestor: IsAncestor) -> Published:
    """Publish an index that is complete, and that nobody writes meanwhile.

    Raises:
        StorageError: If the store refuses or is silent.
        StoreError: If the index cannot be read or is empty, if no machine would accept it, or if
            another project is published there.
    """
    before = await _current(objects, state.branch)
    base = before or await _first_current(objects, state.bases)
    files = await _given_away(live, {} if base is None else base[1].files)
    found = records.published(record for record, _ in live.ledger.all())
    document = records.dumped(found)
    model = live.index.manifest.model
    if model is None or not found:
        raise StoreError("there is nothing to publish: no file has been indexed")
    snapshot = Snapshot(
        branch=state.branch,
        commit=state.commit,
        made=Made(schema.FORMAT, live.index.manifest.chunker, model),
        files={path: blob for path, (_, blob) in files.items()},
        records=await anyio.to_thread.run_sync(_blob_of, document),
        file_count=len(found),
        chunk_count=live.ledger.chunk_count,
        created=int(layout.current_time()),
    )
    layout.check(snapshot)
    is_same = before is not None and before[1].holds_what(snapshot)
    if before is not None and is_same and before[1].commit == state.commit:
        return _done(state, *before)
    if before is not None and not is_same:
        await _check_is_same_project(objects, before[1], snapshot, found, is_ancestor)
    places = {blob.digest: place for place, blob in files.values()}
    upload = _Upload(objects, snapshot, places, document)
    await upload.run({} if base is None else base[1].blobs)
    # Set the time only now: cleaning counts the hours of the former snapshot from this moment.
    snapshot = replace(snapshot, created=int(layout.current_time()))
    name = layout.new_name(snapshot.created)
    await objects.put(layout.snapshot_at(name), snapshot.dumped())
    # Meanwhile, another job may have removed objects, not knowing that this snapshot needs them.
    await upload.run(await _there(objects))
    published = await _point(objects, state, name, snapshot, is_ancestor)
    published.uploaded, published.uploaded_bytes = upload.count, upload.size
    return published


async def _current(objects: Objects, branch: str) -> tuple[str, Snapshot] | None:
    """The snapshot of a branch, with its name; None if there is none, or none that can be read.

    Raises:
        StorageError: If the store refuses or is silent.
    """
    try:
        return await snapshot_of(objects, branch)
    except StorageError as error:
        if error.problem is not None:  # an error of the store, not of the document
            raise
        return None


async def _first_current(objects: Objects, branches: Sequence[str]) -> tuple[str, Snapshot] | None:
    for branch in branches:
        if found := await _current(objects, branch):
            return found
    return None


async def _is_behind(state: State, published: Snapshot, is_ancestor: IsAncestor) -> bool:
    if not state.commit or state.commit == published.commit:
        return False
    return await anyio.to_thread.run_sync(is_ancestor, state.commit, published.commit)


async def _check_is_same_project(
    objects: Objects,
    published: Snapshot,
    ours: Snapshot,
    found: Sequence[FileRecord],
    is_ancestor: IsAncestor,
) -> None:
    """Check that our snapshot has files of the published one, by their paths or their texts.

    Nobody would find out otherwise that a project has taken the place of another one. Most projects
    have a README.md and the like, so a few common files say nothing.

    Raises:
        StorageError: If the store refuses or is silent.
        StoreError: If they have too little in common.
    """
    if await anyio.to_thread.run_sync(is_ancestor, published.commit, ours.commit):
        return
    content = await objects.get(published.records.name, published.records.size)
    try:
        theirs = records.loaded(content.data) if content is not None else []
    except DamagedIndexError:  # then it is of no use to anybody, and is replaced
        return
    known = {mark for record in theirs for mark in (record.key, record.content_hash)}
    common = sum(r.key in known or r.content_hash in known for r in found)
    if theirs and common <= _LEAST_COMMON * min(len(theirs), len(found)):
        raise StoreError(
            f"what is published there ({published.description}, {counted(len(theirs), 'file')}) "
            f"has {counted(common, 'file')} in common with this project; publish each project to "
            "a place of its own, or remove what is there"
        )


async def _given_away(live: Live, published: Mapping[str, Blob]) -> Mapping[str, tuple[Path, Blob]]:
    """The files of the table of chunks, rewritten so that they contain no deleted rows.

    If exactly the same files are `published` already, they were rewritten before and stay as they
    are, so that others need not fetch them again.
    """
    files = await _files_of(live)
    if {path: blob for path, (_, blob) in files.items()} == published:
        return files
    await live.index.store.renew()
    return await _files_of(live)


async def _files_of(live: Live) -> Mapping[str, tuple[Path, Blob]]:
    """The files of the table of chunks, by their paths in the table's folder."""
    table = Path(live.index.uri, f"{table_names(live.index.manifest.generation)[0]}.lance")

    def found() -> dict[str, tuple[Path, Blob]]:
        paths = {part: table / part for part in parts_of(table)}
        return {
            part: (path, Blob(digest_of(str(path)), path.stat().st_size))
            for part, path in paths.items()
        }

    return await anyio.to_thread.run_sync(found)


def _blob_of(data: bytes) -> Blob:
    return Blob(layout.digest(data), len(data))


class _Upload:
    """Uploads the files of one snapshot to a store, and counts them."""

    def __init__(
        self, objects: Objects, snapshot: Snapshot, places: Mapping[str, Path], document: bytes
    ) -> None:
        self.count = self.size = 0
        self._objects = objects
        self._snapshot = snapshot
        self._places = places
        self._document = document

    async def run(self, there: Mapping[str, Blob]) -> None:
        """Upload the files that are not in `there`, which has the existing objects by digest.

        Raises:
            StorageError: If the store refuses or is silent.
        """
        missing = [blob for digest, blob in self._snapshot.blobs.items() if digest not in there]
        await at_once((partial(self._put, blob) for blob in missing), limits.AT_ONCE)

    async def _put(self, blob: Blob) -> None:
        if blob == self._snapshot.records:
            await self._objects.put(blob.name, self._document)
        else:
            await self._objects.upload(self._places[blob.digest], blob.name)
        self.count += 1
        self.size += blob.size


async def _there(objects: Objects) -> dict[str, Blob]:
    """The objects that are in a store, by digest."""
    entries = await objects.entries(layout.OBJECTS)
    blobs = (Blob(entry.name.rpartition("/")[2], entry.size) for entry in entries)
    return {blob.digest: blob for blob in blobs}


async def _point(
    objects: Objects, state: State, name: str, snapshot: Snapshot, is_ancestor: IsAncestor
) -> Published:
    """Have the branch name a snapshot, unless it has a snapshot of a later commit by now."""
    place, document = layout.branch_at(state.branch), layout.dumped_branch(name)
    for _ in range(_TRIES):
        content = await objects.get(place, limits.LARGEST_BRANCH_BYTES)
        if content is not None and content.data == document:  # written, but the answer was lost
            return _done(state, name, snapshot)
        found = await _current(objects, state.branch) if content is not None else None
        if found is not None and await _is_behind(state, found[1], is_ancestor):
            return _done(state, *found, behind=found[1].commit)
        if await _written(objects, place, document, content):
            return _done(state, name, snapshot)
    raise StorageError(f"too many jobs publish branch {state.branch} at once; try again")


async def _written(objects: Objects, place: str, document: bytes, content: Content | None) -> bool:
    if content is None:
        return await objects.put_new(place, document) is not None
    return await objects.replace(place, document, content.tag) is not None


def _done(state: State, name: str, snapshot: Snapshot, behind: str = "") -> Published:
    return Published(
        state.branch,
        state.commit,
        name,
        behind,
        files=snapshot.file_count,
        chunks=snapshot.chunk_count,
        size=snapshot.size,
    )

"""Publishes an index: what others do not have yet, then what says which files it is, then whose.

Several jobs may do so at once, and any of them may be killed: what is named is there. Whoever
comes last has the branch, unless its commit lies before the one that is published.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.foreign import parts_of
from vector_index_mcp.engine.store.tables import table_names
from vector_index_mcp.errors import StorageError, StoreError
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.mirroring import layout, limits, records
from vector_index_mcp.indexing.mirroring.layout import Blob, Made, Snapshot
from vector_index_mcp.indexing.mirroring.reading import snapshot_of
from vector_index_mcp.indexing.stamps import digest_of
from vector_index_mcp.objects.store import Content, Objects, at_once

_TRIES = 20  # of one job, while others publish the same branch


@dataclass(frozen=True, slots=True)
class State:
    """What is published: the files of a branch at a commit."""

    branch: str
    commit: str
    """Empty if nobody knows."""
    bases: tuple[str, ...] = ()
    """Branches from which this one may have been made."""


@dataclass(slots=True)
class Published:
    """What a job has done."""

    branch: str
    commit: str
    snapshot: str
    """The name of the one that the branch has now."""
    behind: str = ""
    """The commit that the branch has, if it is a later one and was left there."""
    files: int = 0
    """Of the project, that were indexed."""
    chunks: int = 0
    size: int = 0
    """Of the whole index, in bytes."""
    uploaded: int = 0
    """Objects."""
    uploaded_bytes: int = 0
    removed: int = 0
    """Objects and snapshots that nobody needs any more."""
    removed_bytes: int = 0
    vectors_shared: int = 0
    """Written into the team's store of vectors, if there is one."""
    problems: list[str] = field(default_factory=list)
    """What went wrong after the index was published."""


IsAncestor = Callable[[str, str], bool]
"""Whether a commit is another one or lies before it, as far as that can be told. Blocks."""


async def ahead_of(objects: Objects, state: State, is_ancestor: IsAncestor) -> Published | None:
    """What is published already of a later commit; None if nothing is.

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
        StoreError: If the index cannot be read, is empty, or is what nobody would fetch.
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
    places = {blob.digest: place for place, blob in files.values()}
    upload = _Upload(objects, snapshot, places, document)
    await upload.run({} if base is None else base[1].blobs)
    # Not before: until now the branch had another one, which stays for hours after this.
    snapshot = replace(snapshot, created=int(layout.current_time()))
    name = layout.new_name(snapshot.created)
    await objects.put(layout.snapshot_at(name), snapshot.dumped())
    # Somebody may have tidied up who did not know of this snapshot yet.
    await upload.run(await _there(objects))
    published = await _point(objects, state, name, snapshot, is_ancestor)
    published.uploaded, published.uploaded_bytes = upload.count, upload.size
    return published


async def _current(objects: Objects, branch: str) -> tuple[str, Snapshot] | None:
    """The snapshot that a branch has; None if it has none that this program understands."""
    try:
        return await snapshot_of(objects, branch)
    except StorageError as error:
        if error.problem is not None:  # the store's
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


async def _given_away(live: Live, published: Mapping[str, Blob]) -> Mapping[str, tuple[Path, Blob]]:
    """The files of the table of chunks, without anything of what was ever deleted from it.

    Those that are `published` as they are went through this, and stay: others have them already.
    """
    files = await _files_of(live)
    if {path: blob for path, (_, blob) in files.items()} == published:
        return files
    await live.index.store.renew()
    return await _files_of(live)


async def _files_of(live: Live) -> Mapping[str, tuple[Path, Blob]]:
    """The files of the table of chunks, by their paths in it."""
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
    """The files of one snapshot on their way into a store."""

    def __init__(
        self, objects: Objects, snapshot: Snapshot, places: Mapping[str, Path], document: bytes
    ) -> None:
        self.count = self.size = 0
        self._objects = objects
        self._snapshot = snapshot
        self._places = places
        self._document = document

    async def run(self, there: Mapping[str, Blob]) -> None:
        """Upload what is not among `there`, by digest.

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
    """Give the branch a snapshot, unless it has that of a later commit by now."""
    place, document = layout.branch_at(state.branch), layout.dumped_branch(name)
    for _ in range(_TRIES):
        content = await objects.get(place, limits.LARGEST_BRANCH_BYTES)
        if content is not None and content.data == document:  # an answer was lost on its way
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

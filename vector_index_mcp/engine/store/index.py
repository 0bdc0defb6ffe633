"""The index of one project: its manifest, and the current generation of its tables.

The table `manifest` has one row with a JSON document, which one atomic commit replaces. A rebuild
fills the tables of the next generation while the current one answers; then the manifest names the
next one. Tables that the manifest does not name are left over, and are dropped at the next start or
rebuild. If several machines can write, all this is fenced (see `fencing`).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Self

import anyio.to_thread
import lancedb
import pyarrow as pa

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.entries import (
    TABLE,
    Written,
    check_plain,
    prepare_folder,
    remove_tables,
    size_of,
)
from vector_index_mcp.engine.store.fencing import fence, first_generation, may_be_dropped
from vector_index_mcp.engine.store.newest import Newest
from vector_index_mcp.engine.store.pinned import unpin
from vector_index_mcp.engine.store.reach import Reach, is_local, to_the_end
from vector_index_mcp.engine.store.store import Store
from vector_index_mcp.engine.store.tables import connect, table_names
from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.errors import DamagedIndexError, OtherVersionError, Problem, StoreError

_MANIFEST = "manifest"
_NO_SERVER = Server()
_LARGEST_GENERATION = 10**15 - 1
_LARGEST_DIMENSION = 1_000_000_000
_MANIFEST_SCHEMA = pa.schema([pa.field("json", pa.string(), nullable=False)])


@dataclass(frozen=True, slots=True)
class Manifest:
    """The owner of an index, its current generation, and the versions that made it."""

    owner: str
    """The owner of the texts: a folder's path; a name if other machines can reach the index."""
    chunker: str
    """The chunker's version and parameters; another one cuts the same text differently."""
    generation: int = 0
    model: ModelIdentity | None = None
    """The model of the column `vector`; None until the first chunk is embedded."""
    format: int = schema.FORMAT
    folders: Mapping[str, str] = field(default_factory=dict)
    """By folder name, the version of how the folder's files are read."""


class Index:
    """The current store and its manifest. Only one process at a time may call writing methods."""

    def __init__(self, reach: Reach, manifest: Manifest, store: Store) -> None:
        self.uri = reach.uri
        self.manifest = manifest
        self.store = store
        self._reach = reach
        self._pinned = reach.pinned
        self._table: lancedb.AsyncTable | None = None  # the manifest's, unless it is local
        self._written = Written(Path(reach.uri))
        self._newest = Newest([Path(reach.uri, f"{_MANIFEST}.lance")] if reach.is_local else [])

    @classmethod
    async def open(
        cls,
        uri: str,
        turn: int | None = None,
        server: Server = _NO_SERVER,
        *,
        writes: bool = False,
    ) -> Self | None:
        """Open the index at `uri`; None if there is none yet.

        Args:
            uri: Where the index lies.
            turn: The number of the writer's lease, to write to an index that other machines can
                reach; earlier writers cannot write after this. None to read.
            server: How to connect to LanceDB's own server, if the index lies on one.
            writes: Whether to hold a local folder, so that no write makes it again; see `pinned`.

        Raises:
            DamagedIndexError: If there is an index and it cannot be read.
            OtherVersionError: If it has another format.
            StoreError: If the place cannot be reached.
        """
        reach = Reach(uri, turn, server)
        with reach.asked("opening"):
            if reach.is_local and not await anyio.Path(uri).is_dir():
                return None
        reach = await reach.in_this_folder() if writes else reach
        index = None
        try:
            index = await cls._at(reach)
        finally:
            if index is None:
                unpin(reach.pinned)
        return index

    @classmethod
    async def _at(cls, reach: Reach) -> Self | None:
        found = await _read_manifest(reach)
        if found is None:
            return None
        manifest, table = found
        if manifest.format not in schema.READABLE_FORMATS:
            raise OtherVersionError(
                f"the index at {reach.uri} was written by another version of this program",
                Problem.INDEX_DAMAGED,
            )
        if reach.is_fenced:
            await _fence(reach, manifest)
        index = cls(reach, manifest, await Store.open(reach, manifest.generation))
        index._table = None if reach.is_local else table
        await index._newest.note()
        return index

    def check(self, *, each_file: bool = False) -> None:
        """Check that nobody else has changed the index. Hold the writer's lock. Blocks.

        Args:
            each_file: Whether to find files, too, that were changed in their places.

        Raises:
            StoreError: If somebody has, or if it cannot be read.
        """
        if self._reach.is_local:
            with self._reach.asked("reading"):
                self._written.look() if each_file else check_plain(Path(self.uri))
        if not (self._newest.is_as_left and self.store.is_as_left):
            what = "another program has changed the index's files"
            raise DamagedIndexError(what, Problem.INDEX_DAMAGED)

    async def is_current(self) -> bool:
        """Return whether the manifest is unchanged; for readers of an index elsewhere."""
        if self._table is None:
            return False
        with self._reach.asked("searching"):
            return await _manifest_in(self._table) == self.manifest

    @classmethod
    async def create(
        cls,
        uri: str,
        manifest: Manifest,
        turn: int | None = None,
        server: Server = _NO_SERVER,
    ) -> Self:
        """Make a new, empty index at `uri`, replacing whatever index is there; see `open`."""
        reach = Reach(uri, turn, server)
        if reach.is_local:
            await anyio.to_thread.run_sync(
                partial(prepare_folder, Path(uri), home=Path(uri).parent)
            )
            reach = await reach.in_this_folder()
        if reach.is_fenced:
            generation = await _unused_generation(reach)
            manifest = replace(manifest, generation=generation)
        dimension = manifest.model.dimension if manifest.model else None
        store = await Store.create(reach, manifest.generation, dimension)
        index = cls(reach, manifest, store)
        await index._write_manifest(manifest)
        return index

    @classmethod
    async def assemble(cls, uri: str, manifest: Manifest, records: Sequence[FileRecord]) -> Self:
        """Make an index at `uri` around a table `chunks` that is already there.

        Args:
            uri: A local folder.
            manifest: A manifest of the first generation, with the model of the table's vectors.
            records: The records of the files.
        """
        reach = await Reach(uri).in_this_folder()
        store = await Store.assemble(reach, manifest.generation, records)
        index = cls(reach, manifest, store)
        await index._write_manifest(manifest)
        return index

    async def begin_rebuild(self) -> Store:
        """Create an empty store beside the current one, to be filled and passed to `swap`."""
        await self.drop_leftovers()
        generation = self.manifest.generation + 1
        if self._reach.is_fenced:
            generation = await _unused_generation(self._reach)
        return await Store.create(self._reach, generation, self.store.dimension)

    async def swap(self, rebuilt: Store, chunker: str) -> None:
        """Make `rebuilt` current.

        The old tables stay until the next start or rebuild, because searches may still be reading
        them: a dropped table would look damaged to them.
        """
        await self._write_manifest(
            replace(
                self.manifest,
                generation=rebuilt.generation,
                chunker=chunker,
                format=schema.FORMAT,  # the new tables have this format
            )
        )
        self.store = rebuilt

    async def set_model(self, model: ModelIdentity) -> None:
        """Prepare the store for the vectors of `model`; drop those of another model.

        The manifest is written last. After a kill in between, it names the old model while the
        vectors are empty, and the next start repeats this.
        """
        await self.store.set_dimension(model.dimension)
        await self._write_manifest(replace(self.manifest, model=model))

    async def adopt(self, owner: str) -> None:
        """Write into the manifest that the index now belongs to `owner`."""
        await self._write_manifest(replace(self.manifest, owner=owner))

    async def note_folders(self, folders: Mapping[str, str]) -> None:
        """Write into the manifest how each folder's files are read."""
        await self._write_manifest(replace(self.manifest, folders=dict(folders)))

    async def drop_leftovers(self) -> None:
        """Drop the tables of generations that are not current."""
        current = {_MANIFEST, *table_names(self.manifest.generation)}
        db = await connect(self._reach)
        with self._reach.asked("tidying"):
            for name, generation in await _tables_in(db):
                if name not in current and may_be_dropped(generation, self._reach.turn):
                    await db.drop_table(name, ignore_missing=True)
        db.close()

    async def size_bytes(self) -> int | None:
        """Return the bytes on disk; None for a remote URI, where measuring is expensive."""
        if not is_local(self.uri):
            return None
        return await anyio.to_thread.run_sync(size_of, Path(self.uri))

    def close(self) -> None:
        """Release the files the tables hold open, and the folder."""
        self.store.close()
        self.let_go(at_once=False)

    def let_go(self, *, at_once: bool = True) -> None:
        """Release the folder, at once or when nobody uses it; what still uses it then fails."""
        path, self._pinned = self._pinned, ""
        unpin(path, at_once=at_once)

    async def _write_manifest(self, manifest: Manifest) -> None:
        fields = asdict(manifest)
        if not manifest.folders:  # earlier versions do not know this field
            del fields["folders"]
        row = pa.table({"json": [json.dumps(fields)]}, schema=_MANIFEST_SCHEMA)
        if self._reach.is_fenced:
            await self._write_fenced(row)
        else:
            db = await connect(self._reach)
            with self._reach.asked("writing"):
                await db.create_table(_MANIFEST, row, mode="overwrite")
            db.close()
            await self._newest.note()
        self.manifest = manifest

    async def _write_fenced(self, row: pa.Table) -> None:
        """Write the manifest with the table opened in this turn: one opened later is not fenced."""
        if self._table is None:
            db = await connect(self._reach)
            with self._reach.asked("writing"):
                if _MANIFEST not in dict(await _tables_in(db)):
                    self._table = await db.create_table(_MANIFEST, row, mode="create")
                    return
                self._table = await to_the_end(db.open_table(_MANIFEST))
        with self._reach.asked("writing"):
            if await self._table.count_rows() == 1:
                await self._table.update({"json": row.column("json")[0].as_py()})
            else:  # a damaged manifest, which a new index replaces
                await self._table.delete("true")
                await self._table.add(row)


async def discard(uri: str) -> None:
    """Remove the tables of a local index; nothing else in its folder, and nothing through a link.

    Raises:
        StoreError: If the index is not in a local folder.
    """
    if not is_local(uri):
        raise StoreError(f"the index at {uri} cannot be read", Problem.INDEX_UNREADABLE)
    await anyio.to_thread.run_sync(remove_tables, Path(uri))


async def owner_of(uri: str, server: Server = _NO_SERVER) -> str | None:
    """Return the owner of the index at `uri`; None if there is no index. Changes nothing.

    Raises:
        DamagedIndexError: If there is an index and it cannot be read.
        StoreError: If the place cannot be reached.
    """
    found = await _read_manifest(Reach(uri, None, server))
    return None if found is None else found[0].owner


async def _read_manifest(reach: Reach) -> tuple[Manifest, lancedb.AsyncTable] | None:
    """Read the manifest and return it with its table; None if there is none. A writer fences it."""
    db = await connect(reach)
    with reach.asked("opening"):
        if _MANIFEST not in dict(await _tables_in(db)):
            return None
        table = await to_the_end(db.open_table(_MANIFEST))
    if reach.is_fenced:  # before reading, so that nobody else swaps the tables afterwards
        with reach.asked("taking over"):
            await fence(table)
    with reach.asked("opening"):
        manifest = await _manifest_in(table)
    if reach.is_local:
        db.close()
    return manifest, table


async def _manifest_in(table: lancedb.AsyncTable) -> Manifest:
    rows = await to_the_end(table.query().limit(1).to_list())
    return manifest_of(rows[0]["json"] if rows else "")


async def _fence(reach: Reach, manifest: Manifest) -> None:
    db = await connect(reach)
    with reach.asked("taking over"):
        for name in table_names(manifest.generation):
            await fence(await to_the_end(db.open_table(name)))


async def _tables_in(db: lancedb.AsyncConnection) -> list[tuple[str, int]]:
    """Return the names of the tables of an index, each with its generation."""
    names = (await db.list_tables()).tables or []
    found = ((name, TABLE.fullmatch(name)) for name in names)
    return [(name, int(match["generation"] or 0)) for name, match in found if match is not None]


async def _unused_generation(reach: Reach) -> int:
    """Return a generation whose tables no other writer has made or will make."""
    db = await connect(reach)
    with reach.asked("opening"):
        used = [generation for _, generation in await _tables_in(db)]
    return max([first_generation(reach.turn), *(number + 1 for number in used)])


def manifest_of(text: str) -> Manifest:
    """Return the manifest in `text`; of an unknown format, only the format is read. Pure.

    Raises:
        DamagedIndexError: If the text is not a valid manifest.
    """
    try:
        fields = json.loads(text)
        if type(fields["format"]) is not int:
            raise TypeError("its format is no number")
        if fields["format"] not in schema.READABLE_FORMATS:
            return Manifest(owner="", chunker="", format=fields["format"])
        model = fields["model"] and ModelIdentity(**fields["model"])
        manifest = Manifest(**{**fields, "model": model})
        _check(manifest)
    # RecursionError: an index may come with a cloned project and be malicious.
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise DamagedIndexError(
            f"the manifest of the index is unreadable ({error})", Problem.INDEX_DAMAGED
        ) from error
    return manifest


def _check(manifest: Manifest) -> None:
    model = manifest.model or ModelIdentity("", "", 1)
    folders = (*manifest.folders, *manifest.folders.values())
    texts = (manifest.owner, manifest.chunker, model.name, model.digest, *folders)
    numbers = (manifest.generation, model.dimension)
    bytes.fromhex(model.digest)
    if {type(text) for text in texts} != {str} or {type(number) for number in numbers} != {int}:
        raise TypeError("a value is of another type")
    if not 0 <= manifest.generation <= _LARGEST_GENERATION:
        raise ValueError("the generation is out of range")
    if not 0 < model.dimension <= _LARGEST_DIMENSION:
        raise ValueError("the dimension is out of range")

"""The index of one project: which generation of the tables is current, and what made it.

The table `manifest` has one row, a JSON document, and is replaced by one atomic commit. A rebuild
fills the tables of the next generation while the current one answers; naming it in the manifest
is the swap. Tables that the manifest does not name are left-overs, dropped at the next start or
rebuild. Where several machines can write, all this is fenced, see `fencing`.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Self

import anyio.to_thread
import lancedb
import pyarrow as pa

from vector_index_mcp.engine.store import schema
from vector_index_mcp.engine.store.fencing import fence, first_generation, may_be_dropped
from vector_index_mcp.engine.store.reach import Reach, is_local
from vector_index_mcp.engine.store.store import Store
from vector_index_mcp.engine.store.tables import connect, table_names
from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.engine.types import FileRecord, ModelIdentity
from vector_index_mcp.errors import DamagedIndexError, Problem, StorageError, StoreError

_MANIFEST = "manifest"
_NO_SERVER = Server()
_TABLE = re.compile(
    r"(?:(?:chunks|files)(?:_(?P<generation>[0-9]{1,15}))?|manifest)(?P<ending>\.lance)?"
)
_DELETE = 0x7F
_LARGEST_GENERATION = 10**15 - 1
_LARGEST_DIMENSION = 1_000_000_000
_MANIFEST_SCHEMA = pa.schema([pa.field("json", pa.string(), nullable=False)])


@dataclass(frozen=True, slots=True)
class Manifest:
    """What made the index."""

    owner: str
    """Whose texts these are: a path, or for an index that many machines reach a name."""
    chunker: str
    """The chunker's version and parameters; another one cuts the same text differently."""
    generation: int = 0
    model: ModelIdentity | None = None
    """Whose vectors the column `vector` holds; None until the first is embedded."""
    format: int = schema.FORMAT
    folders: Mapping[str, str] = field(default_factory=dict)
    """By the name of a part of the texts, a version of how that part is read."""


class Index:
    """The current store and its manifest. One process at a time may use the writing methods."""

    def __init__(self, reach: Reach, manifest: Manifest, store: Store) -> None:
        self.uri = reach.uri
        self.manifest = manifest
        self.store = store
        self._reach = reach
        self._table: lancedb.AsyncTable | None = None  # of the manifest, if it lies elsewhere

    @classmethod
    async def open(
        cls, uri: str, turn: int | None = None, server: Server = _NO_SERVER
    ) -> Self | None:
        """Open the index at `uri`; None if there is none yet, or a local one of another format.

        Args:
            uri: Where it lies.
            turn: The number of the writer's lease, to write to an index that other machines can
                reach; then whoever wrote there before cannot any more. None to read.
            server: How it is asked, if it is LanceDB's own.

        Raises:
            DamagedIndexError: If there is one and it cannot be read.
            StoreError: If the place cannot be reached.
        """
        reach = Reach(uri, turn, server)
        with reach.asked("opening"):
            if reach.is_local and not await anyio.Path(uri).is_dir():
                return None
        found = await _read_manifest(reach)
        if found is None:
            return None
        manifest, table = found
        if manifest.format not in schema.READABLE_FORMATS:
            if reach.is_local:
                return None
            raise StoreError(
                f"the index at {uri} was written by another version of this program",
                Problem.INDEX_DAMAGED,
            )
        if reach.is_fenced:
            await _fence(reach, manifest)
        index = cls(reach, manifest, await Store.open(reach, manifest.generation))
        index._table = None if reach.is_local else table
        return index

    async def is_current(self) -> bool:
        """Whether the manifest still says what it said; for who only reads an index elsewhere."""
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
            await anyio.to_thread.run_sync(prepare_folder, Path(uri))
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
        """Make an index at `uri` of a table `chunks` that is there already, as it is.

        Args:
            uri: A local folder.
            manifest: Of the first generation, and with the model whose vectors the table has.
            records: What is known of the files.
        """
        reach = Reach(uri)
        store = await Store.assemble(reach, manifest.generation, records)
        index = cls(reach, manifest, store)
        await index._write_manifest(manifest)
        return index

    async def begin_rebuild(self) -> Store:
        """An empty store beside the current one, to be filled and handed to `swap`."""
        if is_local(self.uri):  # it may have been deleted under our hands
            await anyio.to_thread.run_sync(prepare_folder, Path(self.uri))
        await self.drop_leftovers()
        generation = self.manifest.generation + 1
        if self._reach.is_fenced:
            generation = await _unused_generation(self._reach)
        return await Store.create(self._reach, generation, self.store.dimension)

    async def swap(self, rebuilt: Store, chunker: str) -> None:
        """Make `rebuilt` current.

        The old tables stay until the next start or rebuild: searches may still be reading them,
        and to those a dropped table looks like a damaged one.
        """
        await self._write_manifest(
            replace(
                self.manifest,
                generation=rebuilt.generation,
                chunker=chunker,
                format=schema.FORMAT,  # its tables have just been made
            )
        )
        self.store = rebuilt

    async def set_model(self, model: ModelIdentity) -> None:
        """Make room for the vectors of `model`, dropping those of another.

        The manifest is written last: a kill in between leaves it naming the old model over empty
        vectors, and the next start does this again.
        """
        await self.store.set_dimension(model.dimension)
        await self._write_manifest(replace(self.manifest, model=model))

    async def adopt(self, owner: str) -> None:
        """Note that the texts now are those of `owner`."""
        await self._write_manifest(replace(self.manifest, owner=owner))

    async def note_folders(self, folders: Mapping[str, str]) -> None:
        """Note how the parts of the texts are read."""
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
        """Bytes on disk; None where that cannot be measured cheaply (a remote URI)."""
        if not is_local(self.uri):
            return None
        return await anyio.to_thread.run_sync(_folder_size, Path(self.uri))

    def close(self) -> None:
        """Release the files the tables hold open."""
        self.store.close()

    async def _write_manifest(self, manifest: Manifest) -> None:
        fields = asdict(manifest)
        if not manifest.folders:  # as earlier versions wrote it
            del fields["folders"]
        row = pa.table({"json": [json.dumps(fields)]}, schema=_MANIFEST_SCHEMA)
        if self._reach.is_fenced:
            await self._write_fenced(row)
        else:
            db = await connect(self._reach)
            with self._reach.asked("writing"):
                await db.create_table(_MANIFEST, row, mode="overwrite")
            db.close()
        self.manifest = manifest

    async def _write_fenced(self, row: pa.Table) -> None:
        """Write the manifest by a handle of this turn: nothing stops one that is opened later."""
        if self._table is None:
            db = await connect(self._reach)
            with self._reach.asked("writing"):
                if _MANIFEST not in dict(await _tables_in(db)):
                    self._table = await db.create_table(_MANIFEST, row, mode="create")
                    return
                self._table = await db.open_table(_MANIFEST)
        with self._reach.asked("writing"):
            if await self._table.count_rows() == 1:
                await self._table.update({"json": row.column("json")[0].as_py()})
            else:  # a damaged one, in place of which an index is made anew
                await self._table.delete("true")
                await self._table.add(row)


def can_hold(folder: str) -> bool:
    """Whether tables can lie in a folder: LanceDB takes no path with a control character."""
    try:
        return not any(byte < ord(" ") or byte == _DELETE for byte in folder.encode())
    except UnicodeEncodeError:  # bytes that are no text
        return False


async def discard(uri: str) -> None:
    """Remove the tables of a local index; nothing else in its folder, and nothing through a link.

    Raises:
        StoreError: If the index is not in a local folder.
    """
    if not is_local(uri):
        raise StoreError(f"the index at {uri} cannot be read", Problem.INDEX_UNREADABLE)
    await anyio.to_thread.run_sync(_remove_tables, Path(uri))


def is_table(name: str) -> bool:
    """Whether an entry of an index's folder is one of the tables that we make."""
    match = _TABLE.fullmatch(name)
    return match is not None and match["ending"] is not None


async def owner_of(uri: str, server: Server = _NO_SERVER) -> str | None:
    """Whose texts are in the index at `uri`; None if there is none. Changes nothing.

    Raises:
        DamagedIndexError: If there is one and it cannot be read.
        StoreError: If the place cannot be reached.
    """
    found = await _read_manifest(Reach(uri, None, server))
    return None if found is None else found[0].owner


async def _read_manifest(reach: Reach) -> tuple[Manifest, lancedb.AsyncTable] | None:
    """The manifest and its table, from now on that of this turn; None if there is none."""
    db = await connect(reach)
    with reach.asked("opening"):
        if _MANIFEST not in dict(await _tables_in(db)):
            return None
        table = await db.open_table(_MANIFEST)
    if reach.is_fenced:  # before it is read: then nobody swaps the tables any more
        with reach.asked("taking over"):
            await fence(table)
    with reach.asked("opening"):
        manifest = await _manifest_in(table)
    if reach.is_local:
        db.close()
    return manifest, table


async def _manifest_in(table: lancedb.AsyncTable) -> Manifest:
    rows = await table.query().limit(1).to_list()
    return manifest_of(rows[0]["json"] if rows else "")


async def _fence(reach: Reach, manifest: Manifest) -> None:
    db = await connect(reach)
    with reach.asked("taking over"):
        for name in table_names(manifest.generation):
            await fence(await db.open_table(name))


async def _tables_in(db: lancedb.AsyncConnection) -> list[tuple[str, int]]:
    """The tables of an index, each with its generation."""
    names = (await db.list_tables()).tables or []
    found = ((name, _TABLE.fullmatch(name)) for name in names)
    return [(name, int(match["generation"] or 0)) for name, match in found if match is not None]


async def _unused_generation(reach: Reach) -> int:
    """The number of tables that no other writer has made or will make."""
    db = await connect(reach)
    with reach.asked("opening"):
        used = [generation for _, generation in await _tables_in(db)]
    return max([first_generation(reach.turn), *(number + 1 for number in used)])


def manifest_of(text: str) -> Manifest:
    """The manifest that `text` holds; of another format, only that. Pure.

    Raises:
        DamagedIndexError: If it makes no sense.
    """
    try:
        fields = json.loads(text)
        if fields["format"] not in schema.READABLE_FORMATS:
            return Manifest(owner="", chunker="", format=fields["format"])
        model = fields["model"] and ModelIdentity(**fields["model"])
        manifest = Manifest(**{**fields, "model": model})
        _check(manifest)
    # RecursionError: an index may come with a project, and be made to be opened.
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


def prepare_folder(folder: Path, own_names: Collection[str] = ()) -> None:
    """Make the folder of a local index, hidden from git.

    Args:
        folder: Where it lies.
        own_names: Of files that are ours beside the tables.

    Raises:
        StoreError: If it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # A folder that was there before, with other things in it, is its owner's to ignore.
        if all(is_table(entry.name) or entry.name in own_names for entry in folder.iterdir()):
            # Never over a file that is there: it may be a link to another one.
            _write_new(folder / ".gitignore", "*\n")
    except OSError as error:
        raise StorageError(
            f"the index folder {folder} cannot be written ({error.strerror})",
            Problem.INDEX_UNWRITABLE,
        ) from error


def _write_new(path: Path, text: str) -> None:
    with contextlib.suppress(FileExistsError), path.open("x", encoding="utf-8") as file:
        file.write(text)


def _remove_tables(folder: Path) -> None:
    for table in filter(lambda entry: is_table(entry.name), folder.glob("*")):
        if table.is_symlink() or not table.is_dir():
            table.unlink(missing_ok=True)
        else:
            shutil.rmtree(table, ignore_errors=True)


def _folder_size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):  # unlike rglob, indifferent to folders that vanish
        for name in names:
            with contextlib.suppress(OSError):  # removed by a commit meanwhile
                total += Path(place, name).stat().st_size
    return total

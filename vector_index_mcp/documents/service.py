"""The documents of a user: keeps the collections of the configuration indexed, and searches them.

It does not know who asks, or how: a server calls its methods while it is `running`.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio
import anyio.to_thread

from vector_index_mcp.documents import catalog, editing, pulling, updating
from vector_index_mcp.documents.configuration import Collection, Configuration, read, stamp_of
from vector_index_mcp.documents.folders import dropped, folder_of, linked_now, renamed
from vector_index_mcp.documents.home import Home
from vector_index_mcp.documents.language_model import LanguageModel
from vector_index_mcp.documents.operations import Operations
from vector_index_mcp.documents.state import State, state_of
from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.types import FileRecord
from vector_index_mcp.errors import BusyError, SettingsError, StoreError
from vector_index_mcp.files.folder import Folder, is_broad
from vector_index_mcp.indexing.answering.asking import wait_for_first_scan
from vector_index_mcp.indexing.derived import Derived
from vector_index_mcp.indexing.following import settle
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.reasons import SKIPPED
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.service import LiveIndex

_log = logging.getLogger(__name__)

_MOST_SKIPPED = 10  # skipped files that the status names
_LOOK_SECONDS = 0.5  # how often to check whether the configuration has changed
_SAVING_SECONDS = 0.5  # a file that has been the same for so long is not being saved
_LONGEST_PAUSE_SECONDS = 60.0  # the same, while errors of this program keep it from being checked
_TOO_BROAD = (
    "{} is a whole drive, a home folder or a system folder; name a folder in it, or set "
    "VECTOR_INDEX_ALLOW_BROAD_PATH=true if you mean it"
)


class Documents:
    """The documents of one configuration. Constructing it does nothing yet."""

    def __init__(
        self,
        home: Home,
        configuration: Configuration,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        language_model: LanguageModel | None = None,
        *,
        allow_broad: bool = False,
    ) -> None:
        """Set the parts up; nothing runs yet.

        Args:
            home: The places of the configuration and the index.
            configuration: The configuration as it was read.
            options: The user's settings for the index.
            embedder: Makes vectors.
            cache: Stores vectors.
            language_model: Rewords queries and ranks their hits; None if the user has set none.
            allow_broad: Whether a drive's root or a home folder may become a collection.
        """
        self._allow_broad = allow_broad
        self.home = home
        self.configuration = configuration
        self.problem = ""
        """Why the configuration cannot be read now; the last readable one stays in use."""
        self.operations = Operations()
        place, folders = Place(home.index, str(home.configuration)), self._folders_of(configuration)
        self.index = LiveIndex(folders.values(), place, options, embedder, cache)
        self.embedder = embedder
        self.language_model = language_model
        self._following = anyio.Lock()
        self._stamp: object = None
        self._links: Derived[catalog.LinkMap] = Derived()

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """Answer questions while the context lasts."""
        async with self.index.running(role), anyio.create_task_group() as tasks:
            if role is Role.KEEPER:
                tasks.start_soon(self._follow_forever)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether there is work; changes that are followed as they come are none."""
        return bool(self.operations.listed) or self.index.progress.is_lengthy

    @property
    def state(self) -> str:
        """The state of the index, in one word."""
        return self.index.state.current

    # -- the configuration -----------------------------------------------------------------

    async def _follow_forever(self) -> None:
        pause = _LOOK_SECONDS
        while True:
            try:
                await self.follow()
                pause = _LOOK_SECONDS
            except Exception:  # noqa: BLE001 - no collection may end the service
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                _log.exception("the collections cannot be followed; tried again in %.0f s", pause)
            await anyio.sleep(pause)

    async def follow(self, *, is_sure: bool = False) -> None:
        """Bring the index to the collections that the configuration lists now.

        A file by which the index would drop something is believed when it has not changed for a
        moment: whoever saves a file may empty it first, and write half of it at a time.

        Args:
            is_sure: Whether the file is believed at once.
        """
        async with self._following:
            stamp = await anyio.to_thread.run_sync(stamp_of, self.home.configuration)
            if stamp == self._stamp:
                await self._follow_links()
                return
            try:
                found, folders = await anyio.to_thread.run_sync(self._read)
            except SettingsError as error:
                self.problem = str(error)
                _log.warning("%s", error)
            else:
                if not is_sure and await self._is_being_saved(folders, stamp):
                    return
                self.problem = ""
                self._apply(found, folders)
            self._stamp = stamp

    async def _is_being_saved(self, wanted: dict[str, Folder], stamp: object) -> bool:
        """Return whether a file by which the index would drop something changes in a moment."""
        if not dropped(self.index.folders.by_name, wanted):
            return False
        await anyio.sleep(_SAVING_SECONDS)
        return stamp != await anyio.to_thread.run_sync(stamp_of, self.home.configuration)

    async def _follow_links(self) -> None:
        known = self.index.folders.by_name
        now = await linked_now(known, self.configuration.collections, self.index.looks)
        if now != known:
            now = {name: folder for name, folder in now.items() if self._may_be_indexed(folder)}
            self._apply(self.configuration, now)

    def _read(self) -> tuple[Configuration, dict[str, Folder]]:
        found = read(self.home.configuration)
        return found, self._folders_of(found)

    def _folders_of(self, configuration: Configuration) -> dict[str, Folder]:
        """Return the folders of the collections that may be indexed, by name."""
        folders = {c.name: folder_of(c) for c in configuration.collections}
        return {name: f for name, f in folders.items() if self._may_be_indexed(f)}

    def _may_be_indexed(self, folder: Folder) -> bool:
        return self._allow_broad or not is_broad(folder.path)

    def _apply(self, found: Configuration, wanted: dict[str, Folder]) -> None:
        known = self.index.folders.by_name
        for name, new in renamed(known, wanted).items():
            self.index.rename_folder(name, new)
        for name in dropped(known, wanted):
            self.index.remove_folder(name)
        left = self.index.folders.by_name
        for name, folder in wanted.items():
            if name not in left:
                self.index.add_folder(folder)
        self.configuration = found

    async def _edit(self, change: Callable[..., None], *arguments: object) -> None:
        """Change the configuration's file, and the index with it."""
        await anyio.to_thread.run_sync(change, self.home.configuration, *arguments)
        await self.follow(is_sure=True)

    async def add(self, collection: Collection) -> int:
        """Add a collection and index it; return how many documents it has.

        Raises:
            SettingsError: If the collection cannot be added.
            StoreError: If it was added, but cannot be indexed now.
        """
        folder = await anyio.to_thread.run_sync(folder_of, collection)
        if not await anyio.to_thread.run_sync(self._may_be_indexed, folder):
            raise SettingsError(_TOO_BROAD.format(folder.path))
        async with self.operations.doing(f"add {collection.name}"):
            await self._edit(editing.add, collection)
            await self._settle(f"{collection.name!r} is listed, and will be indexed")
            return len(catalog.keys_of(self.index.ledger, collection.name))

    async def remove(self, name: str) -> int:
        """Remove a collection from configuration and index; return how many documents it had.

        Raises:
            SettingsError: If there is no such collection, or the file cannot be changed.
            StoreError: If it was removed, but the index cannot be changed now.
        """
        async with self.operations.doing(f"remove {name}"):
            count = len(catalog.keys_of(self.index.ledger, name))
            await self._edit(editing.remove, name)
            await self._settle(f"{name!r} is no longer listed, and will leave the index")
            return count

    async def rename(self, name: str, new: str) -> None:
        """Rename a collection; nothing is read or embedded again.

        Raises:
            SettingsError: If there is no such collection, or the new name is invalid or taken.
            StoreError: If it was renamed, but the index cannot be changed now.
        """
        async with self.operations.doing(f"rename {name}"):
            await self._edit(editing.rename, name, new)
            await self._settle(f"it is listed as {new!r}, and the index will follow")

    async def set_context(self, collection: str, prefix: str, text: str) -> None:
        """Set the context of the documents below a prefix; of all documents if `collection` is "".

        Raises:
            SettingsError: If there is no such collection, or the file cannot be changed.
        """
        if collection:
            await self._edit(editing.set_context, collection, prefix, text)
        else:
            await self._edit(editing.set_global_context, text)

    async def remove_context(self, collection: str, prefix: str) -> None:
        """Remove the context of the documents below a prefix.

        Raises:
            SettingsError: If there is no such context, or the file cannot be changed.
        """
        if collection:
            await self._edit(editing.remove_context, collection, prefix)
        else:
            await self._edit(editing.set_global_context, "")

    # -- indexing --------------------------------------------------------------------------

    async def _settle(self, done: str = "") -> None:
        """Compare all collections with the index, and wait until the index is up to date.

        Args:
            done: What has been done before, as a sentence for an error; empty for nothing.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened or written.
        """
        try:
            await settle(self.index)
        except (BusyError, StoreError) as error:
            if not done:
                raise
            raise type(error)(f"{error}; {done} as soon as possible", error.problem) from error

    async def update(self, *, pull: bool = False, name: str = "update") -> list[updating.Update]:
        """Bring all collections up to date; return what has changed in each.

        Args:
            pull: Whether to run `git pull` in each collection's repository first.
            name: The name of this operation in `operations`.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened.
        """
        async with self.operations.doing(name):
            # Wait only until the index is open: it then catches up by itself, which counts, too.
            await self.index.catching_up()
            before = updating.seen(self.index.ledger)
            await self.follow()
            collections = self.configuration.collections
            pulled = {}
            if pull:
                pulled = {c.name: await pulling.pull(c.path) for c in collections}
            await self._settle()
            return [
                updating.update_of(c, before, self.index.ledger, pulled.get(c.name, ""))
                for c in collections
            ]

    async def tidy(self) -> None:
        """Compact the files of the index.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened or written.
        """
        async with self.operations.doing("cleanup"):
            await self._settle()
            await self.index.tidy()

    async def embed(self, *, anew: bool = False) -> int:
        """Wait until all chunks have vectors; return the number of vectors.

        Args:
            anew: Whether to drop the existing vectors first.

        Raises:
            BusyError: If another process is the index's writer.
            EmbeddingError: If there is no model.
            StoreError: If the index cannot be opened.
        """
        async with self.operations.doing("embed"):
            await self._settle()
            await self.index.embed(anew=anew)
            ledger = self.index.ledger
            return ledger.chunk_count - ledger.unembedded_count

    # -- how it is -------------------------------------------------------------------------

    async def known(self) -> Ledger:
        """Return the ledger of all documents; wait a limited time for the first scan.

        Raises:
            StoreError: If the ledger is empty because the index cannot be read.
        """
        ledger = await self._known()
        error = self.index.progress.error
        if error and not ledger and self.index.indexer is None:
            raise StoreError(error)
        return ledger

    async def _known(self) -> Ledger:
        await wait_for_first_scan(self.index)
        return await self.index.known_files()

    async def links_of(self, ledger: Ledger, key: str) -> catalog.Links:
        """Return the links from and to the document `key`, as far as `ledger` knows."""
        return (await self.link_map(ledger)).of(key)

    async def link_map(self, ledger: Ledger) -> catalog.LinkMap:
        """Return the links between all documents, as far as `ledger` knows."""

        async def work_out() -> catalog.LinkMap:
            entries = [*catalog.entries_of(ledger)]
            return await anyio.to_thread.run_sync(catalog.LinkMap, entries)

        return await self._links.of(ledger, work_out)

    async def look(self) -> State:
        """Return the state of the index and of the collections listed now. Never fails."""
        await self.follow()
        ledger = await self._known()
        status = await self.index.status()
        indexed = self.index.folders.by_name
        too_broad = {
            c.name: _TOO_BROAD.format(c.path)
            for c in self.configuration.collections
            if c.name not in indexed
        }
        problems = {**status.absent, **too_broad}
        collections = tuple(
            state_of(collection, ledger, problems.get(collection.name, ""))
            for collection in self.configuration.collections
        )
        return State(
            documents=sum(state.documents for state in collections),
            unembedded=ledger.lacking_count,
            embedded_chunks=status.embedded,
            has_vectors=status.embedded > 0,
            collections=collections,
            problem=self.problem or status.error,
            size_bytes=status.size_bytes,
            skipped=status.skipped,
            skipped_files=tuple(map(_named, ledger.with_state(SKIPPED)[:_MOST_SKIPPED])),
            failed=(
                *map(_named, status.failed),
                *(f"{key}: {why}" for key, why in status.disobeyed.items()),
            ),
            model={
                "state": status.progress.embedder_state,
                "name": status.model.name if status.model else None,
                "dimension": status.model.dimension if status.model else None,
                "precision": status.precision,
                "server": status.progress.embedder_notice,
            },
        )


def _named(record: FileRecord) -> str:
    return f"{record.key}: {record.reason}"

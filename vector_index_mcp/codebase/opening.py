"""Opening the index of a project: who may write it, and what is done where it cannot be read."""

import logging
import os
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
import filelock

from vector_index_mcp.codebase.ledger import Ledger
from vector_index_mcp.codebase.project import lock_path
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest, discard, is_local, prepare_folder
from vector_index_mcp.errors import DamagedIndexError, StoreError

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """An index open for writing."""

    index: Index
    ledger: Ledger
    last_revision: int


class Opener:
    """Opens the index at `uri` for the project at `root`; holds the writer's lock."""

    def __init__(self, root: Path, uri: str, chunker: str, state_folder: Path) -> None:
        self._root = root
        self._uri = uri
        self._chunker = chunker
        self._lock_path = lock_path(uri, state_folder)
        # The system drops the lock when the process dies, however it dies.
        self._lock = filelock.FileLock(self._lock_path, is_singleton=False, thread_local=False)

    def acquire(self) -> bool:
        """Become the index's writer; False if another process is. Blocks for a moment.

        Raises:
            StoreError: If the index's place cannot be written.
        """
        try:
            if is_local(self._uri):
                prepare_folder(Path(self._uri))
            self._lock_path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            return False
        except OSError as error:
            raise StoreError(
                f"the index at {self._uri} cannot be written ({error.strerror}); "
                "set VECTOR_INDEX_LANCEDB_URI to a folder you may write"
            ) from error
        return True

    def release(self) -> None:
        """Let another process become the writer."""
        self._lock.release(force=True)  # acquired again by each try to open the index

    def is_taken(self) -> bool:
        """Whether another process is the writer. Changes nothing."""
        if not os.path.exists(self._lock_path):
            return False
        try:
            with self._lock.acquire(timeout=0):
                return False
        except filelock.Timeout:
            return True
        except OSError:
            return False

    async def open(self) -> Opened:
        """Open the index, or make an empty one where there is none or only a damaged one.

        Raises:
            StoreError: If it belongs to another project, or its place is out of reach.
        """
        try:
            index = await Index.open(self._uri)
            if index is None:
                return await self.start_over()
            await self._check_owner(index)
            records, holdings = await index.store.records(), await index.store.holdings()
            last_revision = await index.store.last_revision()
            await index.drop_leftovers()
        except DamagedIndexError as error:
            _log.error("the index is damaged and is built anew: %s", error)
            return await self.start_over()
        return Opened(index, Ledger.reconciled(records, holdings), last_revision)

    async def start_over(self) -> Opened:
        """Replace whatever index there is by an empty one."""
        if is_local(self._uri):
            await discard(self._uri)
        manifest = Manifest(owner=str(self._root), chunker=self._chunker)
        return Opened(await Index.create(self._uri, manifest), Ledger(), 0)

    async def _check_owner(self, index: Index) -> None:
        """Two projects must not write into one index; but a project may have been moved."""
        owner = index.manifest.owner
        if owner == str(self._root):
            return
        if await anyio.to_thread.run_sync(os.path.isdir, owner):
            raise StoreError(
                f"the index at {self._uri} belongs to the project {owner}; "
                "set VECTOR_INDEX_LANCEDB_URI to a place of this project's own"
            )
        await index.adopt(str(self._root))

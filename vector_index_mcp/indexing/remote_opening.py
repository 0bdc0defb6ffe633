"""Opening an index that lies on object storage, where other machines can reach it.

Who writes there holds a lease (`objects.lease`), and fences every table when its turn begins
(`engine.store.fencing`). It never starts such an index over by itself: what looks damaged may be
another machine's doing a moment ago, so it is opened again.
"""

import contextlib
import logging
import socket
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest, owner_of
from vector_index_mcp.errors import (
    DamagedIndexError,
    ForeignIndexError,
    LostIndexError,
    Problem,
    StorageError,
    StoreError,
)
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.locks import is_acquired, is_held, lock_of, new_lock
from vector_index_mcp.indexing.opening import Opened
from vector_index_mcp.indexing.owners import Owners
from vector_index_mcp.indexing.place import Place, Remote
from vector_index_mcp.objects.lease import Lease
from vector_index_mcp.objects.store import opened

_log = logging.getLogger(__name__)

_READ_ONLY = {Problem.STORE_FORBIDS, Problem.STORE_UNCONDITIONAL, Problem.STORE_READER_MISSING}
ANOTHER = "another process of this machine"
_SECONDS_BETWEEN_LOOKS = 5.0
_SECONDS_READ_ONLY = 300.0  # before a key that may only read is tried again


class RemoteOpener:
    """Opens the index at a URI; holds its lease, and a lock against processes of this machine."""

    displaced = ""

    def __init__(self, place: Place, chunker: str, state_folder: Path, remote: Remote) -> None:
        """Prepare; nothing is asked yet.

        Args:
            place: Where the index lies, and of which project it is.
            chunker: The version that chunks of a new index have.
            state_folder: Where locks and names of owners lie.
            remote: What the user has set about it.
        """
        self.uri = place.uri
        self.refusal: StoreError | None = None
        """Why this process only reads the index, if that is nothing that passes by itself."""
        self.is_anew = False
        """Whether the next opening may replace an index that cannot be read."""
        self._place = place
        self._chunker = chunker
        self._remote = remote
        self._owners = Owners(state_folder)
        self._lock_file = lock_of(place.uri, state_folder)
        self._lock = new_lock(self._lock_file)
        self._lease: Lease | None = None
        self._is_owner = False
        self._is_locked_out = False
        self._is_writing = False  # without a lease
        self._begun = anyio.Event()

    @property
    def seconds_between_looks(self) -> float:
        """How long to wait before the next try to become the writer."""
        return _SECONDS_BETWEEN_LOOKS if self.refusal is None else _SECONDS_READ_ONLY

    @property
    def writer(self) -> str:
        """Who writes the index, for people."""
        if self.refusal is not None:
            return f"other machines alone, since {self.refusal}"
        if self._is_locked_out:
            return ANOTHER
        said = self._lease.said if self._lease is not None else None
        if said is None or not said.holder:
            return "nobody now"
        is_own = self._lease is not None and self._lease.is_held
        who = "this process" if is_own else f"the machine {said.host!a}"
        return f"{who}, since {said.since}"

    async def become_writer(self) -> bool:
        """Take the lease; False if another process has it, or this one can only read.

        Raises:
            ForeignIndexError: If the index is another owner's.
            StoreError: If the place cannot be used now.
        """
        self.refusal = None
        if not await self._lock_here():
            return False
        is_taken = False
        try:
            lease = await self._its_lease()
            await self._check_owner()
            is_taken = await lease.take()
        except StorageError as error:
            if error.problem not in _READ_ONLY:
                raise
            self.refusal = error
        finally:
            if is_taken:
                self._begun.set()
            else:
                await self._unlock()
        return is_taken

    async def _lock_here(self) -> bool:
        """Keep other processes of this machine from writing; False if one does."""

        def lock() -> bool:
            self._lock_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return is_acquired(self._lock)

        try:
            is_locked = await anyio.to_thread.run_sync(lock)
        except OSError as error:
            raise StorageError(f"{self._lock_file} cannot be locked ({error})") from error
        self._is_locked_out = not is_locked
        return is_locked

    async def _unlock(self) -> None:
        await anyio.to_thread.run_sync(lambda: self._lock.release(force=True))

    async def _its_lease(self) -> Lease:
        if self._lease is None:
            self._lease = await anyio.to_thread.run_sync(
                lambda: Lease(opened(self.uri), socket.gethostname(), self._owners.place)
            )
        return self._lease

    async def keep_writing(self) -> None:
        """Keep the lease whenever this process has it, until cancelled."""
        await self._begun.wait()
        if self._lease is not None:
            await self._lease.renew_forever()

    async def let_go(self) -> None:
        """Let another process become the writer; call it when nothing is written any more."""
        if self._lease is not None:
            await self._lease.release()
        await self._unlock()

    async def has_writer(self) -> bool:
        """Whether another process is the writer, as far as is known. Changes nothing."""
        with contextlib.suppress(StoreError):
            said = await (await self._its_lease()).look()
            return said is not None and bool(said.holder)
        return await anyio.to_thread.run_sync(is_held, self._lock_file)

    async def obstacle(self) -> str:
        """Why nothing can be written there; empty if it can. Writes an object and removes it."""
        try:
            await (await self._its_lease()).probe()
        except StorageError as error:
            return str(error)
        return ""

    async def may_be_read(self) -> bool:
        """Always: who has set the URI wants to."""
        return True

    async def open(self) -> Opened:
        """Open the index, or make an empty one where there is none.

        Raises:
            StoreError: If it belongs to another owner, cannot be read, or is out of reach.
        """
        try:
            return await self._open()
        except StoreError as error:
            is_bad = not isinstance(error, (StorageError, ForeignIndexError, LostIndexError))
            if not (is_bad and self.is_anew):
                raise
            _log.error("the index is built anew, as was asked for: %s", error)
            return await self.start_over()
        finally:
            self.is_anew = False

    async def _open(self) -> Opened:
        index = await Index.open(self.uri, self._turn, self._remote.server)
        if index is None:
            return await self.start_over()
        owner = await self._owner()
        if index.manifest.owner != owner:
            if not self._may_keep(index.manifest.owner, owner):
                self._is_owner = False
                raise self._foreign(index.manifest.owner, "")
            await index.adopt(owner)
        records, holdings = await index.store.records(), await index.store.holdings()
        last_revision = await index.store.last_revision()
        await index.drop_leftovers()
        return self._opened(index, Ledger.reconciled(records, holdings), last_revision)

    async def start_over(self) -> Opened:
        """Make an empty index, which replaces whatever there is.

        Raises:
            StoreError: If that is not possible.
        """
        self._check()
        return await self._made_anew()

    async def _made_anew(self) -> Opened:
        manifest = Manifest(owner=await self._owner(), chunker=self._chunker)
        index = await Index.create(self.uri, manifest, self._turn, self._remote.server)
        return self._opened(index, Ledger(), 0)

    def _opened(self, index: Index, ledger: Ledger, last_revision: int) -> Opened:
        return Opened(index, ledger, last_revision, self._check, self.start_over)

    @property
    def _turn(self) -> int | None:
        assert self._lease is not None, "opened without a lease"
        return self._lease.number

    def _check(self) -> None:
        if self._lease is None or not self._lease.is_held:
            raise LostIndexError(
                f"this process is no longer the writer of the index at {self.uri}: another one may "
                "have taken over, since for a while the store could not be told that this one lives"
            )

    async def _owner(self) -> str:
        if self._remote.owner:
            return self._remote.owner
        return await anyio.to_thread.run_sync(self._owners.name_of, self._place.owner)

    async def _check_owner(self) -> None:
        """Before anything is written there, also the lease; `open` looks again."""
        if self._is_owner:
            return
        try:
            found = await owner_of(self.uri, self._remote.server)
        except DamagedIndexError:
            if self.is_anew:
                return
            raise
        if found and not self._may_keep(found, await self._owner()):
            await self.has_writer()  # who it was last, if there is a lease
            said = self._lease.said if self._lease is not None else None
            raise self._foreign(found, said.host if said is not None else "")
        self._is_owner = True

    def _may_keep(self, found: str, owner: str) -> bool:
        """Whether an index of the owner `found` may become one of `owner`."""
        own = self._place.owner
        # Earlier versions noted the path. A name of the user's comes after one of ours.
        if found in {owner, own} or self._owners.is_moved(found):
            return True
        return bool(self._remote.owner) and found == self._owners.name_of(own)

    def _foreign(self, owner: str, host: str) -> ForeignIndexError:
        last = f", and the machine {host!a} was the last to write it" if host else ""
        return ForeignIndexError(
            f"the index at {self.uri} belongs to the owner {owner!a}{last}; it is searched, but "
            "not kept up to date from here",
            Problem.INDEX_OF_ANOTHER,
        )

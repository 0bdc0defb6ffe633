"""Opens an index on object storage, where other machines can reach it.

The writer of such an index holds a lease (`objects.lease`), and fences every table when its turn
begins (`engine.store.fencing`). It never replaces such an index by itself: what looks like damage
may be the work of another machine a moment ago, so the index is only opened again.
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
from vector_index_mcp.indexing.opening.local import Opened
from vector_index_mcp.indexing.opening.locks import is_held, lock_of, new_lock, try_acquire_in_state
from vector_index_mcp.indexing.opening.owners import Owners
from vector_index_mcp.indexing.place import Place, Remote
from vector_index_mcp.objects.lease import Lease
from vector_index_mcp.objects.opening import opened

_log = logging.getLogger(__name__)

_READ_ONLY = {Problem.STORE_FORBIDS, Problem.STORE_UNCONDITIONAL, Problem.STORE_READER_MISSING}
ANOTHER = "another process of this machine"
_SECONDS_BETWEEN_LOOKS = 5.0
_SECONDS_READ_ONLY = 300.0  # until writing is tried again with a key that may only read


class RemoteOpener:
    """Opens the index at a URI, and holds its lease and a lock against local processes."""

    displaced = ""

    def __init__(self, place: Place, chunker: str, state_folder: Path, remote: Remote) -> None:
        """Prepare; this sends no request.

        Args:
            place: Where the index lies, and the project it belongs to.
            chunker: The chunker's version for a new index.
            state_folder: Where locks and names of owners lie.
            remote: The user's settings for the index.
        """
        self.uri = place.uri
        self.refusal: StoreError | None = None
        """Why this process may only read the index, if the cause does not pass by itself."""
        self.is_anew = False
        """Whether the next `open` may replace an index that cannot be read."""
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
        """The writer of the index, as a phrase for people."""
        if self.refusal is not None:
            return f"other machines alone, since {self.refusal}"
        if self._is_locked_out:
            return ANOTHER
        lease = self._lease.said if self._lease is not None else None
        if lease is None or not lease.holder:
            return "nobody now"
        is_own = self._lease is not None and self._lease.is_held
        who = "this process" if is_own else f"the machine {lease.host!a}"
        return f"{who}, since {lease.since}"

    async def become_writer(self) -> bool:
        """Take the lease; False if another process has it, or this one may only read.

        Raises:
            ForeignIndexError: If the index belongs to another owner.
            StoreError: If the store cannot be used now.
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
        """Lock out other processes of this machine; False if one of them holds the lock."""
        is_locked = await anyio.to_thread.run_sync(try_acquire_in_state, self._lock)
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
        """Renew the lease whenever this process holds it, until cancelled."""
        await self._begun.wait()
        if self._lease is not None:
            await self._lease.renew_forever()

    async def let_go(self) -> None:
        """Let another process become the writer. Call it after the last write."""
        if self._lease is not None:
            await self._lease.release()
        await self._unlock()

    async def has_writer(self) -> bool:
        """Whether another process is the writer, as far as can be found out. Changes nothing."""
        with contextlib.suppress(StoreError):
            lease = await (await self._its_lease()).look()
            return lease is not None and bool(lease.holder)
        return await anyio.to_thread.run_sync(is_held, self._lock_file)

    async def obstacle(self) -> str:
        """Why this process cannot write there; empty if it can. Writes and removes an object."""
        try:
            await (await self._its_lease()).probe()
        except StorageError as error:
            return str(error)
        return ""

    async def may_be_read(self) -> bool:
        """Always True: whoever configures the URI wants to read the index there."""
        return True

    async def open(self) -> Opened:
        """Open the index; make an empty one if there is none.

        Raises:
            StoreError: If the index belongs to another owner, cannot be read, or is out of reach.
        """
        try:
            return await self._open()
        except StoreError as error:
            is_bad = not isinstance(error, (StorageError, ForeignIndexError, LostIndexError))
            if not (is_bad and self.is_anew):
                raise
            _log.error("the index cannot be read, and is rebuilt as requested: %s", error)
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
        """Replace whatever index there is by an empty one.

        Raises:
            StoreError: If the index cannot be written, or this process has lost the lease.
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
                f"this process is no longer the writer of the index at {self.uri}: it could not "
                "renew its lease in time, so another one may have taken over"
            )

    async def _owner(self) -> str:
        if self._remote.owner:
            return self._remote.owner
        return await anyio.to_thread.run_sync(self._owners.name_of, self._place.owner)

    async def _check_owner(self) -> None:
        """Refuse an index of another owner, before even the lease is written.

        `open` checks the owner again, since it may change until then.

        Raises:
            ForeignIndexError: If the index belongs to another owner.
        """
        if self._is_owner:
            return
        try:
            found = await owner_of(self.uri, self._remote.server)
        except DamagedIndexError:
            if self.is_anew:
                return
            raise
        if found and not self._may_keep(found, await self._owner()):
            await self.has_writer()  # reads the lease, which names the last writer's machine
            lease = self._lease.said if self._lease is not None else None
            raise self._foreign(found, lease.host if lease is not None else "")
        self._is_owner = True

    def _may_keep(self, found: str, owner: str) -> bool:
        """Whether `owner` may take over an index of the owner `found`."""
        own = self._place.owner
        # The path: earlier versions noted it as owner. The last case: the user has configured a
        # name for an index that had the project's own random name before.
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

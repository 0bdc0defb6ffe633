"""Opens an index on LanceDB's own server (db://).

Its client offers neither conditional writes nor the restoring of versions, so there is no lease and
no fencing. Only the owner's name is checked: two machines with the same name may write at once.
"""

from vector_index_mcp.indexing.opening.local import Opened
from vector_index_mcp.indexing.opening.locks import is_held
from vector_index_mcp.indexing.opening.remote import ANOTHER, RemoteOpener


class ServerOpener(RemoteOpener):
    """Opens the index at a db:// URI, and holds a lock against processes of this machine."""

    async def become_writer(self) -> bool:
        """Become the writer; False if another process of this machine is.

        Raises:
            ForeignIndexError: If the index belongs to another owner.
            StoreError: If the server cannot be used now.
        """
        if not await self._lock_here():
            return False
        is_checked = False
        try:
            await self._check_owner()
            is_checked = True
        finally:
            if not is_checked:
                await self._unlock()
        self._is_writing = True
        return True

    @property
    def writer(self) -> str:
        """The writer of the index, as a phrase for people."""
        if self._is_locked_out:
            return ANOTHER
        if not self._is_writing:
            return "nobody on this machine"
        return "this process; nothing keeps other machines of its owner from writing as well"

    async def keep_writing(self) -> None:
        """Do nothing: there is no lease to renew."""

    async def let_go(self) -> None:
        """Let another process of this machine become the writer."""
        self._is_writing = False
        await self._unlock()

    async def has_writer(self) -> bool:
        """Whether another process of this machine is the writer."""
        return is_held(self._lock_file)

    async def obstacle(self) -> str:
        """Always empty: only a write would show whether this process may write."""
        return ""

    async def start_over(self) -> Opened:
        """Replace whatever index there is by an empty one; there is no lease to check."""
        return await self._made_anew()

    def _check(self) -> None:
        """Do nothing: without a lease, nobody can have taken over."""

    @property
    def _turn(self) -> None:
        return None

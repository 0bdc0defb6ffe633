"""Opening an index on LanceDB's own server (db://).

Its client offers neither conditional writes nor the restoring of versions, so nothing keeps two
machines with one owner's name from writing at once; the owner alone is looked at.
"""

from vector_index_mcp.indexing.locks import is_held
from vector_index_mcp.indexing.opening import Opened
from vector_index_mcp.indexing.remote_opening import ANOTHER, RemoteOpener


class ServerOpener(RemoteOpener):
    """Opens the index at a db:// URI; holds a lock against processes of this machine."""

    async def become_writer(self) -> bool:
        """Be the writer, unless another process of this machine is.

        Raises:
            ForeignIndexError: If the index is another owner's.
            StoreError: If the place cannot be used now.
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
        """Who writes the index, for people."""
        if self._is_locked_out:
            return ANOTHER
        if not self._is_writing:
            return "nobody on this machine"
        return "this process; nothing keeps other machines of its owner from writing as well"

    async def keep_writing(self) -> None:
        """Nothing has to be done: there is no lease."""

    async def let_go(self) -> None:
        """Let another process of this machine become the writer."""
        self._is_writing = False
        await self._unlock()

    async def has_writer(self) -> bool:
        """Whether another process of this machine is the writer."""
        return is_held(self._lock_file)

    async def obstacle(self) -> str:
        """Nobody knows before something is written."""
        return ""

    async def start_over(self) -> Opened:
        """Make an empty index; there is no lease to be lost."""
        return await self._made_anew()

    def _check(self) -> None:
        """Nobody can have taken over."""

    @property
    def _turn(self) -> None:
        return None

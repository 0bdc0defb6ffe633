"""Where tables lie: on a disk, or over a network, where every request needs a time limit."""

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio.to_thread

from vector_index_mcp.engine.store.faults import translated
from vector_index_mcp.engine.store.pinned import pinned
from vector_index_mcp.engine.table_server import Server

# Time limits of whole operations. Without them, a server that accepts connections and never answers
# keeps LanceDB busy for minutes. An operation that is cut off may still be completed later.
_SECONDS = {"searching": 10.0, "opening": 10.0, "reading": 60.0, "maintaining": 900.0}
_SECONDS_OF_A_WRITE = 120.0
_DELETE = 0x7F
_Result = TypeVar("_Result")
_going_on: set[asyncio.Task[Any]] = set()
"""What `to_the_end` has begun and is not done; asyncio itself would not keep it."""


def is_local(uri: str) -> bool:
    """Return whether `uri` is a folder, and not object storage or a server."""
    return "://" not in uri


def can_hold(folder: str) -> bool:
    """Return whether tables can lie in a folder: LanceDB accepts no control characters."""
    try:
        return not any(byte < ord(" ") or byte == _DELETE for byte in folder.encode())
    except UnicodeEncodeError:  # the path is not UTF-8
        return False


def is_server(uri: str) -> bool:
    """Return whether `uri` is on LanceDB's own server."""
    return uri.startswith("db://")


@dataclass(frozen=True, slots=True)
class Reach:
    """Where tables lie, and whether we write them."""

    uri: str
    turn: int | None = None
    """The number of the writer's lease, for remote tables; None for a reader.

    A writer's open tables never refresh: a table that was opened before another writer's turn must
    not see that turn's commits, or its own commits would be accepted again.
    """

    server: Server = Server()
    """How to connect to LanceDB's own server, if the tables lie on one."""

    pinned: str = ""
    """The path by which LanceDB is given a local folder; see `pinned`. Empty: the folder's own."""

    async def in_this_folder(self) -> Self:
        """Return the same, bound to the folder that is there now; unchanged for remote tables."""
        if not self.is_local:
            return self
        return replace(self, pinned=await anyio.to_thread.run_sync(pinned, Path(self.uri)))

    @property
    def is_server(self) -> bool:
        """Whether the tables lie on LanceDB's own server, which makes one commit after another."""
        return is_server(self.uri)

    @property
    def is_local(self) -> bool:
        """Whether the tables lie in a folder."""
        return is_local(self.uri)

    @property
    def is_fenced(self) -> bool:
        """Whether we write tables on object storage, which other machines can reach."""
        return not (self.is_local or self.is_server) and self.turn is not None

    @contextmanager
    def asked(self, action: str) -> Iterator[None]:
        """Bound the time of a LanceDB operation in this context, and translate its errors.

        Raises:
            StoreError: If the operation fails or takes too long.
        """
        seconds = None if self.is_local else _SECONDS.get(action, _SECONDS_OF_A_WRITE)
        with translated(action, self.uri, seconds, self.pinned):
            yield


async def to_the_end(reading: Coroutine[Any, Any, _Result]) -> _Result:
    """Await what reads a table; it goes on if nobody waits for it any more.

    A query that is cut off while it fills LanceDB's cache leaves an entry there for which every
    later query of these pages waits, for minutes or for ever (lancedb 0.40, measured on object
    storage: all searches of a process after one that was cut off).
    """
    task = asyncio.ensure_future(reading)
    _going_on.add(task)
    task.add_done_callback(_gone)
    return await asyncio.shield(task)


def _gone(task: asyncio.Task[Any]) -> None:
    _going_on.discard(task)
    if not task.cancelled():
        task.exception()  # asyncio logs one that nobody has asked for

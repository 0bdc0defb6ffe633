"""Reads an index that another process writes.

A local index is opened again for each question. An index elsewhere is opened once and then checked
for new versions, since opening costs a dozen round trips, and all its records have to be read.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

import anyio

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.engine.table_server import Server
from vector_index_mcp.errors import StoreError
from vector_index_mcp.indexing.ledger import Ledger


class Readable(Protocol):
    """The part of an opener that a reader needs."""

    uri: str

    async def may_be_read(self) -> bool:
        """Whether there is an index that we wrote."""


class Reader:
    """The index at one place, as a process sees it that only reads it."""

    def __init__(self, uri: str, server: Server) -> None:
        self._uri, self._server = uri, server
        self._index: Index | None = None
        self._ledger = Ledger()
        self._versions = (0, 0)
        self._lock = anyio.Lock()

    @asynccontextmanager
    async def reading(self, place: Readable) -> AsyncIterator[tuple[Index, Ledger] | None]:
        """The index at a place and its ledger; None if there is no index.

        Raises:
            StoreError: If it cannot be read.
        """
        if not is_local(place.uri):
            yield await self.read()
            return
        index = await Index.open(place.uri) if await place.may_be_read() else None
        if index is None:
            yield None
            return
        try:
            records, holdings = await index.store.records(), await index.store.holdings()
            yield index, Ledger.reconciled(records, holdings)
        finally:
            index.close()

    async def read(self) -> tuple[Index, Ledger] | None:
        """The index elsewhere and its ledger, at most a few seconds old; None if there is no index.

        Raises:
            StoreError: If it cannot be read. The next call then opens it again.
        """
        async with self._lock:
            try:
                return await self._read()
            except StoreError:
                self.forget()
                raise

    async def _read(self) -> tuple[Index, Ledger] | None:
        if self._index is None or not await self._index.is_current():
            # The old one is not closed: a search may still use it.
            self._index = await Index.open(self._uri, server=self._server)
            self._versions = (0, 0)
        if self._index is None:
            return None
        store = self._index.store
        versions = await store.versions()
        if versions != self._versions:
            self._ledger = Ledger.reconciled(await store.records(), await store.holdings())
            self._versions = versions
        return self._index, self._ledger

    def forget(self) -> None:
        """Have the next call open the index again, because its files may be gone."""
        self._index = None

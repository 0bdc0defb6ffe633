"""Fills a new generation of the tables, which then replaces the current one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import anyio.to_thread

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.files.scan import Changes, Tree
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.mirroring import origin
from vector_index_mcp.indexing.writing.passage import Passage
from vector_index_mcp.indexing.writing.pipeline import Pipeline
from vector_index_mcp.indexing.writing.scanned import FILES_PER_BATCH


@dataclass(slots=True)
class Rebuild:
    """A store that is filled beside the current one. Hold the index's lock to call its methods."""

    passage: Passage
    touched: set[str] = field(default_factory=set)
    """Keys that were touched during the rebuild."""

    @classmethod
    async def begin(cls, live: Live, pipeline: Pipeline, tree: Tree) -> Self:
        """Make the new store, with the rows of what is out of reach, and a passage for the rest.

        Args:
            live: The index.
            pipeline: The stages of a batch.
            tree: The files that a walk found; the passage brings them into the store.

        Raises:
            StoreError: If the store cannot be made.
        """
        waiting = map(list, batched(sorted(tree.files), FILES_PER_BATCH))
        store = await live.index.begin_rebuild()
        made = cls(Passage(pipeline, store, Ledger(), lambda: Changes(next(waiting, []))))
        for keys in batched(tree.hidden(live.ledger.keys()), FILES_PER_BATCH):
            await made._carry_over(live, keys)
        return made

    async def _carry_over(self, live: Live, keys: Sequence[str]) -> None:
        passage = self.passage
        await passage.pipeline.carry_over(
            live.index.store, live.ledger, passage.store, passage.ledger, keys
        )

    async def swap(self, live: Live, chunker: str) -> None:
        """Make the store the current one.

        Args:
            live: The index.
            chunker: The version of the chunker that cut the store's chunks.

        Raises:
            StoreError: If a commit fails; the current store then stays.
        """
        await self.passage.store.maintain()
        await live.index.swap(self.passage.store, chunker)
        live.ledger = self.passage.ledger
        if live.origin is not None:  # the rebuilt index has nothing from another machine any more
            live.origin = None
            await anyio.to_thread.run_sync(origin.forget, live.index.uri)

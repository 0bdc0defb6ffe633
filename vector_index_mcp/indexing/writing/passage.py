"""Brings many files into one generation of the index, batch by batch.

The next batch is prepared while one is committed, so that neither waits for the other.
"""

from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

import anyio

from vector_index_mcp.engine.store import Store
from vector_index_mcp.errors import ProjectError, StoreError
from vector_index_mcp.files.scan import Changes
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.writing.pipeline import Batch, Pipeline
from vector_index_mcp.indexing.writing.run import Outcome


@dataclass(slots=True)
class Passage:
    """Takes changes from `take` and commits them to `store`, one batch in each step."""

    pipeline: Pipeline
    store: Store
    ledger: Ledger
    """What is known of the store's files."""
    take: Callable[[], Changes]
    """Returns the changes for the next batch; empty when there are no more."""
    _batches: deque[Batch] = field(default_factory=deque)
    _in_preparation: int = 0
    _left: list[str] = field(default_factory=list)
    """Files that a batch had no time for; the next batch begins with them."""

    def __len__(self) -> int:
        """How many files have been taken and are not committed yet."""
        prepared = sum(len(batch.known) for batch in self._batches)
        return self._in_preparation + len(self._left) + prepared

    async def step(self, live: Live) -> tuple[Collection[str], Outcome]:
        """Commit a batch, and prepare the next one meanwhile.

        Args:
            live: The index whose current store this is, or will be.

        Returns:
            The files of the batch, and the outcome.

        Raises:
            ProjectError: If all folders were out of reach when the files were read.
            StoreError: If the commit fails. The next step tries the same batch again.
        """
        if not self._batches:
            await self._prepare()
        if not self._batches:
            return (), Outcome()
        batch = self._batches[0]
        failure: ProjectError | StoreError | None = None
        outcome = Outcome()
        async with anyio.create_task_group() as tasks:
            if len(self._batches) == 1:
                tasks.start_soon(self._prepare)
            try:
                async with live.writing():
                    model = live.index.manifest.model  # read now: it may have changed meanwhile
                    outcome = await self.pipeline.commit(self.store, self.ledger, model, batch)
            # Raised below: the task group would wrap it in an exception group.
            except (ProjectError, StoreError) as error:
                failure = error
        if failure is not None:
            raise failure
        self._batches.popleft()
        return batch.known, outcome

    @property
    def files(self) -> list[str]:
        """The files that have been taken and are not committed yet."""
        return [*self._left, *(key for batch in self._batches for key in batch.known)]

    def settle(self, changes: Changes) -> None:
        """Drop what was prepared of the files in `changes`: they were looked at again since."""
        keys = {*changes.dirty, *changes.gone}
        batches = (batch.without(keys) for batch in self._batches)
        self._batches = deque(batch for batch in batches if batch.known)
        self._left = [key for key in self._left if key not in keys]

    def give_back(self) -> Changes:
        """End this passage; returns what was taken from `take` and is not committed."""
        batches, self._batches = self._batches, deque()
        left, self._left = self._left, []
        return Changes(
            [*left, *(key for batch in batches for key in batch.dirty)],
            [key for batch in batches for key in batch.gone],
        )

    async def _prepare(self) -> None:
        while True:
            changes = Changes(self._left) if self._left else self.take()
            self._left = []
            self._in_preparation = len(changes.dirty) + len(changes.gone)
            if not self._in_preparation:
                return
            batch = await self.pipeline.prepare(self.store, self.ledger, changes)
            self._left = list(batch.left)
            self._in_preparation = 0
            if batch.known or batch.problem is not None:  # else the files' folder has just gone
                self._batches.append(batch)
                return

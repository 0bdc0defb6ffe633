"""Many files on their way into one generation of the index, batch by batch.

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
from vector_index_mcp.indexing.pipeline import Batch, Pipeline
from vector_index_mcp.indexing.run import Outcome


@dataclass(slots=True)
class Passage:
    """Takes changes from somewhere and commits them to `store`, one batch a step."""

    pipeline: Pipeline
    store: Store
    ledger: Ledger
    """Of the store's files."""
    take: Callable[[], Changes]
    """Gives the next batch's worth; empty when there is nothing more."""
    _batches: deque[Batch] = field(default_factory=deque)
    _in_preparation: int = 0
    _left: list[str] = field(default_factory=list)
    """Taken, and to be prepared before anything else is."""

    def __len__(self) -> int:
        """How many files have been taken and are not committed yet."""
        prepared = sum(len(batch.known) for batch in self._batches)
        return self._in_preparation + len(self._left) + prepared

    async def step(self, live: Live) -> tuple[Collection[str], Outcome]:
        """Commit a batch: which files it had, and what became of them.

        A batch whose commit fails is the next step's again.

        Args:
            live: The index that the store is, or will be, the current one of.

        Raises:
            ProjectError: If the project's folder was gone when the files were read.
            StoreError: If the commit fails.
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
                    model = live.index.manifest.model  # while we waited, it may have changed
                    outcome = await self.pipeline.commit(self.store, self.ledger, model, batch)
            # Out of a task group it would come wrapped.
            except (ProjectError, StoreError) as error:
                failure = error
        if failure is not None:
            raise failure
        self._batches.popleft()
        return batch.known, outcome

    @property
    def files(self) -> list[str]:
        """Those that have been taken and are not committed yet."""
        return [*self._left, *(key for batch in self._batches for key in batch.known)]

    def settle(self, changes: Changes) -> None:
        """Do not commit what was prepared of files that have been looked at since."""
        keys = {*changes.dirty, *changes.gone}
        batches = (batch.without(keys) for batch in self._batches)
        self._batches = deque(batch for batch in batches if batch.known)
        self._left = [key for key in self._left if key not in keys]

    def give_back(self) -> Changes:
        """What was taken and is not committed; this passage ends."""
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
            if batch.known or batch.problem is not None:  # else their folder has just gone
                self._batches.append(batch)
                return

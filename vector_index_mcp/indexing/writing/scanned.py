"""The files that scans have found: first listed, then prepared batch by batch, then committed."""

from collections.abc import Collection
from functools import partial

from vector_index_mcp.files.conversion import has_extra
from vector_index_mcp.files.scan import Changes, Tree, compare
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.writing.passage import Passage
from vector_index_mcp.indexing.writing.pipeline import Pipeline
from vector_index_mcp.indexing.writing.run import Kind, Outcome, Run
from vector_index_mcp.indexing.writing.worklist import Worklist

# Few enough that a change usually waits a quarter of a second for the batch before it, and many
# enough that the commits (30 to 60 ms each) hardly count. `pipeline` limits the time of a batch.
FILES_PER_BATCH = 200
"""How many files a batch has at most."""


class Scanned:
    """The files on their way into the current generation of an index."""

    def __init__(self, live: Live, pipeline: Pipeline) -> None:
        self._live = live
        self._pipeline = pipeline
        self._worklist = Worklist()
        self._passage = self._new_passage()

    def _new_passage(self) -> Passage:
        take = partial(self._worklist.take, FILES_PER_BATCH)
        index = self._live.index
        return Passage(self._pipeline, index.store, self._live.ledger, take)

    def __len__(self) -> int:
        return len(self._worklist) + len(self._passage)

    @property
    def coming(self) -> Collection[str]:
        """The files that are on their way into the index."""
        return dict.fromkeys([*self._worklist.dirty, *self._passage.files])

    def found_by(self, run: Run, tree: Tree) -> Changes:
        """What the walk of a run has found to be read or forgotten."""
        ledger = self._live.ledger
        known = ledger.stamps(self.coming)
        changes = compare(tree, known, was_unwatched=run.kind is Kind.START)
        again: set[str] = set()
        if run.is_asked:
            again |= ledger.worth_another_try
        if (run.is_asked or run.kind is Kind.START) and has_extra():
            again |= ledger.lacking_extra
        changes.dirty += (again & tree.files.keys()).difference(changes.dirty)
        return changes

    def add(self, changes: Changes) -> None:
        """Add files to read and files to forget."""
        self._worklist.add(changes)

    def drop_looked_at(self, changes: Changes) -> None:
        """Drop what is listed or prepared of these files: they were looked at since."""
        self._worklist.settle(changes)
        self._passage.settle(changes)

    def drop_folders(self, names: Collection[str]) -> None:
        """List anew what is prepared, and drop the files in the folders with these names."""
        self.direct()
        self._worklist.drop(names)

    def direct(self) -> None:
        """Direct the files into the generation that is the current one now."""
        self._worklist.add(self._passage.give_back())
        self._passage = self._new_passage()

    def clear(self) -> None:
        """Drop everything."""
        self._worklist.clear()
        self._passage = self._new_passage()

    async def step(self) -> tuple[Collection[str], Outcome]:
        """Commit a batch; see `Passage.step`."""
        return await self._passage.step(self._live)

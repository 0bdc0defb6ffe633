"""The first writer: makes the index's text match the disk, and goes on doing so.

It takes dirty files off the queue and commits their text; `vectors` then gives the committed chunks
their vectors. A scan, a rebuild and the store's maintenance are steps of this task, taken in this
order of urgency:

    files that have just changed > a walk that was asked for > the rest of a scan > a rebuild

so that a file saved in the middle of a long run is searchable before the run goes on.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.errors import ProjectError, StoreError
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import UNKNOWN, Changes, Stamp, compare, look, walk
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.opening import Opened
from vector_index_mcp.indexing.outlook import Outlook
from vector_index_mcp.indexing.passage import Passage
from vector_index_mcp.indexing.pipeline import Pipeline
from vector_index_mcp.indexing.queue import DirtyQueue
from vector_index_mcp.indexing.remedies import with_remedy
from vector_index_mcp.indexing.run import Kind, Run
from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.vectors import CachedEmbedder, Vectors

_log = logging.getLogger(__name__)
# Few enough that a change waits at most for about half a second, many enough that the commits
# (30 to 60 ms each) hardly count.
_FILES_PER_BATCH = 200
_RETRY_SECONDS = (0.5, 1, 2, 5, 10, 30)  # after the first, second, ... failure in a row
_QUIET_SECONDS = 60  # without a change; then old versions are dropped


@dataclass(slots=True)
class _Rebuild:
    """A new generation of the tables on its way to replace the current one."""

    passage: Passage
    touched: set[str] = field(default_factory=set)
    """Where something happened meanwhile."""


class Indexer:
    """Keeps one open index as the disk is. The process must hold the writer's lock."""

    def __init__(
        self,
        root: Path,
        opened: Opened,
        *,
        chunker: str,
        pipeline: Pipeline,
        embedder: CachedEmbedder,
        activity: Activity,
        queue: DirtyQueue,
        state: StateMachine,
        make_ignore: Callable[[], Ignore],
    ) -> None:
        """Prepare; `write_forever` and `vectors.embed_forever` do the work.

        Args:
            root: The project.
            opened: The index, open for writing.
            chunker: The version the index's chunks should have.
            pipeline: The stages of a batch.
            embedder: Makes the vectors.
            activity: Told of what is being done.
            queue: What waits to be indexed.
            state: Told of runs and errors.
            make_ignore: The ignore rules as they are on disk now.
        """
        self.live = Live(opened.index, opened.ledger, activity, opened.check, queue.wake)
        self.vectors = Vectors(self.live, embedder, self._is_text_first)
        self.outlook = Outlook(make_ignore)
        self.run: Run | None = None
        self.last_run: Run | None = None
        self.unreadable_folders: list[str] = []
        self.left_out_count = 0
        """Files for which there is no room; exact after a walk."""
        self._root, self._chunker = root, chunker
        self._pipeline = pipeline
        self.queue = queue
        self._state = state
        self._start_over = opened.start_over
        self._linked: set[str] = set()  # files with other names
        self._scanned = self._passage_of_scanned()
        self._rebuild: _Rebuild | None = None
        self._next_run: Run | None = None  # a rebuild that waits for another run to end
        self._numbers, self._failures = count(1), 0  # of runs; of the store, in a row
        self._walk_wanted = False
        self._in_hand = 0  # paths taken off the queue and not committed yet

    # -- runs ------------------------------------------------------------------------------

    def begin_run(self, kind: Kind) -> Run:
        """Begin a run, or join the one under way; a rebuild waits until another one has ended.

        A request walks the folders again, unless for a rebuild: events may have been lost since.
        """
        if self.run is None:
            return self._begin(Run(kind, next(self._numbers)))
        if self.run.kind is not Kind.REBUILD and kind is Kind.REQUEST:
            self._walk_wanted = True
            self.queue.wake()
        if kind is not Kind.REBUILD or self.run.kind is Kind.REBUILD:
            return self.run
        if self._next_run is None:
            self._next_run = Run(kind, next(self._numbers))
        return self._next_run

    def _begin(self, run: Run) -> Run:
        run.begin()
        self.run = run
        self._walk_wanted = True
        if self._state.current is not State.SCANNING:
            self._state.enter(State.SCANNING)
        self.queue.wake()
        return run

    @property
    def pending_path_count(self) -> int:
        """Changed paths that are not indexed yet."""
        late = self._pipeline.crew.late_count
        return len(self.queue) + len(self._scanned) + self._in_hand + late

    @property
    def is_in_error(self) -> bool:
        """Whether something keeps the index from being brought up to date."""
        return self._state.current is State.ERROR

    def look_again(self, paths: Iterable[str]) -> None:
        """Queue files that a search found to differ from the index."""
        self.queue.touch_unless_queued(paths)

    def _passage_of_scanned(self) -> Passage:
        live, queue = self.live, self.queue
        take = partial(queue.take_scanned, _FILES_PER_BATCH)
        return Passage(self._pipeline, live.index.store, live.ledger, take)

    def _aim_scanned(self) -> None:
        """Let what scans found go into the generation that is current now."""
        self.queue.add(self._scanned.give_back())
        self._scanned = self._passage_of_scanned()

    @property
    def _has_scanned(self) -> bool:
        return self.queue.has_scanned or len(self._scanned) > 0

    def _known(self) -> dict[str, Stamp]:
        """The stamps of the files that the index holds, or is about to hold."""
        return self.live.ledger.stamps([*self.queue.scanned, *self._scanned.files])

    def _settle(self, changes: Changes) -> None:
        """Let go of what is queued or prepared of files that were looked at since."""
        self.queue.settle(changes)
        self._scanned.settle(changes)
        changes.gone = [key for key in changes.gone if self.live.ledger.get(key) is not None]

    def _is_text_first(self) -> bool:
        return self._has_scanned or self._rebuild is not None

    @property
    def needs_rebuild(self) -> bool:
        """Whether the index's chunks were cut by another chunker than ours."""
        return self.live.index.manifest.chunker != self._chunker

    def _end_run(self, error: str | None = None) -> None:
        if self.run is not None:
            self.run.finish(error)
            self.last_run, self.run = self.run, None
        self.vectors.wake()
        if error is not None:
            self._state.enter(State.ERROR, error)
        elif self._state.current is not State.WATCHING:
            self._state.enter(State.WATCHING)
        if self._next_run is not None:
            run, self._next_run = self._next_run, None
            self._begin(run)

    def _give_up(self, error: ProjectError) -> None:
        """The project's folder is out of reach: what was to be done is found again by a scan."""
        self._rebuild = None
        self._walk_wanted = False
        self.queue.forget_scanned()
        self._scanned = self._passage_of_scanned()
        self._end_run(str(error))
        self.live.is_lost()  # it may have gone with the project

    def end(self, reason: str) -> None:
        """End whatever run somebody waits for: this index is kept no longer."""
        self._next_run = None
        self._end_run(reason)

    # -- text ------------------------------------------------------------------------------

    async def write_forever(self) -> None:
        """Take work off the queue and commit it, until cancelled."""
        while True:
            with anyio.move_on_after(_QUIET_SECONDS) as quiet:
                await self.queue.wait()
            if self.queue.has_touched:  # they are not quiet yet: a child starts in less
                await self._pipeline.crew.warm_up()
            try:
                await self._work(is_quiet=quiet.cancelled_caught)
            except ProjectError as error:
                self._give_up(error)
            except StoreError as error:
                if self.live.damage is not None or self.live.is_damage(error):
                    await self._replace_index(error)
                else:
                    await self._pause(error)

    async def _work(self, *, is_quiet: bool) -> None:
        worked = await self._step()
        if not self._is_text_first():
            await self._pipeline.crew.rest()
        if is_quiet:
            await self._pipeline.crew.end()
            await self.live.rest()
        else:
            await self.live.maintain_if_due(in_bulk=self._is_text_first())
        if worked:
            self.live.note_success()
        if worked and self._failures:
            self._failures = 0
            self._state.enter(State.SCANNING if self.run else State.WATCHING)

    async def _pause(self, error: StoreError) -> None:
        delay = _RETRY_SECONDS[min(self._failures, len(_RETRY_SECONDS) - 1)]
        self._failures += 1
        _log.warning("%s; next try in %s s", with_remedy(error), delay)
        self._state.enter(State.ERROR, with_remedy(error))
        await anyio.sleep(delay)
        self.queue.wake()

    async def _step(self) -> bool:
        """Do the most urgent piece of work; False if there was none."""
        if (damage := self.live.damage) is not None:
            raise damage
        if touched := self.queue.take_touched():
            self._in_hand = len(touched)
            try:
                await self._index_touched(touched)
            finally:
                self._in_hand = 0
        elif self._walk_wanted:
            self._walk_wanted = False
            await self._walk()
        elif self._has_scanned:
            await self._index_scanned()
        elif self._rebuild is not None:
            await self._continue_rebuild(self._rebuild)
        else:
            return False
        if self._is_text_first() or self._walk_wanted:
            self.queue.wake()
        elif self.run is not None:
            # After whatever step: what a scan found may have been indexed as just changed. First
            # tidy: now questions come, which pay for every row that is not in the word index.
            await self.live.maintain_if_due()
            self._end_run()
        return True

    async def _index_touched(self, touched: list[str]) -> None:
        touched, others = await self.outlook.before_look(touched)
        if self._rebuild is not None:
            self._rebuild.touched.update(touched)
        known = self._known()
        # A file that is named is read, whatever its stamp: a write through a memory map leaves it.
        known.update((path, UNKNOWN) for path in touched if path in known)
        looking = partial(
            look, self._root, self.outlook.ignore, touched, known, self._linked, others
        )
        with self.live.activity.of("a look at what changed"):
            changes = await anyio.to_thread.run_sync(looking)
        await self.outlook.after_look()
        self.left_out_count = max(self.left_out_count, changes.left_out)
        self._settle(changes)
        if len(changes.dirty) > _FILES_PER_BATCH:  # a branch was switched, a folder moved in
            self.queue.add(changes)
            if self.run is not None:
                self.run.expect(len(changes.dirty) + len(changes.gone))
        elif changes.dirty or changes.gone:
            await self._index(changes)

    async def _walk(self) -> None:
        self.live.make_sure()  # a walk is when somebody wants the truth
        may_have_missed = self.run is not None and self.run.kind in {Kind.RESCAN, Kind.REBUILD}
        await self.outlook.before_walk(may_have_missed=may_have_missed)
        with self.live.activity.of("the walk through the project's folders"):
            tree = await anyio.to_thread.run_sync(walk, self._root, self.outlook.ignore)
        await self.outlook.after_look()
        self.unreadable_folders, self.left_out_count = tree.unreadable, tree.left_out
        self._linked = tree.linked
        run = self.run
        if run is None:
            return
        if run.kind is Kind.REBUILD:
            await self._begin_rebuild(run, sorted(tree.files))
            return
        changes = compare(tree, self._known())
        if run.kind is Kind.REQUEST:
            again = tree.files.keys() & self.live.ledger.worth_another_try
            changes.dirty += again.difference(changes.dirty)
        self._settle(changes)
        self.queue.add(changes)
        run.plan(len(tree.files), len(changes.dirty) + len(changes.gone))

    async def _index_scanned(self) -> None:
        live = self.live
        files, outcome = await self._scanned.step(live)
        if self.run is None:
            self.vectors.wake()
            return
        self.run.advance(len(files), outcome)

    async def _index(self, changes: Changes) -> None:
        """Bring a few files up to date, before whatever else is to be done."""
        live = self.live
        batch = await self._pipeline.prepare(live.ledger, changes, promptly=True)
        try:
            async with live.writing():
                model = live.index.manifest.model
                await self._pipeline.commit(live.index.store, live.ledger, model, batch)
        except StoreError:
            self.queue.add(changes)
            raise
        self.vectors.wake()

    # -- rebuilding ------------------------------------------------------------------------

    async def _begin_rebuild(self, run: Run, files: list[str]) -> None:
        waiting = map(list, batched(files, _FILES_PER_BATCH))
        try:
            async with self.live.writing():  # the model stays from here on, see `Vectors`
                store = await self.live.index.begin_rebuild()
                into = Passage(self._pipeline, store, Ledger(), lambda: Changes(next(waiting, [])))
                self._rebuild = _Rebuild(into)
        except StoreError as error:
            self._end_run(f"the new index could not be built: {with_remedy(error)}")
            raise
        run.plan(len(files), len(files))

    async def _continue_rebuild(self, rebuild: _Rebuild) -> None:
        live, run = self.live, self.run
        try:
            files, outcome = await rebuild.passage.step(live)
            if run is not None:
                run.advance(len(files), outcome)
            if not files:
                async with live.writing():
                    await self._swap(rebuild)
        except StoreError as error:
            # What is current stays current; the tables left behind are dropped by the next start.
            self._rebuild = None
            self._end_run(f"the new index could not be built: {with_remedy(error)}")
            raise

    async def _swap(self, rebuild: _Rebuild) -> None:
        store, ledger = rebuild.passage.store, rebuild.passage.ledger
        await store.maintain()
        await self.live.index.swap(store, self._chunker)
        self.live.ledger, self._rebuild = ledger, None
        self._aim_scanned()
        self._end_run()
        self.queue.touch(rebuild.touched)
        self.vectors.wake()

    async def _replace_index(self, error: StoreError) -> None:
        """Start over with an empty index: all that is lost is the time to fill it."""
        _log.error("the index is damaged and is built anew: %s", error)
        self._rebuild = None
        try:
            async with self.live.replacing():
                # The old index is not closed: to a search on its way, LanceDB would panic.
                opened = await self._start_over()
                self.live.index, self.live.ledger = opened.index, opened.ledger
                self.live.damage = None
                self._aim_scanned()
        except StoreError as still:
            self._end_run(with_remedy(still))
            await anyio.sleep(_RETRY_SECONDS[-1])
            return
        run = self.begin_run(Kind.START)
        run.kind = Kind.START  # into the empty index itself: there is nothing to keep beside it
        self._walk_wanted = True
        self.queue.wake()

"""The task that keeps the index's text equal to the disk: the first of two tasks that write.

It takes dirty keys off the queue and commits the text of their files. The second task, `vectors`,
gives the committed chunks their vectors. Scans, rebuilds and the store's maintenance are steps of
this task. It always takes the most urgent step:

    a renamed folder > another way to read a folder > files that have just changed > a walk that
    was asked for > the rest of a scan > a rebuild

so that a search finds a file saved in the middle of a long run before the run goes on. A walk for
somebody who joins a rebuild comes after it.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import suppress

import anyio

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.store.upkeep import Moment
from vector_index_mcp.errors import ProjectError, StorageError, StoreError
from vector_index_mcp.files.scan import Changes, Tree
from vector_index_mcp.indexing.ledger import Stamps
from vector_index_mcp.indexing.live import Live, Use
from vector_index_mcp.indexing.looking.outlook import Outlook
from vector_index_mcp.indexing.opening.local import Opened
from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.writing.pipeline import Pipeline
from vector_index_mcp.indexing.writing.queue import DirtyQueue
from vector_index_mcp.indexing.writing.rebuild import Rebuild
from vector_index_mcp.indexing.writing.run import TRIES_OF_A_RUN, Kind, Run
from vector_index_mcp.indexing.writing.runs import Runs
from vector_index_mcp.indexing.writing.scanned import FILES_PER_BATCH, Scanned

_log = logging.getLogger(__name__)
FEW_CHANGES = 20
"""How many changes are indexed within a second."""
_RETRY_SECONDS = (0.5, 1, 2, 5, 10, 30)  # after the first, second, ... failure in a row


class Indexer:
    """Makes one open index match the disk. The process must hold the writer's lock."""

    def __init__(
        self,
        live: Live,
        outlook: Outlook,
        pipeline: Pipeline,
        queue: DirtyQueue,
        state: StateMachine,
        *,
        chunker: str,
        start_over: Callable[[], Awaitable[Opened]],
    ) -> None:
        """Prepare; `write_forever` does the work.

        Args:
            live: The index, open for writing.
            outlook: Looks at the folders.
            pipeline: The stages of a batch.
            queue: The keys that wait to be looked at.
            state: Records runs and errors.
            chunker: The version of the chunker that the index's chunks should have.
            start_over: Replaces a damaged index by an empty one.
        """
        self.live = live
        self.outlook = outlook
        self.queue = queue
        self.runs = Runs(state, queue.wake)
        self._pipeline = pipeline
        self._state = state
        self._chunker = chunker
        self._start_over = start_over
        self._scanned = Scanned(live, pipeline)
        self._rebuild: Rebuild | None = None
        self.renames: list[tuple[str, str]] = []  # of folders whose rows have their old keys still
        self.failures = 0
        """How often the store has failed in a row."""
        self._in_hand = 0  # keys taken off the queue and not committed yet

    # -- for callers -----------------------------------------------------------------------

    def begin_run(self, kind: Kind) -> Run:
        """Begin a run, or join the one under way; see `Runs.begin`. What failed is tried now."""
        self.live.worth_a_try.send()
        return self.runs.begin(kind)

    def look_again(self, keys: Iterable[str]) -> None:
        """Queue files that differ from the index, such as those that a search found stale."""
        self.queue.touch_unless_queued(keys)

    def rename(self, name: str, new: str) -> None:
        """Give all rows of a renamed folder new keys, as the next step."""
        self.renames.append((name, new))
        self.queue.wake()

    def end(self, reason: str) -> None:
        """End all runs with an error, and so whoever waits for them: the index is kept no more."""
        self.runs.end_all(reason)
        self.live.index.let_go()  # a folder that is held keeps its drive from being unmounted

    @property
    def pending_path_count(self) -> int:
        """How many changed files and folders are not indexed yet."""
        waiting = len(self.queue) + len(self._scanned) + len(self.renames)
        return waiting + self._in_hand + self._pipeline.crew.late_count

    @property
    def outdated_path_count(self) -> int:
        """The same without those that `settled` has found up to date."""
        return self.pending_path_count - self.queue.settled_count

    @property
    def saved_path_count(self) -> int:
        """The same without files that are set aside, or kept open and may be written again."""
        waiting = self.queue.saved_count + len(self._scanned) + len(self.renames)
        return waiting + self._in_hand

    @property
    def is_in_error(self) -> bool:
        """Whether an error keeps the index from being brought up to date."""
        return self._state.current is State.ERROR

    @property
    def needs_rebuild(self) -> bool:
        """Whether the index's chunks were cut by another version of the chunker."""
        return self.live.index.manifest.chunker != self._chunker

    def is_text_first(self) -> bool:
        """Whether a scan or rebuild still has text to commit; nothing is embedded until it ends."""
        return bool(self._scanned) or self._rebuild is not None

    # -- the task --------------------------------------------------------------------------

    async def write_forever(self) -> None:
        """Take work off the queue and commit it, until cancelled."""
        while True:
            with anyio.move_on_after(self.live.seconds_to_rest):
                await self.queue.wait()
            if self.queue.has_saved:  # starting a child takes less time than they need to settle
                await self._pipeline.crew.warm_up()
            try:
                await self._work()
            except ProjectError as error:
                await self._give_up(error)
            except StoreError as error:
                if self.live.damage is not None or self.live.note_error(error, Use.TEXT):
                    await self._replace_index(error)
                else:
                    await self._pause(error)

    async def _work(self) -> None:
        worked = await self._step()
        if unanswered := self._pipeline.unanswered:
            self._pipeline.unanswered = set()
            self.look_again(unanswered)  # this look notes that the drive does not answer
        is_bulk = self.is_text_first()
        if not is_bulk:
            await self._pipeline.crew.rest()
        # Not the time since the last wake counts: sweeps, and files that are ignored, wake us, too.
        if not is_bulk and not self.live.seconds_to_rest:
            await self._pipeline.crew.end()
            await self.live.rest()
        else:
            await self.live.maintain_if_due(Moment.IN_BULK if is_bulk else Moment.USUAL)
        if worked:
            self.live.note_success(Use.TEXT)
        if worked and self.failures:
            has_ended_run, self.failures = self.failures >= TRIES_OF_A_RUN, 0
            self._state.enter(State.SCANNING if self.runs.current else State.WATCHING)
            if has_ended_run:
                self.begin_run(Kind.RESCAN)

    async def _step(self) -> bool:
        """Do the most urgent piece of work; False if there was none."""
        if (damage := self.live.damage) is not None:
            raise damage
        if self.renames:
            await self._follow_rename()
        elif self.live.index.manifest.folders != self.outlook.readings:
            await self._follow_readings()
        elif touched := self.queue.take_touched():
            self._in_hand = len(touched)
            try:
                await self._index_touched(touched)
            finally:
                self._in_hand = 0
        elif self.runs.is_walk_due and self._rebuild is None:
            await self._walk()
        elif self._scanned:
            await self._index_scanned()
        elif self._rebuild is not None:
            await self._continue_rebuild(self._rebuild)
        elif self.runs.current is None:
            return False
        # Also if nothing is left but to end the run: an error may have come in between.
        await self._after_step()
        return True

    async def _after_step(self) -> None:
        def has_more_to_do() -> bool:
            return bool(self.is_text_first() or self.runs.is_walk_due or self.renames)

        if self.runs.current is not None and not has_more_to_do():
            await self._list_aside()
        if self.runs.current is not None and not has_more_to_do():
            # Look after any step: files that a scan found may have been indexed as just changed.
            # Tidy up before questions come: they search all rows that have no word index yet.
            await self.live.maintain_if_due(Moment.USUAL)
            await self.live.check_index(each_file=True)
        if has_more_to_do():  # perhaps only since then: a request may have joined the run
            self.queue.wake()
        elif self.runs.current is not None:
            self._end_run()
        else:  # the last text that vectors waited for may have been dropped, not committed
            self.live.text_moved.send()

    def _end_run(self, error: str | None = None) -> None:
        self.runs.end(error)
        self.live.text_moved.send()

    # -- text ------------------------------------------------------------------------------

    def _settle(self, changes: Changes) -> None:
        """Drop what scans found of these files, and what is not in the index anyway."""
        self._scanned.drop_looked_at(changes)
        known, torn = self.live.ledger, self._pipeline.torn
        changes.gone = [key for key in changes.gone if known.get(key) is not None or key in torn]

    async def _index_touched(self, touched: list[str]) -> None:
        if self._rebuild is not None:
            self._rebuild.touched.update(touched)
        changes = await self._look(touched)
        if len(changes.dirty) > FILES_PER_BATCH:  # a branch was switched, a folder moved in
            self._list(changes)
        elif changes.dirty or changes.gone:
            await self._index(changes)

    async def _look(self, keys: list[str]) -> Changes:
        known = Stamps(self.live.ledger, self._scanned.coming)
        with self.live.activity.of("a look at what changed"):
            changes = await self.outlook.look(keys, known)
        self._settle(changes)
        return changes

    def _list(self, changes: Changes) -> None:
        self._scanned.add(changes)
        if self.runs.current is not None:
            self.runs.current.expect([*changes.dirty, *changes.gone])

    async def _list_aside(self) -> None:
        """List the files that are set aside: whoever waits for the run expects them, too."""
        if aside := self._pipeline.crew.take_aside():
            self._list(await self._look(aside))

    async def _walk(self) -> None:
        # A walk must not trust an index that another program has changed.
        await self.live.check_index(each_file=True)
        if self.runs.current is not None and self.runs.current.kind is not Kind.START:
            await self.live.check_elsewhere()
        self.runs.is_walk_due = False  # not before: if the index cannot be reached, it stays due
        run = self.runs.current
        may_have_missed = run is not None and run.kind in {Kind.RESCAN, Kind.REBUILD}
        with self.live.activity.of("the walk through the folders"):
            tree = await self.outlook.walk(may_have_missed=may_have_missed)
        if (run := self.runs.current) is None:
            return
        if run.kind is Kind.REBUILD and not run.is_rebuilt:
            return await self._begin_rebuild(run, tree)
        changes = self._scanned.found_by(run, tree)
        self._settle(changes)
        self._scanned.add(changes)
        run.plan(len(tree.files), [*changes.dirty, *changes.gone])

    async def _index_scanned(self) -> None:
        files, outcome = await self._scanned.step()
        if self.runs.current is None:
            self.live.text_moved.send()
            return
        self.runs.current.advance(files, outcome)

    async def _index(self, changes: Changes) -> None:
        """Bring a few files up to date at once, in a batch of their own."""
        live = self.live
        batch = await self._pipeline.prepare(live.index.store, live.ledger, changes, promptly=True)
        try:
            async with live.writing():
                model = live.index.manifest.model
                await self._pipeline.commit(live.index.store, live.ledger, model, batch)
        except StoreError:
            self._scanned.add(changes)
            raise
        live.text_moved.send()

    async def _follow_rename(self) -> None:
        """Give the rows of a renamed folder their new keys; a rebuild under way begins again."""
        name, new = self.renames[0]
        live, ledger = self.live, self.live.ledger
        self._drop_prepared({name, new})
        with live.activity.of(f"the renaming of the folder {name!r}"):
            for keys in batched(ledger.below(name), FILES_PER_BATCH):
                async with live.writing():
                    renamed = {key: new + key[len(name) :] for key in keys}
                    await self._pipeline.rekey(live.index.store, ledger, renamed)
        del self.renames[0]
        self.queue.touch([name, new])
        live.text_moved.send()

    def _drop_prepared(self, names: Collection[str]) -> None:
        """Drop what scans found in these folders: it may be wrong. A look has to repeat it."""
        self._scanned.drop_folders(names)
        self.runs.is_walk_due |= self._rebuild is not None
        self._rebuild = None

    async def _follow_readings(self) -> None:
        """Store how each folder is read. Files that were read differently are read again."""
        live, now = self.live, self.outlook.readings
        stored = live.index.manifest.folders
        others = [name for name, how in now.items() if stored.get(name, how) != how]
        if others:
            self._drop_prepared(others)
        gone = Changes(gone=[key for name in others for key in live.ledger.below(name)])
        batch = await self._pipeline.prepare(live.index.store, live.ledger, gone)
        async with live.writing():
            model = live.index.manifest.model
            await self._pipeline.commit(live.index.store, live.ledger, model, batch)
            await live.index.note_folders(now)
        self.queue.touch(others)

    # -- rebuilding ------------------------------------------------------------------------

    async def _begin_rebuild(self, run: Run, tree: Tree) -> None:
        try:
            async with self.live.writing():  # the model must not change from here on, see `Vectors`
                self._rebuild = await Rebuild.begin(self.live, self._pipeline, tree)
        except StoreError as error:
            self._end_run(f"the new index could not be built: {self.live.remedies.message(error)}")
            raise
        run.plan(len(tree.files), tree.files)

    async def _continue_rebuild(self, rebuild: Rebuild) -> None:
        try:
            files, outcome = await rebuild.passage.step(self.live)
            if self.runs.current is not None:
                self.runs.current.advance(files, outcome)
            if files:
                return
            async with self.live.writing():
                await rebuild.swap(self.live, self._chunker)
        except StoreError as error:
            # The current generation stays; the next start drops the tables of the unfinished one.
            self._rebuild = None
            self._end_run(f"the new index could not be built: {self.live.remedies.message(error)}")
            raise
        self._rebuild = None
        self.runs.note_rebuilt()
        self._scanned.direct()
        # Before the run ends: whoever waits for it expects the index to match the disk.
        await self._index_touched(list(rebuild.touched))

    # -- errors ----------------------------------------------------------------------------

    async def _give_up(self, error: ProjectError) -> None:
        """Drop all work, since all folders are out of reach; a later scan finds it again."""
        self._rebuild = None
        self.runs.is_walk_due = False
        self._scanned.clear()
        self._end_run(str(error))
        with suppress(StorageError):
            await self.live.check_folder()  # it may have gone with the project

    async def _pause(self, error: StoreError) -> None:
        delay = _RETRY_SECONDS[min(self.failures, len(_RETRY_SECONDS) - 1)]
        self.failures += 1
        message = self.live.remedies.message(error)
        _log.warning("%s; next try in %s s", message, delay)
        if self.failures >= TRIES_OF_A_RUN:
            self._end_run(message)
        self._state.enter(State.ERROR, message)
        with anyio.move_on_after(delay):
            await self.live.worth_a_try.wait()
        self.queue.wake()

    async def _replace_index(self, error: StoreError) -> None:
        """Replace a damaged index by an empty one; filling it costs only time."""
        _log.error("the index is damaged and is rebuilt: %s", error)
        self.live.damage = error  # if it cannot be replaced now, that is tried again
        self._rebuild = None
        try:
            async with self.live.replacing():
                # Do not close the old index: LanceDB would panic in a search that still uses it.
                opened = await self._start_over()
                self.live.note_repair(opened.index, opened.ledger)
                self._scanned.direct()
        except StoreError as still:
            await self._pause(still)
        else:
            self.runs.begin_again()

"""Keeps an index: becomes its writer, follows the folders, and lets go when the index is lost.

One process at a time is the writer of an index. Another process waits until the writer is gone,
and meanwhile reads what it commits. If the index's folder is moved, deleted or replaced, the keeper
gives the index up and opens it again, since another process may have it by then.
"""

import logging
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import ForeignIndexError, ProjectError, StoreError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.faults import reporting_faults
from vector_index_mcp.indexing.freshness import Freshness
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.looking.deep import IgnoreNotingDepth
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.looking.outlook import Outlook
from vector_index_mcp.indexing.mirroring.mirror import Mirror
from vector_index_mcp.indexing.mirroring.origin import Origin
from vector_index_mcp.indexing.opening.locks import lock_of
from vector_index_mcp.indexing.opening.openers import opener_of
from vector_index_mcp.indexing.opening.writers import WriterNote
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.recipe import chunker_of
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.tries import Tries
from vector_index_mcp.indexing.vectors.cached_embedder import CachedEmbedder
from vector_index_mcp.indexing.vectors.task import Vectors
from vector_index_mcp.indexing.writing.indexer import FEW_CHANGES, Indexer
from vector_index_mcp.indexing.writing.pipeline import Pipeline
from vector_index_mcp.indexing.writing.queue import DirtyQueue
from vector_index_mcp.indexing.writing.run import Kind

_log = logging.getLogger(__name__)

_LOST = "the index's folder was removed, moved or replaced"
_OPENED_AGAIN = f"{_LOST}, and is opened again"
_LOSS_SECONDS = 1.0  # between two checks whether the index is lost
_FETCH_PATIENCE_SECONDS = 5.0  # how long a caller waits for a shared index that is being fetched
_FOREIGN_SECONDS = 60.0  # between two tries to open an index that belongs to another owner


class Keeper:
    """Keeps the index of some folders while `work` runs."""

    def __init__(
        self,
        folders: Folders,
        place: Place,
        options: Options,
        pipeline: Pipeline,
        embedder: CachedEmbedder,
        activity: Activity,
        state: StateMachine,
        looks: Looks,
    ) -> None:
        """Prepare; `work` keeps the index.

        Args:
            folders: The folders of the index; they may change.
            place: Where the index lies.
            options: What a user may set.
            pipeline: The stages of a batch.
            embedder: Makes the vectors.
            activity: Notes what is being done.
            state: Records runs and errors.
            looks: Looks whether folders and the index can be reached.
        """
        self._chunker = chunker_of(options.recipe, folders)
        shared, remedies = options.shared, options.remedies
        self.mirror = (
            Mirror(shared, place, self._chunker, embedder.embedder, remedies) if shared else None
        )
        """Fills an empty index from the published one; None if nobody publishes it."""
        self.looks = looks
        self.opener = opener_of(place, self._chunker, options, self.mirror, self.looks)
        self.note = WriterNote(lock_of(place.uri, options.state_folder))
        """Which process writes the index."""
        self.kept: Kept | None = None
        """None until the index is open for writing, and while another process is its writer."""
        self.opened = anyio.Event()
        """Set once it is known whether the index can be opened for writing."""
        self._folders = folders
        self._options = options
        self._pipeline = pipeline
        self._embedder = embedder
        self._activity = activity
        self._state = state
        self._role = Role.READER  # until `work` begins
        self._watching: anyio.CancelScope | None = None
        self._tries = Tries()

    async def work(self, role: Role) -> None:
        """Open and keep the index as `role` wants; a keeper opens it again whenever it is lost."""
        self._role = role
        async with anyio.create_task_group() as meanwhile:
            meanwhile.start_soon(self.opener.keep_writing)
            while (kept := await self._open_as_writer()) is not None:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._keep_or_give_up, kept)
                    await kept.indexer.live.lost.wait()
                    tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await self._let_go(kept)
                if role is not Role.KEEPER:
                    break
                if (failure := kept.indexer.live.failure) is not None:
                    await self._tries.pause(self._tries.seconds_after(failure))
            meanwhile.cancel_scope.cancel()
        self._tries.end()

    async def _opened(self) -> "Kept":
        """Open the index and make the parts that keep it."""
        opened = await self.opener.open()
        self._pipeline.revision = opened.last_revision
        queue = DirtyQueue(self._options.quiet_seconds, self._options.longest_seconds)
        freshness = Freshness(self._folders, queue, self._options.rescan_seconds, self.looks)
        uri = opened.index.uri
        live = Live(
            opened.index,
            opened.ledger,
            self._activity,
            opened.check,
            queue.wake,
            self._options.remedies,
            self.looks,
            await self.looks.at_index(uri, partial(Origin.read, uri)),
        )
        indexer = Indexer(
            live,
            await Outlook.of(self._folders, self.make_ignore, freshness, self.looks),
            self._pipeline,
            queue,
            self._state,
            chunker=self._chunker,
            start_over=opened.start_over,
        )
        return Kept(indexer, Vectors(live, self._embedder, indexer.is_text_first), freshness)

    async def _keep_or_give_up(self, kept: "Kept") -> None:
        try:
            with reporting_faults():
                await self._keep(kept)
        except StoreError as error:
            kept.indexer.live.give_up(error)

    async def _keep(self, kept: "Kept") -> None:
        self.kept, indexer = kept, kept.indexer
        self._tries.end()
        indexer.begin_run(Kind.REBUILD if indexer.needs_rebuild else Kind.START)
        self.opened.set()
        async with anyio.create_task_group() as preparations:
            preparations.start_soon(kept.vectors.expect_model)
            if self._role.watches:
                # Before the first walk, so that an event reports what changes during the walk.
                preparations.start_soon(kept.freshness.start, indexer.outlook)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._activity.log_stalls)
            tasks.start_soon(self._notice_loss, indexer)
            tasks.start_soon(self._keep_note, indexer)
            if self._role.watches:
                tasks.start_soon(self._watch, kept)
            tasks.start_soon(indexer.write_forever)
            tasks.start_soon(self._pipeline.crew.finish_late_forever, indexer.queue.touch)
            tasks.start_soon(kept.vectors.embed_forever)

    async def _watch(self, kept: "Kept") -> None:
        """Follow changes; a deputy until `stop_watching`."""
        with anyio.CancelScope() as watching:
            self._watching = watching
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kept.freshness.rescan_forever, kept.indexer)
                tasks.start_soon(kept.freshness.sweep_forever, kept.indexer)

    async def stop_watching(self) -> bool:
        """Follow changes no longer, to end in spite of them; a keeper always follows them.

        Returns:
            Whether this process follows no changes now.
        """
        if self._role is Role.KEEPER:
            return False
        if self._watching is not None and self.kept is not None:
            self._watching.cancel()
            await self.kept.freshness.stop()
            self._role = Role.VISITOR
        return True

    async def _keep_note(self, indexer: Indexer) -> None:
        """Note for other processes whether it follows changes, and has come to the end of them."""
        noted = self._role, True
        while True:
            is_behind = indexer.runs.current is not None or indexer.pending_path_count > FEW_CHANGES
            if (now := (self._role, is_behind)) != noted:
                write = partial(self.note.write, self._role, is_behind=is_behind)
                await anyio.to_thread.run_sync(write)
                noted = now
            with anyio.move_on_after(_LOSS_SECONDS):
                await indexer.live.text_moved.wait()

    async def _notice_loss(self, indexer: Indexer) -> None:
        """Check every second whether folders and index are still there: no event reports that."""
        is_silent = False
        looked: dict[str, tuple[str, str]] = {}  # what a look was for: another finds the same
        while True:
            await anyio.sleep(_LOSS_SECONDS)
            was_silent, is_silent = is_silent, await indexer.live.is_silent()
            if was_silent and not is_silent:
                indexer.live.worth_a_try.send()
            for folder in list(self._folders):
                now = str(await self.looks.problem_of(folder) or "")
                known = indexer.outlook.problems.get(folder.name, "")
                if now != known and looked.get(folder.name) != (now, known):
                    if indexer.is_in_error or await self.looks.hung([folder]):
                        continue
                    indexer.look_again([folder.top])
                looked[folder.name] = now, known

    async def _let_go(self, kept: "Kept") -> None:
        """Stop writing an index that was lost or given up, and release its locks."""
        failure, reason = kept.indexer.live.failure, kept.indexer.live.loss
        if failure is not None:
            reason = self._options.remedies.message(failure)
        elif is_local(self.opener.uri):
            lost = _OPENED_AGAIN if self._role is Role.KEEPER else _LOST
            reason = str(await self.looks.absence(self._folders) or lost)
        _log.warning("%s", reason)
        self.kept = None
        kept.indexer.end(reason)
        if failure is not None:
            self._state.enter(State.ERROR, reason)
        await kept.freshness.stop()
        await self.opener.let_go()

    async def _open_as_writer(self) -> "Kept | None":
        """Open the index as soon as it has no other writer; None if its role does not wait."""
        while True:
            self._tries.begin()
            delay = self.opener.seconds_between_looks
            try:
                if self._role is Role.READER:
                    if await self.opener.has_writer():
                        await self._stand_aside()
                elif await self.opener.become_writer():
                    self.note.write(self._role, is_behind=True)
                    with reporting_faults():
                        return await self.looks.while_it_answers(self.opener.uri, self._opened())
                else:
                    await self._stand_aside()
                    delay = self.opener.seconds_between_looks
            except ProjectError as error:  # the folders may come back at any time
                self._state.enter(State.ERROR, str(error))
            except StoreError as error:
                self._state.enter(State.ERROR, self._options.remedies.message(error))
                is_foreign = isinstance(error, ForeignIndexError)
                delay = _FOREIGN_SECONDS if is_foreign else self._tries.seconds_after(error)
                await self._step_back()
            self.opened.set()
            if self._role is not Role.KEEPER:
                return None
            # The crew may have started children for an index that did not open.
            await self._pipeline.crew.end()
            await self._tries.pause(delay)

    async def _stand_aside(self) -> None:
        """Note that another process writes the index, and whether it goes on."""
        silence = ""
        if self._role is not Role.KEEPER:  # which becomes the writer as soon as the other one ends
            silence = await anyio.to_thread.run_sync(self._options.silence_of_service)
        writer = await anyio.to_thread.run_sync(self.note.read)
        if writer is not None and not silence:
            silence = writer.stop
        state = State.SCANNING if writer is not None and writer.lack else State.WATCHING
        self._state.enter(State.ERROR if silence else state, silence or None)

    async def _step_back(self) -> None:
        """Release an index on another machine that cannot be opened: another writer may manage."""
        if not is_local(self.opener.uri):
            with anyio.CancelScope(shield=True):
                await self.opener.let_go()

    async def wait(self) -> None:
        """Wait until the index has been opened or has failed to open.

        Raises:
            StoreError: If the shared index is still being fetched after a few seconds.
        """
        # `opened` stays set when an index is lost; a fetch may then begin again.
        while not self.opened.is_set() or self._is_fetching:
            with anyio.move_on_after(_FETCH_PATIENCE_SECONDS):
                await (self._tries if self.opened.is_set() else self.opened).wait()
                return
            if self.mirror is not None and self._is_fetching:
                raise StoreError(f"{self.mirror.description}; ask again when it is there")

    @property
    def _is_fetching(self) -> bool:
        return self.mirror is not None and self.mirror.progress is not None

    @property
    def of_shared(self) -> str:
        """The state of the shared index, as a phrase for the status; empty if there is none."""
        origin = self.kept.indexer.live.origin if self.kept is not None else None
        if origin is not None:
            return origin.description
        return self.mirror.description if self.mirror is not None else ""

    async def try_now(self, *, anew: bool = False) -> None:
        """Open the index now, if it is lost or if the keeper pauses after a failure.

        Args:
            anew: Whether an index that cannot be read may be replaced by an empty one, even if
                other machines use it.
        """
        if anew and self._tries.is_under_way:  # which may not replace the index
            await self._tries.wait()
        is_due = self._tries.is_pausing and (self._state.error or anew)
        is_lost = self.kept is not None and not await self.kept.indexer.live.check_folder()
        if not (is_lost or is_due):
            return
        if anew:
            self.opener.is_anew = True
        self._tries.hasten()
        try:
            # A search of an index on another machine does not wait: it reads what there is.
            if anew or is_local(self.opener.uri):
                await self._tries.wait()
        finally:
            if anew:  # a later try, which nobody has asked for, may not replace the index
                self.opener.is_anew = False

    async def release(self) -> None:
        """Let another process become the writer. Call it when `work` has ended."""
        if self.kept is not None:
            await self.kept.freshness.stop()
            self.kept.indexer.live.index.let_go(at_once=False)
        await self.opener.let_go()

    def make_ignore(self, folder: Folder) -> IgnoreNotingDepth:
        """Read the rules of `folder` from disk; they also exclude the index's own folder."""
        place = Path(self.opener.uri)
        if is_local(self.opener.uri) and place.is_relative_to(folder.path):
            selection = folder.selection
            own = place.relative_to(folder.path).as_posix()
            excluded = (own, *selection.excluded_folders)
            folder = replace(folder, selection=replace(selection, excluded_folders=excluded))
        return IgnoreNotingDepth(folder)


@dataclass(frozen=True, slots=True)
class Kept:
    """The parts that keep an open index."""

    indexer: Indexer
    vectors: Vectors
    freshness: Freshness

"""A live index of some folders: opens it, keeps it up to date, and reports its status.

One process at a time is the writer of an index. Other processes that open it read what the writer
commits, and one of them takes over when the writer is gone.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import anyio
import anyio.to_thread

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.models.embedder import Embedder
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import Problem, StoreError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.following import follow_vectors
from vector_index_mcp.indexing.freshness import Freshness
from vector_index_mcp.indexing.keeper import Keeper, Kept
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.mirroring.fetching import Fetch
from vector_index_mcp.indexing.opening.reading import Reader
from vector_index_mcp.indexing.opening.writers import busy
from vector_index_mcp.indexing.options import Options
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.settled import note_settled
from vector_index_mcp.indexing.state import StateMachine
from vector_index_mcp.indexing.status import Progress, Status, status_of
from vector_index_mcp.indexing.vectors.cached_embedder import CachedEmbedder
from vector_index_mcp.indexing.vectors.task import Vectors
from vector_index_mcp.indexing.vectors.team import TeamVectors
from vector_index_mcp.indexing.verify import Report, verify
from vector_index_mcp.indexing.writing.indexer import Indexer
from vector_index_mcp.indexing.writing.pipeline import Pipeline
from vector_index_mcp.indexing.writing.run import Kind, Run

_STATUS_PATIENCE_SECONDS = 4.0  # longest wait of `status` for an index on another machine
_PROGRESS_SECONDS = 1.0  # longest wait of `embedding_progressed`


class LiveIndex:
    """The live index at one place. It works only within `running`."""

    def __init__(
        self,
        folders: Iterable[Folder],
        place: Place,
        options: Options,
        embedder: Embedder,
        cache: EmbeddingCache,
        crew: Crew | None = None,
    ) -> None:
        """Make one.

        Args:
            folders: The folders to index.
            place: Where the index lies.
            options: What a user may set.
            embedder: Makes the vectors; it runs while the index does.
            cache: Keeps the vectors; it is closed when `running` ends.
            crew: Prepares files; None for a new one.

        Raises:
            ProjectError: If two folders have the same name.
        """
        self.folders = Folders(folders)
        self.embedder = embedder
        self.state, self.activity = StateMachine(), Activity()
        crew = crew or Crew(options.recipe)
        team = TeamVectors(options.team, cache, options.remedies.message)
        looks = Looks()
        self.pipeline = Pipeline(self.folders, crew, cache, self.activity, team, looks)
        self.cached_embedder = CachedEmbedder(embedder, cache, self.activity, team)
        self.remedies = options.remedies
        self._reader = Reader(place.uri, options.remote.server)
        self._options = options
        self._cache = cache
        parts = self.pipeline, self.cached_embedder, self.activity, self.state, looks
        self._keeper = Keeper(self.folders, place, options, *parts)
        self.looks, self.note = looks, self._keeper.note
        """Looks whether folders can be reached; names the process that writes the index."""
        self.stop_watching = self._keeper.stop_watching

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self, role: Role = Role.KEEPER) -> AsyncIterator[None]:
        """Keep the index open and up to date while the context lasts. Opening is not waited for."""
        try:
            async with self.embedder.running(), anyio.create_task_group() as tasks:
                tasks.start_soon(self._keeper.work, role)
                tasks.start_soon(self.cached_embedder.read_from_team)
                try:
                    yield
                finally:
                    tasks.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await self.pipeline.crew.end()  # a task may wait for one of its children
        finally:  # only after the last task has ended: it may be writing, or starting a child
            with anyio.CancelScope(shield=True):
                await self.pipeline.crew.end()
                await anyio.to_thread.run_sync(self._cache.close)
                await self._keeper.release()

    @property
    def indexer(self) -> Indexer | None:
        """None until the index is open for writing, and while another process is its writer."""
        return self._keeper.kept.indexer if self._keeper.kept is not None else None

    @property
    def team_notice(self) -> str:
        """What users should know about the team's vectors; empty if no team shares any."""
        return self.cached_embedder.team.notice

    @property
    def vectors(self) -> Vectors | None:
        """None whenever `indexer` is None."""
        return self._keeper.kept.vectors if self._keeper.kept is not None else None

    @property
    def freshness(self) -> Freshness | None:
        """None whenever `indexer` is None."""
        return self._keeper.kept.freshness if self._keeper.kept is not None else None

    @property
    def uri(self) -> str:
        """Where the index lies."""
        return self._keeper.opener.uri

    @property
    def displaced(self) -> str:
        """Why the index does not lie at the configured place; empty if it does."""
        return self._keeper.opener.displaced

    @property
    def is_open(self) -> bool:
        """Whether the first try to open the index has ended, with success or not."""
        return self._keeper.opened.is_set()

    @property
    def fetch(self) -> Fetch | None:
        """The progress of fetching the shared index; None if it is not being fetched now."""
        return self._keeper.mirror.progress if self._keeper.mirror is not None else None

    # -- folders ---------------------------------------------------------------------------

    def add_folder(self, folder: Folder) -> None:
        """Index another folder from now on.

        Raises:
            ProjectError: If its name is not allowed, or is the name of another folder.
        """
        self.folders.add(folder)
        self._look_at(folder.name)

    def remove_folder(self, name: str) -> None:
        """Stop indexing a folder, and remove its files from the index.

        Raises:
            ProjectError: If no folder has this name.
        """
        self.folders.remove(name)
        self._look_at(name)

    def rename_folder(self, name: str, new: str) -> None:
        """Give a folder another name; none of its files is read or embedded again.

        Raises:
            ProjectError: If no folder has this name, or the new name is not allowed.
        """
        self.folders.rename(name, new)
        if self.indexer is not None:
            self.indexer.rename(name, new)

    def _look_at(self, name: str) -> None:
        if self.indexer is not None:
            self.indexer.queue.touch([name])

    # -- indexing --------------------------------------------------------------------------

    async def trigger(self, *, force_reindex: bool) -> Run:
        """Begin a run, or join the one under way; a rebuild waits until another run has ended.

        Args:
            force_reindex: Read and cut every file again, into a new generation that replaces the
                current one when it is complete.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened.
        """
        kept = await self._writing(anew=force_reindex)
        kept.vectors.look_for_model(deadly=force_reindex)
        kept.vectors.check_model()
        return kept.indexer.begin_run(Kind.REBUILD if force_reindex else Kind.REQUEST)

    async def _writing(self, *, anew: bool = False) -> Kept:
        """The parts that keep the index; see `Keeper.try_now` about `anew`.

        Raises:
            BusyError: If another process is the writer.
            StoreError: If the index cannot be opened, or can only be read.
        """
        await self._keeper.wait()
        await self._keeper.try_now(anew=anew)
        kept, opener = self._keeper.kept, self._keeper.opener
        if kept is None:
            if self.state.error:
                raise StoreError(self.state.error)
            if opener.refusal is not None:
                raise opener.refusal
            raise busy(await anyio.to_thread.run_sync(self.note.read), opener.writer)
        return kept

    @property
    def refusal(self) -> str:
        """Why this process may not write the index; empty if it may, or if another one writes."""
        return self.remedies.message(refusal) if (refusal := self._keeper.opener.refusal) else ""

    async def is_kept_elsewhere(self) -> bool:
        """Whether another process writes the index, and no error or refusal is known here."""
        await self._keeper.opened.wait()
        return self.indexer is None and not (self.state.error or self.refusal)

    async def catching_up(self) -> Run | None:
        """The run under way, once the index is open; None if there is none.

        Raises:
            StoreError: If the shared index is still being fetched.
        """
        await self._keeper.wait()
        return self.indexer.runs.current if self.indexer is not None else None

    async def embedding_progressed(self) -> None:
        """Wait until more chunks have vectors, or for a second."""
        with anyio.move_on_after(_PROGRESS_SECONDS):
            if self.vectors is None:
                await anyio.sleep_forever()
            else:
                await self.vectors.progressed.wait()

    async def embed(self, *, anew: bool = False) -> None:
        """Wait until every chunk that can have a vector has one; see `follow_vectors`.

        Args:
            anew: Whether to drop all vectors first, also those in the cache.

        Raises:
            BusyError: If another process is the index's writer.
            ModelNotFoundError: If chunks without a vector remain.
            StoreError: If the index cannot be written.
        """
        vectors = (await self._writing()).vectors
        if anew:
            vectors.make_all_anew()
        vectors.look_for_model(deadly=anew)
        await follow_vectors(lambda *_: None, self)
        if self.progress.is_embedding:
            return  # more texts come all the time
        if self.progress.waits_for_vectors:
            raise StoreError(self.progress.error)
        self.progress.check_vectors()

    async def tidy(self) -> None:
        """Remove deleted rows and old versions from the index's disk.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened or written.
        """
        await (await self._writing()).indexer.live.tidy()

    @asynccontextmanager
    async def tidied(self) -> AsyncIterator[Live]:
        """The index, tidied up, and not written by anybody while the context lasts.

        Raises:
            BusyError: If another process is the index's writer.
            StoreError: If the index cannot be opened or written.
        """
        live = (await self._writing()).indexer.live
        async with live.writing():
            await live.index.drop_leftovers()
            await live.index.store.maintain(is_private=True)
            yield live

    @property
    def ledger(self) -> Ledger:
        """What is known of every file; empty while the index is not open for writing."""
        return self.indexer.live.ledger if self.indexer is not None else Ledger()

    async def known_files(self) -> Ledger:
        """What is known of every file, also while another process writes the index."""
        with suppress(StoreError):
            async with self.reading() as (_, ledger):
                return ledger
        return Ledger()

    async def verify(self) -> Report:
        """Compare the index with the folders, reading and cutting every file.

        Raises:
            ProjectError: If a folder cannot be read.
            StoreError: If there is no index, or none that can be read.
        """
        async with self.reading() as (index, _):
            return await verify(self.folders, index, self._keeper.make_ignore, self._options.recipe)

    # -- reading ---------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[tuple[Index, Ledger]]:
        """The current index and ledger, whether this process or another one writes the index.

        Raises:
            StoreError: If there is no index, or none that can be read.
        """
        await self._keeper.wait()
        if self.indexer is not None:
            yield self.indexer.live.index, self.indexer.live.ledger
            return
        async with self._reader.reading(self._keeper.opener) as found:
            if found is None:
                error = self.state.error
                nothing = StoreError("nothing is indexed yet", Problem.INDEX_MISSING)
                raise StoreError(error) if error else nothing
            yield found

    def forget_reading(self) -> bool:
        """Have an index on another machine opened again; False if it is local, or written here."""
        if is_local(self.uri) or self.indexer is not None:
            return False
        self._reader.forget()
        return True

    async def reopen_if_lost(self) -> None:
        """Open the index again if it was lost or could not be opened.

        Raises:
            ProjectError: If all folders are out of reach, so that hits cannot be checked.
        """
        await self._keeper.try_now()
        if (problem := await self.looks.absence(self.folders)) is not None:
            if self.indexer is not None and not self.looks.is_waiting(self.folders):
                self.indexer.look_again([""])
            raise problem

    # -- status ----------------------------------------------------------------------------

    @property
    def progress(self) -> Progress:
        """The writer's progress; it is cheap, so it may be read often."""
        return Progress.of(self._keeper.kept, self.state, self.embedder)

    async def status(self) -> Status:
        """Everything that is known about the index now. Never raises."""
        size, model, problem, ledger = None, None, "", Ledger()
        try:
            if self.fetch is None:
                with anyio.fail_after(None if is_local(self.uri) else _STATUS_PATIENCE_SECONDS):
                    size, model, ledger = await self.looks.while_it_answers(self.uri, self._facts())
        except StoreError as error:
            problem = self.remedies.message(error)
        except TimeoutError:
            problem = f"the index at {self.uri} does not answer"
        if (indexer := self.indexer) is not None:  # a rebuild may have been swapped in meanwhile
            absent = indexer.outlook.problems | await self.looks.silent(self.folders)
            ledger, model = indexer.live.ledger, indexer.live.index.manifest.model
            await note_settled(indexer, self.looks)  # last: what is touched later counts again
        else:
            absent = await self.looks.absent(self.folders)
        status = status_of(
            self._keeper.kept,
            ledger,
            self.progress,
            model=model,
            cached=self.cached_embedder,
            last_changes=tuple(reversed(self.pipeline.last_changes)),
            stalls=tuple(self.activity.stalls()),
            problem=problem,
            absent=absent,
            opener=self._keeper.opener,
            size_bytes=size,
        )
        return replace(status, shared=self._keeper.of_shared)

    async def _facts(self) -> tuple[int | None, ModelIdentity | None, Ledger]:
        """The index's size, its model, and what is known of its files; raises as `reading`."""
        await self.looks.at_index(self.uri, lambda: None)
        async with self.reading() as (index, ledger):
            return await index.size_bytes(), index.manifest.model, ledger

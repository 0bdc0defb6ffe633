"""Takes a question to a live index: embeds it if that is possible now, searches, checks the disk.

The tool set decides what to search for and how to rank it. This module does what every question
needs: it opens a lost index again, waits for the first scan, searches again if the index was
replaced meanwhile, reports damage, and drops or refreshes hits whose files have changed.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio

from vector_index_mcp.engine.store import Index, Store
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.engine.types import Hit, Vector
from vector_index_mcp.errors import (
    DamagedIndexError,
    EmbeddingError,
    StorageError,
    StoreError,
)
from vector_index_mcp.indexing.answering.checking import Checked, check_against_disk
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.live import Live, Use
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.indexing.writing.indexer import FEW_CHANGES
from vector_index_mcp.indexing.writing.run import Kind
from vector_index_mcp.processes.detached import NoThreadError

# How long a search waits for the scan that follows opening. It waits longer for an empty index,
# which has no hits at all; any other index is as it was when the service last ended.
_EMPTY_INDEX_PATIENCE_SECONDS = 5.0
_FIRST_SCAN_PATIENCE_SECONDS = 1.0
_RENAMES_PATIENCE_SECONDS = 10.0  # 3,000 documents take 1.6 s
# A save is indexed within half a second, and a search waits for few of them: those of one person.
_CHANGES_PATIENCE_SECONDS = 0.8
_IN_VAIN_SECONDS = 10.0  # after such a wait was in vain, searches do not wait for changes
_LOOK_SECONDS = 0.02
_QUERY_PATIENCE_SECONDS = 0.4  # for the query's vector, while the worker is busy
_LOADING_PATIENCE_SECONDS = 120.0  # for the model, if the caller sets `wait_for_model`
_FINDING_SECONDS = 2.0  # until a worker knows whether there is a model, unless it downloads one
_SPARE_HITS = 5  # more candidates, to replace hits whose file turns out to be gone


OnLoading = Callable[[], None]
"""Called when a question begins to wait until the model is loaded."""


class Question:
    """A query; each text of it is embedded at most once, and only if `find` needs its vector."""

    def __init__(
        self,
        live_index: LiveIndex,
        text: str,
        index: Index,
        ledger: Ledger,
        *,
        wait_for_model: bool,
        on_loading: OnLoading | None,
    ) -> None:
        self.text = text
        self.ledger = ledger
        """The ledger of the index that is searched."""
        self.lack = ""
        """Why the query could not be embedded; empty before `embed`, and if it succeeded."""
        self._live_index, self._embedder = live_index, live_index.embedder
        self._remedies = live_index.remedies
        self._index = index
        self._wait_for_model, self._on_loading = wait_for_model, on_loading
        self._vector: Vector | None = None

    @property
    def model_digest(self) -> str:
        """The digest of the model that has made the index's vectors; empty if there are none."""
        model = self._index.manifest.model
        return model.digest if model is not None else ""

    def rephrase(self, text: str) -> None:
        """Ask for another text from now on."""
        self.text, self._vector = text, None

    async def embed(self) -> Vector | None:
        """The query's vector; None if it cannot be had now, and then `lack` says why."""
        if self._vector is None and not self.lack:
            self._vector, self.lack = await self._embed()
        return self._vector

    async def _embed(self) -> tuple[Vector | None, str]:
        embedder, model = self._embedder, self._index.manifest.model
        if model is None or self.ledger.unembedded_count >= self.ledger.chunk_count:
            return None, embedder.reason or "no chunk has been embedded yet"
        at_once = await embedder.query_at_hand(self.text)
        if at_once is not None and at_once[1].digest == model.digest:
            return at_once[0], ""
        if embedder.state != "ready" and not self._wait_for_model:
            embedder.start()
            return None, embedder.reason or "the embedding model is still loading"
        patience = _LOADING_PATIENCE_SECONDS if self._wait_for_model else _QUERY_PATIENCE_SECONDS
        try:
            with anyio.fail_after(patience):
                await self._say_if_it_loads()
                [vector] = await embedder.embed([self.text], are_queries=True)
                identity = await embedder.identity()
        except EmbeddingError as error:
            return None, self._remedies.message(error)
        except TimeoutError:
            return None, "the embedding model is busy"
        if identity.digest != model.digest:
            if self._live_index.vectors is not None:
                self._live_index.vectors.check_model(again=True)
            return None, "the index holds vectors of another model and is being embedded again"
        return vector, ""

    async def _say_if_it_loads(self) -> None:
        """Call `on_loading` if a model is being loaded.

        Raises:
            ModelNotFoundError: If there is no model.
        """
        if self._on_loading is None:
            return
        with anyio.move_on_after(_FINDING_SECONDS):
            await self._embedder.identity()
        if self._embedder.state != "ready":
            self._on_loading()


Find = Callable[[Store, Question, int], Awaitable[Sequence[Hit]]]
"""Searches a store for a question and returns at most so many hits, best first."""

_QuestionOf = Callable[[Index, Ledger], Question]


@dataclass(frozen=True, slots=True)
class Answered:
    """The hits for a question, and what makes the answer incomplete."""

    hits: list[Hit]
    """Best first, with the text that their files have now."""
    stale: frozenset[str]
    """Files of hits that changed since they were indexed; they are queued to be indexed again."""
    untrue: int
    """How many files the index was wrong about; their hits are left out."""
    lack: str
    """Why nothing was searched by meaning; empty if it was, or if nobody asked for that."""
    ledger: Ledger
    """What the index knows of the files now."""
    was_catching_up: bool
    """Whether the index was searched before it had been compared with the disk for the first time,
    so that new files may be missing."""


async def ask(
    live_index: LiveIndex,
    text: str,
    find: Find,
    limit: int,
    *,
    wait_for_model: bool = False,
    on_loading: OnLoading | None = None,
) -> Answered:
    """Search a live index, and queue files that turn out to differ from it.

    Args:
        live_index: It must be running.
        text: The text to embed, if `find` needs a vector.
        find: Searches one store. It is called again if the index was replaced meanwhile, after an
            error whose cause is unknown, or if changes that waited were indexed meanwhile: this
            search may have missed them, and nothing would report that.
        limit: How many hits at most.
        wait_for_model: Whether to wait until the model is loaded. Otherwise the model is loaded in
            the background, and this search does without it.
        on_loading: Called when that wait begins.

    Raises:
        ProjectError: If all folders are out of reach.
        QueryError: If `find` rejects the question.
        StoreError: If there is no index, or none that can be read.
    """
    await live_index.reopen_if_lost()
    if live_index.indexer is not None:
        await live_index.indexer.live.checked_or_repaired()
    question_of = partial(
        Question, live_index, text, wait_for_model=wait_for_model, on_loading=on_loading
    )
    answer = partial(_answered, live_index, question_of, find, limit)
    in_time = partial(live_index.looks.while_it_answers, live_index.uri)
    await in_time(wait_for_first_scan(live_index))
    await in_time(_wait_for_renames(live_index))
    was_behind = _is_behind(live_index)
    answered = await in_time(answer())
    was_renamed = await in_time(_wait_for_renames(live_index))
    has_changed = await in_time(_wait_for_changes(live_index))
    # Else, the answer reports what is missing.
    if was_renamed or has_changed or (was_behind and not _is_behind(live_index)):
        with suppress(StoreError):  # the first answer is still one
            answered = await in_time(answer())
    return answered


def _is_behind(live_index: LiveIndex) -> bool:
    """Whether there are changes that are not indexed yet."""
    indexer = live_index.indexer
    if indexer is None:
        return False
    return indexer.outdated_path_count > 0 or live_index.progress.is_catching_up


async def _answered(
    live_index: LiveIndex, question_of: _QuestionOf, find: Find, limit: int
) -> Answered:
    is_again = False
    if live_index.vectors is not None:
        live_index.vectors.check_model()
    was_catching_up = live_index.progress.is_catching_up
    while True:
        async with live_index.reading() as (index, ledger):
            try:
                hits, question = await _found(
                    live_index, find, question_of, index, ledger, limit + _SPARE_HITS
                )
                break
            except StorageError:
                raise
            except StoreError:  # another machine may have removed the version that was being read
                if is_again or not live_index.forget_reading():
                    raise
        is_again = True
    if live_index.indexer is not None:
        # Take the ledger as it is now: it includes commits that were made during the search.
        ledger = live_index.ledger
    checked = await _checked(live_index, ledger, hits, limit)
    if live_index.indexer is not None:
        live_index.indexer.live.distrust(checked.untrue)
        live_index.indexer.look_again(checked.gone | checked.stale | checked.untrue)
    return Answered(
        hits=checked.hits,
        stale=frozenset(checked.stale),
        untrue=len(checked.untrue),
        lack=question.lack,
        ledger=ledger,
        was_catching_up=was_catching_up,
    )


async def _found(
    live_index: LiveIndex,
    find: Find,
    question_of: _QuestionOf,
    index: Index,
    ledger: Ledger,
    limit: int,
) -> tuple[Sequence[Hit], Question]:
    """Search; have a damaged index rebuilt.

    That is done beside it, not in its place as after a failed write (`Live.report`): what other
    searches read of it may be sound.
    """
    indexer = live_index.indexer
    try:
        live = indexer.live if indexer is not None else None
        return await _search(find, question_of, index, ledger, limit, live)
    except DamagedIndexError:
        if live_index.indexer is not None and is_local(live_index.uri):
            live_index.indexer.begin_run(Kind.REBUILD)
        raise


async def _search(
    find: Find,
    question_of: _QuestionOf,
    index: Index,
    ledger: Ledger,
    limit: int,
    live: Live | None,
) -> tuple[Sequence[Hit], Question]:
    """Search; search again if the index was replaced meanwhile, or after an unknown error.

    Each search has a question of its own, since `find` may change it.

    Raises:
        DamagedIndexError: If the index that this process writes turns out to be damaged.
    """
    for is_last in (False, True):
        question, store = question_of(index, ledger), index.store
        try:
            hits = await find(store, question, limit)
        except StorageError:
            raise
        except StoreError as error:
            if live is not None and live.index.store is not store:
                index, ledger = live.index, live.ledger
                continue
            if live is not None and live.note_error(error, Use.SEARCH):
                raise DamagedIndexError(str(error), error.problem) from error
            if is_last:
                raise
        else:
            if live is not None:
                live.note_success(Use.SEARCH)
            return hits, question
    question = question_of(index, ledger)
    return await find(index.store, question, limit), question


async def _checked(
    live_index: LiveIndex, ledger: Ledger, hits: Sequence[Hit], limit: int
) -> Checked:
    """Compare the hits with the disk; those that nobody can look at now are stale.

    Raises:
        ProjectError: If all folders are out of reach.
    """
    folders, looks = live_index.folders, live_index.looks
    found = (folders.of(hit.chunk.key) for hit in hits)
    concerned = {folder for folder in found if folder is not None}
    silent = await looks.hung(concerned)
    checked = None
    while checked is None and silent != concerned:
        check = partial(check_against_disk, folders, ledger, hits, limit, silent)
        try:
            checked = await looks.check_in(concerned - silent, check)
        except NoThreadError:
            silent = concerned
        except TimeoutError:
            silent |= {folder for folder in concerned if await looks.is_there(folder) is None}
    if checked is None:  # this reads no file
        checked = check_against_disk(folders, ledger, hits, limit, concerned)
    if checked.gone or silent:
        await live_index.reopen_if_lost()
    return checked


async def _wait_for_renames(live_index: LiveIndex) -> bool:
    """Wait a while until the rows of renamed folders have their new keys; False if all have them.

    Until then they belong to no folder, and are no hits.
    """
    indexer = live_index.indexer
    if indexer is None or not indexer.renames:
        return False
    with anyio.move_on_after(_RENAMES_PATIENCE_SECONDS):
        while indexer.renames:
            await indexer.live.text_moved.wait()
    return True


async def _wait_for_changes(live_index: LiveIndex) -> bool:
    """Wait a moment until the few changes that were just made, or just found, are indexed.

    Who saves a file and asks about it wants an answer with the new text a moment later, and not
    one without it at once.

    Returns:
        Whether there were any, and all of them are indexed now.
    """
    indexer = live_index.indexer
    if indexer is None or live_index.progress.is_catching_up or indexer.is_in_error:
        return False
    now, live = anyio.current_time(), indexer.live
    if not 0 < indexer.saved_path_count <= FEW_CHANGES or now < live.no_patience_before:
        return False
    with anyio.move_on_after(_CHANGES_PATIENCE_SECONDS):
        while indexer.saved_path_count > 0:
            with anyio.move_on_after(_LOOK_SECONDS):
                await live.text_moved.wait()
        return True
    live.no_patience_before = now + _IN_VAIN_SECONDS
    return False


async def wait_for_first_scan(live_index: LiveIndex) -> None:
    """Give an index that has just been opened a moment to catch up with the disk."""
    run = await live_index.catching_up()
    # Do not wait for an index that another machine has made: it takes seconds to compare its files.
    if run is None or live_index.ledger.claimed_count:
        return
    if not live_index.ledger.chunk_count:
        patience = _EMPTY_INDEX_PATIENCE_SECONDS
    elif run.kind is Kind.START:
        patience = _FIRST_SCAN_PATIENCE_SECONDS
    else:
        return
    with anyio.move_on_after(patience):
        await run.finished.wait()

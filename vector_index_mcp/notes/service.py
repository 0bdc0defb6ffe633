"""The notes of one store: whoever serves them calls `answer` while they are `running`.

Reading and writing block, so threads do it; what changes something goes through the one `Writer`.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread

from vector_index_mcp.errors import VectorIndexError, sentence
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.notes import document_calls, main_calls, store_calls, todo_calls
from vector_index_mcp.notes.activity import Call, Log
from vector_index_mcp.notes.calls import Answer, Given, Read, Store, Write
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.remote import Remote
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.staging import Staging
from vector_index_mcp.notes.store.writer import Writer, awaited
from vector_index_mcp.notes.syncing import Syncing
from vector_index_mcp.notes.texts.reading import Shelf
from vector_index_mcp.notes.watching import Watching
from vector_index_mcp.processes import memory

if TYPE_CHECKING:  # imports LanceDB
    from vector_index_mcp.indexing.service import LiveIndex

_log = logging.getLogger(__name__)

_READS: Mapping[str, Read] = {
    **main_calls.READS,
    **document_calls.READS,
    **todo_calls.READS,
}
_WRITES: Mapping[str, Write] = {
    **main_calls.WRITES,
    **document_calls.WRITES,
    **todo_calls.WRITES,
}
_OF_FILES = frozenset({Code.FILE_SYSTEM_ERROR, Code.ACCESS_DENIED, Code.INVALID_PATH})


class Deferred(Protocol):
    """Something that runs from the first time that somebody gets it."""

    async def get(self) -> "LiveIndex":
        """The running index."""

    async def run(self) -> None:
        """Wait until it is wanted, then run it until cancelled."""


class Notes:
    """The notes in one folder. Constructing it does nothing yet."""

    def __init__(
        self,
        home: Path,
        state_folder: Path,
        index: Deferred,
        remedies: Remedies,
    ) -> None:
        """Make one.

        Args:
            home: The store's folder, absolute and resolved; made if it is not there.
            state_folder: Of our own, for what belongs to this store and does not lie in it.
            index: Of the folder of all projects; loaded once somebody searches by meaning.
            remedies: What to do about an error of the index.
        """
        self._index = index
        self._remedies = remedies
        disk = Disk(home)
        self.store = Store(disk, Shelf(disk), Repository(disk, state_folder))
        self.staging = Staging(disk, self.store.repository)
        self.writer = Writer(disk, self.store.repository, self._committed)
        self.syncing = Syncing(self.writer, Remote(disk, self.store.repository))
        self.log = Log(disk)
        self._under_way = 0
        self._is_index_behind = True
        """Whether something was written since the last question by meaning."""

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The time in which calls are answered."""
        self.writer.start()
        self.staging.start()
        self.syncing.start()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._open)
                tasks.start_soon(self._index.run)
                yield
                tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._stop)

    def _stop(self) -> None:
        self.syncing.stop()
        self.writer.stop()
        self.staging.stop()

    async def _open(self) -> None:
        """Commit what was written and not committed, and then what people write."""
        try:
            await awaited(self.writer.alone(lambda: None))
        except Refusal as refusal:  # whoever writes learns it
            _log.warning("the store cannot be written: %s", refusal)
        if self.store.disk.is_folder(""):
            await Watching(self.writer).run()

    def _committed(self) -> None:
        self._is_index_behind = True
        self.staging.look()
        self.syncing.look()

    @property
    def is_busy(self) -> bool:
        """Whether something is left to be done that nobody waits for."""
        return bool(self._under_way) or self.staging.is_busy or self.syncing.is_busy

    @property
    def state(self) -> str:
        """What it is doing, in one word."""
        return "WRITING" if self._under_way else "READY"

    # -- calls -----------------------------------------------------------------------------

    async def answer(self, call: Call, given: Given) -> Answer:
        """The answer to a call, with what went wrong if something did; logged in both cases.

        Args:
            call: What was asked.
            given: Its arguments, which are as they should be.
        """
        try:
            found = await self._answered(call.method, given)
            entry, answer = call.entry(), {"success": True, **found}
        except Exception as error:  # noqa: BLE001 - the contract has a code for what nobody foresaw
            refusal = self._refusal(call.method, error)
            named = {key: given[key] for key in ("project_id", "filename") if key in given}
            context = {**named, **refusal.context}
            entry = call.entry(str(refusal), refusal.code, _without_texts(context))
            answer = {
                "success": False,
                "error": str(refusal),
                "code": str(refusal.code),
                "context": {**context, "traceId": call.trace, "timestamp": entry["timestamp"]},
            }
        await self.note(entry)
        return answer

    def _refusal(self, method: str, error: BaseException) -> Refusal:
        """What an error is to a client."""
        if isinstance(error, Refusal):
            if method == "delete_project" and error.code in _OF_FILES:
                return Refusal(Code.PROJECT_DELETE_FAILED, str(error), **error.context)
            return error
        if isinstance(error, VectorIndexError):
            return Refusal(Code.SEARCH_ERROR, self._remedies.message(error))
        _log.error("a call failed", exc_info=error)
        is_systems = isinstance(error, OSError | MemoryError)
        return Refusal(Code.INTERNAL_ERROR if is_systems else Code.UNKNOWN_ERROR, sentence(error))

    async def note(self, entry: Mapping[str, Any]) -> None:
        """Log how a call went."""
        await anyio.to_thread.run_sync(self.log.write, entry)

    async def _answered(self, method: str, given: Given) -> Answer:
        if method in _WRITES:
            return await self._written(_WRITES[method], given)
        if method in _READS:
            return await anyio.to_thread.run_sync(_READS[method], self.store, given)
        match method:
            case "search_knowledge":
                return await self._searched(given)
            case "get_server_info":
                return store_calls.server_info(self.store)
            case "get_storage_status":
                return await self._status()
            case "sync_storage":
                return await self._synced()
        raise Refusal(Code.UNKNOWN_ERROR, f"there is no call {method}")

    async def _written(self, write: Write, given: Given) -> Answer:
        self._under_way += 1
        try:
            answer: Answer = await awaited(self.writer.ask(lambda: write(self.store, given)))
            return answer
        finally:
            self._under_way -= 1

    async def _searched(self, given: Given) -> Answer:
        if given["mode"] == "keywords":
            return await anyio.to_thread.run_sync(self._searched_by_words, given)
        from vector_index_mcp.notes.search import index, meaning  # LanceDB

        document_calls.check_query(given["query"])
        folder = await anyio.to_thread.run_sync(index.folder_of, self.store, given)
        if folder is None:
            return {"total_documents": 0, "total_matches": 0, "results": []}
        by_words = given["mode"] == "both"
        live_index = await self._index.get()
        is_behind, self._is_index_behind = self._is_index_behind, False
        answered = await index.nearest(
            live_index,
            given["query"],
            folder,
            meaning.MOST_RESULTS,
            by_words=by_words,
            is_behind=is_behind,
        )
        if answered.lack and not by_words:
            raise Refusal(Code.SEARCH_ERROR, f"nothing can be found by meaning: {answered.lack}")
        results = await anyio.to_thread.run_sync(
            partial(
                meaning.results,
                self.store,
                answered.found,
                given["query"],
                with_project=given["all_projects"],
            )
        )
        answer: Answer = {
            "total_documents": len(results),
            "total_matches": len(results),
            "results": results,
        }
        if answered.lack:
            answer["by_words_alone"] = answered.lack
        elif answered.without_vectors:
            answer["note"] = (
                f"{answered.without_vectors} pieces of the notes are still being embedded; "
                f"{'their meaning does' if by_words else 'they do'} not count yet"
            )
        return answer

    def _searched_by_words(self, given: Given) -> Answer:
        answer = document_calls.search(self.store, given)
        if given["all_projects"]:  # which reads every text there is
            memory.give_back()
        return answer

    async def _status(self) -> Answer:
        try:
            storage = await awaited(self.writer.alone(lambda: store_calls.look(self.writer)))
            remote = await anyio.to_thread.run_sync(self.syncing.status)
        except Refusal as refusal:
            storage, remote = store_calls.Storage("", "", (), str(refusal)), ""
        news = list(self.syncing.news)
        return await anyio.to_thread.run_sync(store_calls.status, self.store, storage, remote, news)

    async def _synced(self) -> Answer:
        commit = partial(
            self.writer.take_over_by_hand, about=lambda files: _sync_message(len(files))
        )
        count = await awaited(self.writer.alone(commit))
        try:
            pushed = await awaited(self.syncing.now())
            problem = ""
        except Refusal as refusal:
            pushed, problem = False, f"; not pushed: {refusal}"
        if not count and not pushed:
            message = f"No changes to sync - working tree clean{problem}"
            return {"message": message, "files_committed": 0, "pushed": False}
        return {
            "message": f"Storage synchronized successfully{problem}",
            "files_committed": count,
            "pushed": pushed,
            **({"commit_message": _sync_message(count)} if count else {}),
        }


def _sync_message(count: int) -> str:
    return f"Sync storage: {count} file{'s' if count != 1 else ''} updated"


def _without_texts(context: Mapping[str, Any]) -> dict[str, Any]:
    """What of a context may stand in the log: no contents."""
    return {key: value for key, value in context.items() if key != "changes"}

"""The service for one store of notes: a server calls `answer` while the service is `running`.

Reading and writing block, so they run in threads. All changes go through one `Writer`.
"""

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import anyio.to_thread

from vector_index_mcp.errors import VectorIndexError, counted, sentence
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.notes import document_calls, main_calls, resources, store_calls, todo_calls
from vector_index_mcp.notes.activity import Call, Log
from vector_index_mcp.notes.calls import Answer, Given, Read, Store, Write, planned
from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.remote import Remote
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.staging import Staging
from vector_index_mcp.notes.store.writer import Writer, awaited
from vector_index_mcp.notes.syncing import Exchanged, Syncing
from vector_index_mcp.notes.texts.projects import Projects
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
_NOT_FOUND = frozenset({Code.PROJECT_NOT_FOUND, Code.DOCUMENT_NOT_FOUND, Code.TODO_NOT_FOUND})
_OF_FILES = frozenset({Code.FILE_SYSTEM_ERROR, Code.ACCESS_DENIED, Code.INVALID_PATH})

_FIRST_NOTES_SECONDS = 5.0  # how long a call waits for the notes of a remote, if there are none yet
_ABSENT_SECONDS = 5.0  # between two looks for a store that is not there


class Deferred(Protocol):
    """An index that starts when `get` is first called."""

    async def get(self) -> "LiveIndex":
        """Return the index once it runs, or raise why it cannot."""

    async def run(self) -> None:
        """Wait for a `get`, then run the index, until cancelled; no error of it ends this."""


class Notes:
    """The service for the notes in one folder. The constructor starts nothing."""

    def __init__(
        self,
        home: Path,
        state_folder: Path,
        index: Deferred,
        remedies: Remedies,
    ) -> None:
        """Set up the service.

        Args:
            home: The store's folder, absolute and resolved; created if it is missing.
            state_folder: A folder outside the store, for this program's own data about the store.
            index: The index of all projects; loaded at the first search by meaning.
            remedies: What to do about each error of the index.
        """
        self._index = index
        self._remedies = remedies
        disk = Disk(home)
        self.store = Store(disk, Shelf(disk), Repository(disk, state_folder))
        self.writer = Writer(disk, self.store.repository, self._committed)
        self.staging = Staging(disk, self.store.repository)
        self.syncing = Syncing(self.writer, Remote(disk, self.store.repository))
        self.log = Log(disk)
        self._under_way = 0
        self._commits, self._searched_commits = 1, 0
        """How often the branch was moved, and how often before the last search by meaning."""

    # -- lifetime --------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the service: `answer` may be called while this context is open."""
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
        """Commit changes that are not committed yet, then those that people make by hand."""
        try:
            await awaited(self.writer.alone(lambda: None))
        except Exception as error:  # noqa: BLE001 - each later write reports it to its caller
            refusal = as_refusal(error, "opening the store")
            _log.warning("the store cannot be written: %s", refusal)
        self.staging.look()  # a killed service may have left its index, and the lock of it
        while True:
            if await anyio.to_thread.run_sync(self._is_present):
                await Watching(self.writer).run()
            await anyio.sleep(_ABSENT_SECONDS)

    def _is_present(self) -> bool:
        try:
            self.writer.presence.check()
            return self.store.disk.is_folder("")
        except Refusal:
            return False

    def _committed(self) -> None:
        self._commits += 1
        self.staging.look()
        self.syncing.look()

    @property
    def is_busy(self) -> bool:
        """Whether the service still has work to do, although perhaps no caller waits for it."""
        return bool(self._under_way) or self.staging.is_busy or self.syncing.is_busy

    @property
    def state(self) -> str:
        """What the service is doing: WRITING or READY."""
        return "WRITING" if self._under_way else "READY"

    # -- calls -----------------------------------------------------------------------------

    async def answer(self, call: Call, given: Given) -> Answer:
        """Answer a call, and log it. An error becomes an answer with `success: false`.

        Args:
            call: The call.
            given: Its arguments, already checked.
        """
        try:
            found = await self._answered(call.method, given)
            entry, answer = call.entry(), {"success": True, **found}
        except Exception as error:  # noqa: BLE001 - the contract has a code for unexpected errors
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
        """Translate an error into a code and a message of the contract."""
        if isinstance(error, Refusal):
            if method == "delete_project" and error.code in _OF_FILES:
                return Refusal(Code.PROJECT_DELETE_FAILED, str(error), **error.context)
            return error
        if isinstance(error, VectorIndexError):
            return Refusal(Code.SEARCH_ERROR, self._remedies.message(error))
        return as_refusal(error, "a call")

    async def note(self, entry: Mapping[str, Any]) -> None:
        """Write the log entry of a call."""
        await anyio.to_thread.run_sync(self.log.write, entry)

    async def read(self, address: str) -> tuple[str, str]:
        """Return the text and the MIME type of a resource; see `resources.read`."""
        left_out = self._left_out(resources.project_in(address))
        try:
            await anyio.to_thread.run_sync(self.writer.presence.check)
            return await anyio.to_thread.run_sync(resources.read, self.store, address, left_out)
        except Refusal as refusal:
            raise await _explained(refusal, left_out) from None

    async def _answered(self, method: str, given: Given) -> Answer:
        """Answer a call. If nothing is found because a sparse checkout leaves it out, say so."""
        left_out = self._left_out(given.get("project_id", ""))
        try:
            found = await self._found(method, given)
        except Refusal as refusal:
            raise await _explained(refusal, left_out) from None
        if found.get("exists") is False and (words := await anyio.to_thread.run_sync(left_out)):
            return {**found, "note": words}
        return found

    def _left_out(self, project_id: str) -> resources.LeftOut:
        checkout = self.writer.by_hand.checkout
        return partial(store_calls.about_absence, self.store, checkout, project_id)

    async def _found(self, method: str, given: Given) -> Answer:
        if not self.syncing.has_tried.is_set():
            await anyio.to_thread.run_sync(self._wait_for_first_notes)
        if method in _WRITES:
            return await self._written(_WRITES[method], given)
        self.syncing.look_for_reader()
        match method:
            case "get_server_info":
                return store_calls.server_info(self.store)
            case "get_storage_status":
                return await self._status()
            case "sync_storage":
                return await self._synced()
        await anyio.to_thread.run_sync(self.writer.presence.check)
        if method in _READS:
            return await anyio.to_thread.run_sync(_READS[method], self.store, given)
        if method == "search_knowledge":
            return await self._searched(given)
        raise Refusal(Code.UNKNOWN_ERROR, f"there is no tool {method}")

    def _wait_for_first_notes(self) -> None:
        """Give a store without notes a moment to get those of its remote: it may be new here."""
        with suppress(Refusal):
            if not any(Projects(self.store.disk).all()):
                self.syncing.wait_for_first(_FIRST_NOTES_SECONDS)

    async def _written(self, write: Write, given: Given) -> Answer:
        self._under_way += 1
        try:
            plan = partial(planned, write, self.store, given)
            answer: Answer = await awaited(self.writer.ask(plan))
            lags = await anyio.to_thread.run_sync(lambda: self.writer.index.is_kept_back)
            return {**answer, "note": store_calls.LAGGING} if lags else answer
        finally:
            self._under_way -= 1

    async def _searched(self, given: Given) -> Answer:
        if given["mode"] == "keywords":
            return await anyio.to_thread.run_sync(self._searched_by_words, given)
        from vector_index_mcp.notes.search import index, meaning  # LanceDB

        document_calls.check_query(given["query"])
        folder = await anyio.to_thread.run_sync(index.folder_of, self.store, given)
        if folder is None:
            return await anyio.to_thread.run_sync(
                document_calls.nothing_searched, self.store, given
            )
        by_words = given["mode"] == "both"
        live_index = await self._loaded_index()
        commits = self._commits
        answered = await index.nearest(
            live_index,
            given["query"],
            folder,
            meaning.MOST_RESULTS,
            by_words=by_words,
            is_behind=commits != self._searched_commits,
        )
        self._searched_commits = commits
        if answered.lack and not by_words:
            raise Refusal(
                Code.SEARCH_ERROR, f"search by meaning is not possible now: {answered.lack}"
            )
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
            "total_matches": sum(each["match_count"] for each in results),
            "results": results,
        }
        notes = [meaning.doubt(results)]
        if answered.lack:
            notes.append(f"Searched by words only, not by meaning: {answered.lack}")
        elif answered.without_vectors:
            notes.append(
                f"{counted(answered.without_vectors, 'chunk')} of the notes cannot be found by "
                f"meaning yet{', only by words' if by_words else ''}: embedding goes on"
            )
        note = ". ".join(filter(None, notes))
        return {**answer, "note": note} if note else answer

    async def _loaded_index(self) -> "LiveIndex":
        try:
            return await self._index.get()
        except VectorIndexError:
            raise  # it has the same code
        except Exception as error:
            words = f"search by meaning is not possible now: {sentence(error)}"
            raise Refusal(Code.SEARCH_ERROR, words) from error

    def _searched_by_words(self, given: Given) -> Answer:
        answer = document_calls.search(self.store, given)
        if given["all_projects"]:  # this has read every text of the store
            memory.give_back()
        return answer

    async def _status(self) -> Answer:
        try:
            storage = await awaited(self.writer.alone(lambda: store_calls.look(self.writer)))
        except Refusal as refusal:
            storage = store_calls.Storage("", "", (), str(refusal))
        remote = await anyio.to_thread.run_sync(self.syncing.status)
        news = list(self.syncing.news)
        return await anyio.to_thread.run_sync(store_calls.status, self.store, storage, remote, news)

    async def _synced(self) -> Answer:
        commit = partial(
            self.writer.take_over_by_hand, about=lambda files: _sync_message(len(files))
        )
        count = await awaited(self.writer.alone(commit))
        try:
            done = await awaited(self.syncing.now())
            problem = ""
        except Refusal as refusal:
            done, problem = Exchanged(has_remote=False), f"; not pushed: {refusal}"
        # An earlier exchange may have pushed the commit of this call already.
        pushed = done.has_pushed or (count > 0 and done.has_remote)
        notes = {"notes": list(done.notes)} if done.notes else {}
        if not count and not pushed and not done.has_taken:
            message = f"No changes to sync - working tree clean{problem}"
            return {"message": message, "files_committed": 0, "pushed": False, **notes}
        return {
            "message": f"Storage synchronized successfully{problem}",
            "files_committed": count,
            "pushed": pushed,
            **notes,
            **({"commit_message": _sync_message(count)} if count else {}),
        }


async def _explained(refusal: Refusal, left_out: resources.LeftOut) -> Refusal:
    """Return a refusal; if something is not found, with what a sparse checkout leaves out."""
    if refusal.code in _NOT_FOUND and (words := await anyio.to_thread.run_sync(left_out)):
        return Refusal(refusal.code, f"{refusal}; {words}", **refusal.context)
    return refusal


def _sync_message(count: int) -> str:
    return f"Sync storage: {count} file{'s' if count != 1 else ''} updated"


def _without_texts(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return the context without texts of notes, which must not get into the log."""
    return {key: value for key, value in context.items() if key != "changes"}

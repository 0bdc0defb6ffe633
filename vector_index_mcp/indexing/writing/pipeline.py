"""Turns a batch of dirty files into committed text. `vectors` embeds the committed chunks later.

A fault of one file is no error: the file's record says what is wrong. A fault of the store is an
error, after which the whole batch has to be done again.
"""

import logging
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import anyio.to_thread

from vector_index_mcp.engine.models.cache import EmbeddingCache
from vector_index_mcp.engine.store import Store
from vector_index_mcp.engine.text.fields import embedded_text
from vector_index_mcp.engine.types import (
    Claim,
    Document,
    FileRecord,
    ModelIdentity,
    StoredChunk,
    Vector,
)
from vector_index_mcp.errors import ProjectError, StoreError
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.scan import CLAIMED, OUTDATED, Changes
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.file import Prepared, Task, is_storable
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, SKIPPED
from vector_index_mcp.indexing.vectors.team import TeamVectors
from vector_index_mcp.indexing.writing.run import Outcome

_log = logging.getLogger(__name__)

_LAST_CHANGES = 10
# Usually a batch takes a quarter of a second. What is saved meanwhile waits for the batch and its
# last portion, which may be a file that takes seconds.
_MOST_SECONDS_OF_A_BATCH = 2.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Files that are prepared for the index but not committed."""

    known: dict[str, FileRecord | None]
    """What the ledger knew of each file when its preparation began."""
    prepared: list[Prepared]
    gone: list[str]
    """Files to forget."""
    problem: ProjectError | None = None
    """Why no file could be read; `commit` raises it."""
    left: tuple[str, ...] = ()
    """Files that were not read because the batch's time was up."""

    @property
    def dirty(self) -> list[str]:
        """The files that were read."""
        return [each.key for each in self.prepared]

    def without(self, keys: Collection[str]) -> "Batch":
        """This batch without the files `keys`."""
        return Batch(
            {key: known for key, known in self.known.items() if key not in keys},
            [each for each in self.prepared if each.key not in keys],
            [key for key in self.gone if key not in keys],
            self.problem,
            self.left,
        )


@dataclass(frozen=True, slots=True)
class Change:
    """How a commit changed what the index holds of one file."""

    key: str
    what: str
    """`indexed`, `skipped`, `failed` or `removed`."""
    when: datetime


class Pipeline:
    """The stages from a dirty key to a chunk that a search finds by its words."""

    def __init__(
        self,
        folders: Folders,
        crew: Crew,
        cache: EmbeddingCache,
        activity: Activity,
        team: TeamVectors,
        looks: Looks,
    ) -> None:
        """Prepare; the two stages are `prepare` and `commit`.

        Args:
            folders: The folders of the index.
            crew: Reads and cuts files.
            cache: Vectors of texts that were embedded before; a commit stores them with the text.
            activity: Notes what is being done.
            team: Gives the vectors that the cache lacks, as far as the team has them at hand.
            looks: Looks at folders, whose drives may hang.
        """
        self.crew = crew
        self._folders = folders
        self._cache = cache
        self._activity = activity
        self._team = team
        self._looks = looks
        self.unanswered: set[str] = set()
        """Files that were not read because a drive does not answer, until they are looked at."""
        self.revision = 0
        """The revision of the last commit. Set it from the store before the first commit."""
        self.torn: set[str] = set()
        """The files whose rows may be newer than their records, since a commit of theirs failed."""
        self.last_changes: deque[Change] = deque(maxlen=_LAST_CHANGES)
        """The last changes, the newest last."""

    async def prepare(
        self, store: Store, ledger: Ledger, changes: Changes, *, promptly: bool = False
    ) -> Batch:
        """Read and cut the files of `changes`; nothing is written yet.

        Args:
            store: Where their rows are.
            ledger: What is known of that store's files.
            changes: The files to read and the files to forget.
            promptly: Whether the files have just been saved. Then the crew goes on with a file
                that takes long and queues it again when it is done. Otherwise files for which time
                is short are left out of the batch, see `Batch.left`.
        """
        known = {key: ledger.get(key) for key in (*changes.dirty, *changes.gone)}
        places = ((key, self._folders.of(key)) for key in changes.dirty)
        claims = await _claims(store, known)
        tasks = [
            # What is known of a file says nothing about its rows, if these are newer.
            Task(
                folder,
                key,
                known[key] if key not in self.torn else None,
                tuple(claims.get(key, ())),
            )
            for key, folder in places
            if folder is not None
        ]
        with self._activity.of(f"the reading of {_files(changes.dirty)}"):
            prepared, silent = await self._prepared(tasks, promptly=promptly)
            absent, problem = await self._absent(prepared, silent)
        answered = {*changes.gone, *(each.key for each in prepared)}
        unread = [t for t in tasks if t.key not in answered]
        self.unanswered.update(task.key for task in unread if task.folder in silent)
        left = () if promptly else tuple(t.key for t in unread if t.folder not in silent)
        known = {key: record for key, record in known.items() if key in answered}
        batch = Batch(known, prepared, changes.gone, problem, left)
        return batch.without({key for key in answered if self._folders.of(key) in absent})

    async def _prepared(
        self, tasks: Sequence[Task], *, promptly: bool
    ) -> tuple[list[Prepared], set[Folder]]:
        """Have the crew prepare files.

        Returns:
            The results, without those of files on drives that do not answer; and these folders.
        """
        silent: set[Folder] = set()
        while True:
            here = [task for task in tasks if task.folder not in silent]
            work = (
                self.crew.prepare_promptly(here)
                if promptly
                else self.crew.prepare(here, _MOST_SECONDS_OF_A_BATCH)
            )
            folders = {task.folder for task in here}
            try:
                return await self._looks.while_all_answer(folders, work), silent
            except TimeoutError:
                silent |= await self._looks.hung(folders)

    async def _absent(
        self, prepared: Sequence[Prepared], silent: Collection[Folder]
    ) -> tuple[list[Folder], ProjectError | None]:
        """The folders that are out of reach; if all are, no folders but the first one's problem."""
        lost = (self._folders.of(each.key) for each in prepared if _is_lost(each))
        suspects = [folder for folder in dict.fromkeys([*silent, *lost]) if folder is not None]
        problems = {folder: await self._looks.problem_of(folder) for folder in suspects}
        absent = [folder for folder, problem in problems.items() if problem is not None]
        if absent and len(absent) == len(self._folders):
            return [], problems[absent[0]]
        return absent, None

    async def commit(
        self, store: Store, ledger: Ledger, model: ModelIdentity | None, batch: Batch
    ) -> Outcome:
        """Write a prepared batch to the index.

        Files that were committed again since `batch` was prepared are left as they are now.

        Args:
            store: Where the rows are.
            ledger: What is known of that store's files; it is brought up to date as well.
            model: The model of the store's vectors; None if there are no vectors yet.
            batch: As `prepare` returned it, with the same ledger.

        Raises:
            ProjectError: If all folders were out of reach when the files were read.
            StoreError: If a commit fails. The ledger never holds what was not committed.
        """
        if batch.problem is not None:
            raise batch.problem
        current = {key for key, known in batch.known.items() if ledger.get(key) is known}
        prepared = [each for each in batch.prepared if each.key in current]
        gone = [key for key in batch.gone if key in current]
        gone += [each.key for each in prepared if each.record is None]
        with self._activity.of(f"the commit of {_files(list(batch.known))}"):
            await self._commit(store, ledger, model, prepared)
            if gone:
                await store.delete(gone)
                for key in gone:
                    ledger.forget(key)
                self.torn.difference_update(gone)
        self._remember(prepared, gone)
        return _outcome(prepared, len(gone))

    async def rekey(self, store: Store, ledger: Ledger, keys: Mapping[str, str]) -> None:
        """Give files other keys; they keep their chunks and vectors, and nothing is read again.

        Args:
            store: Where the rows are.
            ledger: What is known of that store's files; it is brought up to date as well.
            keys: The new key of each file by its old one.

        Raises:
            StoreError: If a commit fails. Files may then have rows under both keys, as after a
                kill. Rows under an old key belong to no folder, so a later look forgets them.
        """
        rows = await store.rows(_storable(keys))
        known = {key: ledger.get(key) for key in keys}
        records = [replace(record, key=keys[key]) for key, record in known.items() if record]
        renamed = {keys[key]: row for key, row in rows.items()}
        # A folder that has just been removed may have had this name.
        replaced = [key for key in keys.values() if not renamed.get(key) and ledger.get(key)]
        if replaced:
            await store.delete(replaced)
        await self._store(store, ledger, records, renamed)
        await store.delete(keys)
        for key in keys:
            ledger.forget(key)

    async def carry_over(
        self, source: Store, known: Ledger, target: Store, ledger: Ledger, keys: Sequence[str]
    ) -> None:
        """Copy the rows of files that are out of reach from one store into another.

        The copied records have the stamp OUTDATED, so the files are cut as soon as they can be.

        Args:
            source: The store to copy from.
            known: What is known of the source's files.
            target: The store to copy to.
            ledger: What is known of the target's files; it is brought up to date as well.
            keys: The files.

        Raises:
            StoreError: If a commit fails.
        """
        found = (known.get(key) for key in keys)
        records = [replace(record, stamp=OUTDATED) for record in found if record is not None]
        await self._store(target, ledger, records, await source.rows(_storable(keys)))

    async def _store(
        self,
        store: Store,
        ledger: Ledger,
        records: Sequence[FileRecord],
        rows: Mapping[str, Sequence[tuple[StoredChunk, Vector | None]]],
    ) -> None:
        """Commit files that were prepared before, with the vectors they have."""
        vectors = {c.chunk_hash: v for row in rows.values() for c, v in row if v is not None}
        details = {record.key: record.details for record in records}
        documents = [
            self.crew.recipe.recut(key, [chunk for chunk, _ in row], details.get(key, ""))
            for key, row in rows.items()
            if row
        ]
        if documents:
            self.revision += 1
            await store.replace(documents, self.revision, vectors)
        await store.put_records(records)
        for record in records:
            lacking = sum(vector is None for _, vector in rows.get(record.key, ()))
            ledger.put(record, lacking)

    def _remember(self, prepared: Sequence[Prepared], gone: Sequence[str]) -> None:
        now = datetime.now(UTC)
        for each in prepared:
            if each.record is not None and not _is_unchanged(each):
                self.last_changes.append(Change(each.key, each.record.state, now))
        self.last_changes.extend(Change(key, "removed", now) for key in gone)

    async def _commit(
        self,
        store: Store,
        ledger: Ledger,
        model: ModelIdentity | None,
        prepared: Sequence[Prepared],
    ) -> None:
        documents = [each.document for each in prepared if each.document is not None]
        found = [each.record for each in prepared if each.record is not None]
        records = [record for record in found if ledger.get(record.key) != record]
        hashes = {d.key: [entry.chunk_hash for entry in d.entries] for d in documents}
        vectors: dict[str, Vector] = {}
        # The dimensions differ after a change of the model that failed or was killed halfway.
        if model is not None and model.dimension == store.dimension:
            wanted = [h for of_document in hashes.values() for h in of_document]
            vectors = await anyio.to_thread.run_sync(self._cache.get, model, wanted)
            if self._team.is_used:
                lacking = _texts_lacking(documents, vectors)
                vectors |= await self._team.at_hand(model, lacking)
        if documents:
            self.revision += 1
            self.torn.update(hashes)
            await store.replace(documents, self.revision, vectors)
        await store.put_records(records)
        self.torn.difference_update(hashes)
        for record in found:
            if record.key in hashes:
                ledger.put(record, sum(h not in vectors for h in hashes[record.key]))
            elif ledger.get(record.key) != record:
                ledger.put_unchanged(record)


def _texts_lacking(documents: Iterable[Document], vectors: Mapping[str, Vector]) -> dict[str, str]:
    """The texts to embed of the chunks that have no vector, by hash."""
    return {
        entry.chunk_hash: embedded_text(document.key, entry.chunk.scope, entry.chunk.text)
        for document in documents
        for entry in document.entries
        if entry.chunk_hash not in vectors
    }


async def _claims(
    store: Store, known: Mapping[str, FileRecord | None]
) -> Mapping[str, Sequence[Claim]]:
    """The rows that another machine has made, of files that nobody has compared with the disk."""
    claimed = [key for key, record in known.items() if record and record.stamp == CLAIMED]
    if not claimed:
        return {}
    try:
        return await store.contents.claims(claimed)
    except StoreError as error:  # then the rows are made here
        _log.warning(
            "the shared index cannot be compared with the files, which are read here instead: %s",
            error,
        )
        return {}


def _storable(keys: Iterable[str]) -> list[str]:
    return [key for key in keys if is_storable(key)]


def _files(keys: Sequence[str]) -> str:
    """Files as a message names them: the name of one, the number of several."""
    return keys[0] if len(keys) == 1 else f"{len(keys)} files"


def _is_unchanged(file: Prepared) -> bool:
    """Whether the file was touched, but its content is the same as before."""
    return file.document is None and file.record is not None and file.record.state == INDEXED


def _is_lost(file: Prepared) -> bool:
    """Whether the file could not be read, as happens when its whole folder is out of reach."""
    return file.record is None or file.record.state == FAILED


def _outcome(prepared: Sequence[Prepared], removed: int) -> Outcome:
    records = [each.record for each in prepared if each.record is not None]
    states = [record.state for record in records]
    documents = [each.document for each in prepared if each.document is not None]
    unchanged = sum(map(_is_unchanged, prepared))
    return Outcome(
        read=len(records),
        indexed=states.count(INDEXED) - unchanged,
        unchanged=unchanged,
        skipped=states.count(SKIPPED),
        failures={record.key for record in records if record.state == FAILED},
        removed=removed,
        chunks=sum(len(document.entries) for document in documents),
    )

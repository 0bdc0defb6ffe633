"""Prepares one file for the index: reads, cuts and hashes it, and splits its words.

Runs in children of the service (`crew`), since a file may crash or hang a parser. Knows no index.
"""

import logging
import os
import time
from dataclasses import dataclass, replace

from vector_index_mcp.engine.types import Claim, Document, FileRecord
from vector_index_mcp.files import read
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.scan import CLAIMED, OUTDATED, UNKNOWN, may_recur
from vector_index_mcp.indexing.looking.deep import TOO_DEEP, is_deep_folder
from vector_index_mcp.indexing.preparing.claims import are_true
from vector_index_mcp.indexing.preparing.recipe import Recipe, without_rows
from vector_index_mcp.indexing.reasons import (
    FAILED,
    INDEXED,
    NO_PROCESS,
    SKIPPED,
    is_unreadable,
    of_giving_up,
)

_log = logging.getLogger(__name__)

_UNSTORABLE_NAME = "name is not valid Unicode"
"""The reason for cutting a file by its lines that is no fault of the file; it is tried again."""


@dataclass(frozen=True, slots=True)
class Task:
    """A file to prepare."""

    folder: Folder
    key: str
    known: FileRecord | None = None
    """The file's record in the index; None if it is new."""
    claims: tuple[Claim, ...] = ()
    """The file's rows, if another machine has made them and they were not compared here yet."""

    @property
    def size(self) -> int:
        """How many bytes will be read; 0 if the file will be skipped."""
        try:
            size = os.lstat(self.folder.place_of(self.key)).st_size
        except (OSError, ValueError):
            return 0
        return size if size <= self.folder.reading.max_file_bytes else 0


@dataclass(frozen=True, slots=True)
class Request:
    """Files for a child process to prepare."""

    recipe: Recipe
    tasks: tuple[Task, ...]
    seconds: float
    """The processor time that each file may take; a large file gets more."""
    by_lines: str = ""
    """Why to cut the files by their lines; empty to cut them along their syntax."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """The result of preparing one file."""

    key: str
    record: FileRecord | None
    """The file's new record; None if the file does not exist any more."""
    document: Document | None
    """The file's new rows; None if its rows stay as they are, or if it can have none."""


def prepare(recipe: Recipe, task: Task, by_lines: str = "") -> Prepared:
    """Prepare a file. No content of a file makes it raise.

    Args:
        recipe: Turns the text into chunks.
        task: The file.
        by_lines: Why to cut the file by its lines; empty to cut it along its syntax.

    Raises:
        MemoryError: If there is too little memory.
    """
    began = time.time_ns()
    try:
        prepared = _prepare(recipe, task, by_lines)
        record = prepared.record
        if record is not None and may_recur(record.stamp, began):
            # A later write could leave the same stamp, so have the next scan read the file again.
            return replace(prepared, record=replace(record, stamp=UNKNOWN))
        return prepared
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - one file must not keep the others from the index
        _log.exception("%r could not be indexed", task.key)
        return failed(task, "internal error, see the log")


def given_up(task: Task, reason: str) -> Prepared:
    """The result for a file that cannot be prepared; it is tried again only when it changes."""
    return failed(task, of_giving_up(reason))


def put_off(task: Task, reason: str) -> Prepared:
    """The result for a file that is no fault of this: it stays as it is indexed, or fails.

    The next scan has it tried again, since the stamp in its record is not the file's.
    """
    if task.known is not None and task.known.state == INDEXED:
        return Prepared(task.key, task.known, None)
    found = failed(task, reason)
    assert found.record is not None
    return replace(found, record=replace(found.record, stamp=UNKNOWN))


def is_storable(key: str) -> bool:
    """Whether the name can be encoded in UTF-8, as LanceDB's strings are."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def failed(task: Task, reason: str) -> Prepared:
    """The result for a file that cannot be prepared now; a run tries it again."""
    skipped = read.Skipped(reason, read.stamp_now(task.folder, task.key))
    return _without_text(task.key, skipped, FAILED)


def _prepare(recipe: Recipe, task: Task, by_lines: str) -> Prepared:
    prepared = _read(recipe, task, by_lines)
    if prepared.record == task.known:
        return replace(prepared, document=None)  # the stored rows are the same
    return prepared


def _read(recipe: Recipe, task: Task, by_lines: str) -> Prepared:
    folder, key, known = task.folder, task.key, task.known
    if is_deep_folder(key):
        return _without_text(key, read.Skipped(TOO_DEEP, UNKNOWN), SKIPPED)
    if not is_storable(key):
        skipped = read.Skipped(_UNSTORABLE_NAME, read.stamp_now(folder, key))
        return _without_text(key, skipped, SKIPPED)
    result = read.read(folder, key)
    if isinstance(result, read.Vanished):
        return Prepared(key, None, None)
    if isinstance(result, read.Skipped):
        state = FAILED if is_unreadable(result.reason) else SKIPPED
        return _without_text(key, result, state)
    if known and _is_same(known, result) and _may_stay(recipe, task, result):
        record = _record(key, result, known.chunk_count, known.reason, known.details)
        return Prepared(key, record, None)
    cut = recipe.cut(key, result, by_lines)
    record = _record(key, result, len(cut.document.entries), cut.problem, cut.details)
    if by_lines == NO_PROCESS:
        record = replace(record, stamp=UNKNOWN)  # so that the next scan reads it again
    return Prepared(key, record, cut.document)


def _is_same(known: FileRecord, text: read.Text) -> bool:
    """Whether the file's rows were made of this text, and parsing it again would not help."""
    if known.state != INDEXED or known.stamp == OUTDATED or known.reason == NO_PROCESS:
        return False
    return known.content_hash == text.content_hash


def _may_stay(recipe: Recipe, task: Task, text: read.Text) -> bool:
    """Whether the rows of an unchanged file may stay; rows of another machine are checked."""
    assert task.known is not None
    if task.known.stamp != CLAIMED:
        return True
    if are_true(task.key, text, task.claims, recipe.chunk_max_chars):
        return True
    _log.warning("the shared index has wrong rows of %r, which is indexed again", task.key)
    return False


def _record(key: str, text: read.Text, chunk_count: int, reason: str, details: str) -> FileRecord:
    state = (INDEXED, reason, text.masked, details)
    return FileRecord(key, text.stamp, text.content_hash, chunk_count, *state)


def _without_text(key: str, found: read.Skipped, state: str) -> Prepared:
    """The result for a file without text: no chunks, so that rows of an earlier text go."""
    record = FileRecord(key, found.stamp, found.content_hash, 0, state, found.reason)
    if not is_storable(key):
        return Prepared(key, record, None)
    return Prepared(key, record, without_rows(key, found.content_hash, found.stamp[1] / 1e9))

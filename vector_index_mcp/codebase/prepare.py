"""One file to what is stored of it: read, cut, hashed, its words split. Knows no index.

Runs in a thread of the service or, when there are many files, in its children (`preparers`).
"""

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vector_index_mcp.codebase.ledger import FAILED, INDEXED, SKIPPED
from vector_index_mcp.engine import chunk, texts
from vector_index_mcp.engine.types import Document, FileRecord
from vector_index_mcp.files import read, secrets
from vector_index_mcp.files.language import language_of
from vector_index_mcp.files.scan import UNKNOWN, may_recur

_log = logging.getLogger(__name__)

_UNSTORABLE_NAME = "name is not valid Unicode"

Task = tuple[str, FileRecord | None]
"""A file's key, and what the index knows of it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """What turns a file into chunks, apart from the file."""

    max_file_bytes: int
    chunk_max_chars: int

    @property
    def version(self) -> str:
        """Differs whenever the same file would become other chunks."""
        limits = f"chars={self.chunk_max_chars} bytes={self.max_file_bytes}"
        return f"{chunk.VERSION} {texts.VERSION} {secrets.VERSION} {limits}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What became of one file."""

    key: str
    record: FileRecord | None
    """None if there is no such file any more."""
    document: Document | None
    """Its rows from now on; None if those it has stay, or if it can have none."""


def prepare(root: Path, recipe: Recipe, tasks: Sequence[Task]) -> list[Prepared]:
    """What becomes of some files of the project at `root`, in order. Never raises for a file."""
    return [_prepare_safely(root, recipe, task) for task in tasks]


def given_up(root: Path, task: Task, reason: str) -> Prepared:
    """What becomes of a file that could not even be tried."""
    return _without_text(task[0], read.Skipped(reason, read.stamp_now(root, task[0])), FAILED)


def is_storable(key: str) -> bool:
    """Whether the name can be written in UTF-8, as LanceDB's strings are."""
    try:
        key.encode()
    except UnicodeEncodeError:
        return False
    return True


def _prepare_safely(root: Path, recipe: Recipe, task: Task) -> Prepared:
    began = time.time_ns()
    try:
        prepared = _prepare(root, recipe, task)
        record = prepared.record
        if record is not None and may_recur(record.stamp, began):
            return replace(prepared, record=replace(record, stamp=UNKNOWN))  # read once more
        return prepared
    except Exception:  # noqa: BLE001 - one file must not keep the others from the index
        _log.exception("%r could not be indexed", task[0])
        return given_up(root, task, "internal error, see the log")


def _prepare(root: Path, recipe: Recipe, task: Task) -> Prepared:
    prepared = _read(root, recipe, task)
    if prepared.record == task[1]:
        return replace(prepared, document=None)  # the rows it has are these
    return prepared


def _read(root: Path, recipe: Recipe, task: Task) -> Prepared:
    key, known = task
    if not is_storable(key):
        skipped = read.Skipped(_UNSTORABLE_NAME, read.stamp_now(root, key))
        return _without_text(key, skipped, SKIPPED)
    result = read.read(root, key, recipe.max_file_bytes)
    if isinstance(result, read.Vanished):
        return Prepared(key, None, None)
    if isinstance(result, read.Skipped):
        state = FAILED if result.reason.startswith(read.UNREADABLE) else SKIPPED
        return _without_text(key, result, state)
    if known and known.state == INDEXED and known.content_hash == result.content_hash:
        return Prepared(key, _record(key, result, known.chunk_count), None)
    document = _document(key, result, recipe.chunk_max_chars)
    return Prepared(key, _record(key, result, len(document.entries)), document)


def _record(key: str, text: read.Text, chunk_count: int) -> FileRecord:
    return FileRecord(key, text.stamp, text.content_hash, chunk_count, INDEXED, "", text.masked)


def _without_text(key: str, found: read.Skipped, state: str) -> Prepared:
    """A file that is indexed as one without chunks, so that rows of an earlier text go."""
    record = FileRecord(key, found.stamp, found.content_hash, 0, state, found.reason)
    if not is_storable(key):
        return Prepared(key, record, None)
    return Prepared(key, record, _document(key, read.Text("", found.content_hash, found.stamp), 1))


def _document(key: str, text: read.Text, max_chars: int) -> Document:
    language = language_of(key)
    return Document(
        key=key,
        original_path=key.replace("/", os.sep),
        content_hash=text.content_hash,
        modified=text.stamp[1] / 1e9,
        language=language,
        entries=texts.entries(key, chunk.chunk_text(text.text, language, max_chars)),
    )

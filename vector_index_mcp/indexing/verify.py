"""Checks an index: compares its records and rows with each other and with the files on disk.

It changes nothing and needs no lock, so it can also check an index that a service keeps.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.to_thread
import numpy as np

from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import Entry, FileRecord, StoredChunk, Vector
from vector_index_mcp.files.folder import Folder, Folders
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.files.scan import Tree
from vector_index_mcp.indexing.looking.deep import walk
from vector_index_mcp.indexing.preparing.crew import Crew
from vector_index_mcp.indexing.preparing.file import Prepared, Task, is_storable
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.reasons import FAILED, INDEXED, is_cut_by_lines, is_unreadable

_FILES_PER_PORTION = 200
_LENGTH_TOLERANCE = 1e-3  # of a vector's length, which is 1

NOT_INDEXED = "is not in the index"
GONE = "is in the index, but no longer on disk"
OTHER_TEXT = "has another text than the index"
OTHER_CHUNKS = "has chunks in the index that differ from those of its text"
STRAY_ROWS = "has rows in the index that its record does not account for"
_UNSEEN = "cannot be read now, so it is not compared"
BAD_VECTOR = "has an invalid vector in the index"


@dataclass(slots=True)
class Report:
    """The result of a check."""

    files: int = 0
    chunks: int = 0
    vectors: int = 0
    faults: dict[str, str] = field(default_factory=dict)
    """What is wrong, by file."""
    unseen: dict[str, str] = field(default_factory=dict)
    """What cannot be read, so that nobody knows whether the index is right, by file."""


async def verify(
    folders: Folders, index: Index, make_ignore: Callable[[Folder], Ignore], recipe: Recipe
) -> Report:
    """Compare everything `index` holds with `folders`.

    Args:
        folders: The folders of the index.
        index: The index; it is only read.
        make_ignore: Reads the rules of a folder.
        recipe: The recipe of the index's chunks.

    Raises:
        ProjectError: If a folder cannot be read.
        StoreError: If the index cannot be read.
    """
    records = {record.key: record for record in await index.store.records()}
    homes: dict[str, Folder] = {}
    whole = Tree()
    for folder in folders:
        tree = await anyio.to_thread.run_sync(lambda f: walk(f, make_ignore(f)), folder)
        homes.update(dict.fromkeys(tree.files, folder))
        whole.files.update(tree.files)
        whole.unreadable += tree.unreadable
    on_disk = homes.keys()
    stored = await index.store.holdings()
    report = Report()
    report.faults.update(dict.fromkeys(on_disk - records.keys(), NOT_INDEXED))
    hidden = set(whole.hidden(records))
    report.unseen.update(dict.fromkeys(hidden, _UNSEEN))
    report.faults.update(dict.fromkeys(records.keys() - on_disk - hidden, GONE))
    report.faults.update(dict.fromkeys(stored.keys() - records.keys(), STRAY_ROWS))
    crew = Crew(recipe)
    try:
        for keys in batched(sorted(on_disk & records.keys()), _FILES_PER_PORTION):
            by_lines = {key: records[key].reason for key in keys if is_cut_by_lines(records[key])}
            tasks = {key: Task(homes[key], key) for key in keys}
            prepared = await crew.prepare([t for key, t in tasks.items() if key not in by_lines])
            prepared += [await crew.by_lines(tasks[key], why) for key, why in by_lines.items()]
            rows = await index.store.rows(filter(is_storable, keys))
            for one in prepared:
                _compare(one, records[one.key], rows.get(one.key, []), report)
    finally:
        with anyio.CancelScope(shield=True):
            await crew.end()
    return report


def _compare(
    file: Prepared,
    record: FileRecord,
    rows: Sequence[tuple[StoredChunk, Vector | None]],
    report: Report,
) -> None:
    if record.state == INDEXED and _is_unreadable(file.record):
        report.unseen[file.key] = _UNSEEN
        return
    fault = next(_faults(file, record, rows), None)
    if fault is not None:
        report.faults[file.key] = fault
    report.files += record.state == INDEXED
    report.chunks += len(rows)
    report.vectors += sum(vector is not None for _, vector in rows)


def _is_unreadable(record: FileRecord | None) -> bool:
    return record is not None and record.state == FAILED and is_unreadable(record.reason)


def _faults(
    file: Prepared, record: FileRecord, rows: Sequence[tuple[StoredChunk, Vector | None]]
) -> Iterator[str]:
    if file.record is None:
        yield GONE
        return
    same = (record.state, record.content_hash) == (file.record.state, file.record.content_hash)
    if not same:
        yield OTHER_TEXT
    expected = [_of_entry(entry) for entry in file.document.entries] if file.document else []
    if len(rows) != record.chunk_count:
        yield STRAY_ROWS
    if [_of_row(chunk) for chunk, _ in rows] != expected:
        yield OTHER_CHUNKS
    for _, vector in rows:
        # `not … <=` instead of `>`, so that NaN counts as a fault.
        if vector is not None and not abs(np.linalg.norm(vector) - 1) <= _LENGTH_TOLERANCE:
            yield BAD_VECTOR


def _of_entry(entry: Entry) -> tuple[object, ...]:
    chunk = entry.chunk
    place = (chunk.start_line, chunk.end_line, chunk.scope, tuple(chunk.symbols))
    return (chunk.text, entry.chunk_hash, *place)


def _of_row(chunk: StoredChunk) -> tuple[object, ...]:
    place = (chunk.start_line, chunk.end_line, chunk.scope, chunk.symbols)
    return (chunk.text, chunk.chunk_hash, *place)

"""A dataset made of what is indexed: nothing is embedded again.

The folder appears in one step, with its manifest, its table and what is known of its texts.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import anyio.to_thread

from vector_index_mcp.datasets import manifest, table
from vector_index_mcp.datasets.limits import LONGEST_PATH
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.datasets.table import PART, Facts
from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.prose.properties import Properties
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import FileRecord, StoredChunk, Vector
from vector_index_mcp.errors import SettingsError
from vector_index_mcp.indexing.ledger import INDEXED

METADATA, INDEX = "metadata.json", "index"
_FILES_AT_ONCE = 200
_BETWEEN = " › "


@dataclass(frozen=True, slots=True)
class About:
    """What is said of a dataset that is made."""

    id: str
    name: str
    description: str
    source: str
    """What it was made of, as people call it."""
    revision: str = ""
    """Of the source; empty if it has none."""
    license: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A dataset that was made."""

    folder: Path
    documents: int
    chunks: int
    left_out: int
    """Chunks without a vector."""
    model: str
    dimension: int
    took: float = field(default=0.0, compare=False)
    """Seconds."""


def check_id(id_: str) -> None:
    """Make sure that a dataset may be called so.

    Raises:
        SettingsError: If it may not.
    """
    if not manifest.ID.matches(id_) or len(id_) > manifest.LONGEST_ID:
        raise SettingsError("Dataset ID must be lowercase alphanumeric with hyphens only")


async def make(index: Index, below: str, about: About, folder: Path) -> Made:
    """Make a dataset of what an index holds.

    Args:
        index: With the vectors of one model.
        below: What the keys of the files begin with, before a slash; empty for all of them.
        about: What is said of it.
        folder: Where it appears; nothing is there.

    Raises:
        SettingsError: If something is there, or there is nothing that could be searched.
        StoreError: If the index cannot be read, or the dataset not be written.
    """
    model, records = index.manifest.model, await _records(index, below)
    if await anyio.Path(folder).exists():
        raise SettingsError(f"Dataset '{about.id}' already exists")
    if model is None or not records:
        raise SettingsError("No text content available to index")
    part = folder.with_name(f".{folder.name}.{os.getpid()}{PART}")
    await anyio.Path(part).mkdir(parents=True)
    try:
        start, chunks, left_out = len(below) + 1 if below else 0, 0, 0
        async with table.making(part / INDEX, model) as rows:
            for batch in batched(records, _FILES_AT_ONCE):
                held = await index.store.rows(record.key for record in batch)
                for record in batch:
                    found = [each for each in held.get(record.key, []) if each[1] is not None]
                    left_out += len(held.get(record.key, [])) - len(found)
                    texts = _texts(record, found, start)
                    await rows.add(texts, [vector for _, vector in found if vector is not None])
            chunks = rows.count
        if not chunks:
            raise SettingsError("No text content available to index")
        facts = Facts(model.name, model.dimension, chunks, "product", is_unit=True)
        made = Made(folder, len(records), chunks, left_out, model.name, model.dimension)
        await anyio.to_thread.run_sync(_describe, part, about, made, facts)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # it has another name by now, or is of no use
    return made


async def _records(index: Index, below: str) -> list[FileRecord]:
    start = f"{below}/" if below else ""
    return sorted(
        (r for r in await index.store.records() if r.state == INDEXED and r.key.startswith(start)),
        key=lambda record: record.key,
    )


def _texts(
    record: FileRecord, found: Iterable[tuple[StoredChunk, Vector | None]], start: int
) -> Sequence[Text]:
    path = record.key[start:][-LONGEST_PATH:]
    name = Properties.loaded(record.details, record.key).title if record.details else ""
    name = name or PurePosixPath(path).name
    return [Text.of(_titled(name, chunk.scope), path, chunk.text, chunk.text) for chunk, _ in found]


def _titled(name: str, scope: str) -> str:
    """The document, and where in it: headings, or definitions."""
    inner = scope.removeprefix(name).removeprefix(_BETWEEN)
    return f"{name}{_BETWEEN}{inner}" if inner else name


def _describe(folder: Path, about: About, made: Made, facts: Facts) -> None:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    table.write_facts(folder / INDEX, facts)
    (folder / INDEX / ".gitignore").unlink(missing_ok=True)  # a dataset may be kept in git
    said: dict[str, Any] = {
        "id": about.id,
        "name": about.name,
        "description": about.description,
        "index": INDEX,
        "metadata": METADATA,
        "defaultTopK": manifest.DEFAULT_TOP_K,
        "model": made.model,
        "documentCount": made.documents,
        "chunkCount": made.chunks,
        "embeddingDimensions": made.dimension,
        "source": about.source,
        "sourceRevision": about.revision,
        "license": about.license,
        "createdAt": now,
        "updatedAt": now,
    }
    stats = {
        "totalFiles": made.documents,
        "totalChunks": made.chunks,
        "embeddingDimensions": made.dimension,
        "indexedAt": now,
    }
    described = {"datasetId": about.id, "name": about.name, "description": about.description}
    known = {**described, "model": made.model, "createdAt": now, "stats": stats}
    _write(folder / manifest.NAME, {name: value for name, value in said.items() if value != ""})
    _write(folder / METADATA, known)


def _write(path: Path, said: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(said, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def facts_about(made: Made) -> Mapping[str, Any]:
    """What was made, as JSON for whoever called the command."""
    return {
        "datasetId": made.folder.name,
        "documents": made.documents,
        "chunks": made.chunks,
        "model": made.model,
        "embeddingDimensions": made.dimension,
        "indexPath": str(made.folder / INDEX),
        "metadataPath": str(made.folder / METADATA),
        "durationMs": round(1_000 * made.took),
    }

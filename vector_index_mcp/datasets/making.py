"""A dataset made of what is indexed: nothing is embedded again.

The folder appears in one step, with its manifest, its table and what is known of its texts.
"""

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Self

import anyio
import anyio.to_thread

from vector_index_mcp.datasets import manifest, table
from vector_index_mcp.datasets.limits import LARGEST_MANIFEST_BYTES, LONGEST_PATH
from vector_index_mcp.datasets.metadata import Text
from vector_index_mcp.datasets.table import PART, Facts, Rows
from vector_index_mcp.engine.batched import batched
from vector_index_mcp.engine.prose.properties import Properties
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import FileRecord, ModelIdentity, StoredChunk, Vector
from vector_index_mcp.errors import SettingsError
from vector_index_mcp.indexing.following import Show, follow_text, follow_vectors
from vector_index_mcp.indexing.keeper import Role
from vector_index_mcp.indexing.ledger import INDEXED
from vector_index_mcp.indexing.service import LiveIndex

METADATA, INDEX = "metadata.json", "index"
_FILES_AT_ONCE = 200
_BETWEEN = " › "
_LONGEST_REVISION = 64  # SHA-256 in hex


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

    @classmethod
    def of(
        cls,
        id_: str,
        source: str,
        revision: str,
        *,
        name: str,
        description: str,
        license_: str,
        is_appended: bool = False,
    ) -> Self:
        """What is said of a dataset, as far as somebody has said it, within its bounds.

        Args:
            id_: What it is called.
            source: What it is made of: a path, or what people call it.
            revision: Of the source.
            name: What people call it; empty for its id.
            description: What it is about; empty for what it is made of.
            license_: Of its texts.
            is_appended: Whether the dataset is there already; what is empty stays empty then.
        """
        # Whoever gets the dataset need not know where on this machine the source lies.
        known = _clean(Path(source).name or source, manifest.LONGEST_NAME)
        name = _clean(name, manifest.LONGEST_NAME)
        most = manifest.LONGEST_DESCRIPTION
        description = _clean(description, most)
        if not is_appended:
            name = name or id_
            description = description or _clean(f"Dataset created from {source}", most)
        return cls(
            id_,
            name,
            description,
            known,
            revision[:_LONGEST_REVISION],
            _clean(license_, manifest.LONGEST_NAME),
        )


def _clean(text: str, most: int) -> str:
    """A text that a file can hold and a manifest may say, which counts as JavaScript does."""
    text = text.encode("utf-8", "replace").decode().strip()
    return text.encode("utf-16-le")[: 2 * most].decode("utf-16-le", "ignore").strip()


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
    index: str = INDEX
    """What its table is called."""
    took: float = field(default=0.0, compare=False)
    """Seconds."""


def check_id(id_: str) -> None:
    """Make sure that a dataset may be called so.

    Raises:
        SettingsError: If it may not.
    """
    if not manifest.ID.matches(id_) or len(id_) > manifest.LONGEST_ID:
        raise SettingsError("Dataset ID must be lowercase alphanumeric with hyphens only")


def place_of(root: Path, id_: str, *, is_appended: bool = False) -> Path:
    """Where a dataset appears; looked at before hours of work.

    Args:
        root: The folder of all datasets.
        id_: What it is called.
        is_appended: Whether it is there already.

    Raises:
        SettingsError: If it may not be called so, is there and should not be, or the other way.
    """
    check_id(id_)
    folder = root / id_
    if is_appended and not (folder / manifest.NAME).is_file():
        raise SettingsError(f"Dataset '{id_}' does not exist; leave out --append to make it")
    if not is_appended:
        _check_free(folder)
    return folder


def _check_free(folder: Path) -> None:
    """Make sure that a dataset can appear in `folder`.

    Raises:
        SettingsError: If something is there.
    """
    if (folder / manifest.NAME).exists():
        raise SettingsError(f"Dataset '{folder.name}' already exists")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder} holds other files; move them away, or choose another id")


async def of_index(
    live: LiveIndex,
    below: str,
    about: About,
    folder: Path,
    show: Show,
    *,
    is_appended: bool = False,
) -> Made:
    """Make a dataset of an index, which is brought up to date first.

    Args:
        live: The index, not yet running.
        below: What the keys of the files begin with, before a slash; empty for all of them.
        about: What is said of it.
        folder: Where it appears, or is.
        show: Is told how far that is.
        is_appended: Whether it is there already, and gets more texts.

    Raises:
        SettingsError: If there is nothing that could be searched, or it does not fit.
        VectorIndexError: If the index cannot be read, or the dataset not be written.
    """
    from vector_index_mcp.datasets import appending  # it builds on this module

    began = time.monotonic()
    async with live.running(Role.VISITOR):
        if not await live.is_kept_elsewhere():
            run = await live.trigger(force_reindex=False)
            await follow_text(show, run)
            await follow_vectors(show, live)
            if live.progress.chunks:
                await live.embed()
        async with live.reading() as (found, _):
            work = appending.append if is_appended else make
            made = await work(found, below, about, folder)
    return replace(made, took=time.monotonic() - began)


async def make(index: Index, below: str, about: About, folder: Path) -> Made:
    """Make a dataset of what an index holds.

    Args:
        index: With the vectors of one model.
        below: As above.
        about: What is said of it.
        folder: Where it appears; nothing is there.

    Raises:
        SettingsError: If something is there, or there is nothing that could be searched.
        StoreError: If the index cannot be read, or the dataset not be written.
    """
    await anyio.to_thread.run_sync(_check_free, folder)
    model, records = await contents(index, below)
    part = folder.with_name(f".{folder.name}.{os.getpid()}{PART}")
    await anyio.Path(part).mkdir(parents=True)
    try:
        async with table.making(part / INDEX, model) as rows:
            left_out = await fill(rows, index, records, below)
        if not rows.count:
            raise nothing_to_index()
        made = Made(folder, len(records), rows.count, left_out, model.name, model.dimension)
        await anyio.to_thread.run_sync(_describe, part, about, made)
        part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)  # it has another name by now, or is of no use
    return made


async def contents(index: Index, below: str) -> tuple[ModelIdentity, list[FileRecord]]:
    """The model of an index, and the files that a dataset is made of.

    Raises:
        SettingsError: If there are none.
    """
    model, records = index.manifest.model, await _records(index, below)
    if not records:
        raise SettingsError("No supported files found to index")
    if model is None:
        raise nothing_to_index()
    return model, records


async def fill(rows: Rows, index: Index, records: Sequence[FileRecord], below: str) -> int:
    """Add what an index holds of files to a table; how many chunks have no vector."""
    left_out = 0
    for batch in batched(records, _FILES_AT_ONCE):
        held = await index.store.rows(record.key for record in batch)
        texts: list[Text] = []
        vectors: list[Vector] = []
        for record in batch:
            for chunk, vector in held.get(record.key, []):
                if vector is None:
                    left_out += 1
                else:
                    texts.append(_text(record, chunk, below))
                    vectors.append(vector)
        await rows.add(texts, vectors)  # at once: each time makes three files
    return left_out


def nothing_to_index() -> SettingsError:
    """Why a dataset of no text is not made."""
    return SettingsError("No text content available to index")


def path_of(record: FileRecord, below: str) -> str:
    """What the texts of a file are called in a dataset."""
    return record.key[len(below) + 1 if below else 0 :][-LONGEST_PATH:]


async def _records(index: Index, below: str) -> list[FileRecord]:
    start = f"{below}/" if below else ""
    return sorted(
        (r for r in await index.store.records() if r.state == INDEXED and r.key.startswith(start)),
        key=lambda record: record.key,
    )


def _text(record: FileRecord, chunk: StoredChunk, below: str) -> Text:
    path = path_of(record, below)
    name = Properties.loaded(record.details, record.key).title if record.details else ""
    title = _titled(name or PurePosixPath(path).name, chunk.scope)
    return Text.of(title, path, chunk.text, chunk.text)


def _titled(name: str, scope: str) -> str:
    """The document, and where in it: headings, or definitions."""
    inner = scope.removeprefix(name).removeprefix(_BETWEEN)
    return f"{name}{_BETWEEN}{inner}" if inner else name


def _describe(folder: Path, about: About, made: Made) -> None:
    now = moment()
    facts = Facts(made.model, made.dimension, made.chunks, "product", is_unit=True)
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
    write(folder / METADATA, known_of(about, made, now))
    write(folder / manifest.NAME, {name: value for name, value in said.items() if value != ""})


def known_of(about: About, made: Made, since: str) -> Mapping[str, Any]:
    """What is written beside the table of a dataset; the texts are in the table."""
    stats = {
        "totalFiles": made.documents,
        "totalChunks": made.chunks,
        "embeddingDimensions": made.dimension,
        "indexedAt": moment(),
    }
    described = {"datasetId": about.id, "name": about.name, "description": about.description}
    return {**described, "model": made.model, "createdAt": since, "stats": stats}


def moment() -> str:
    """Now, as manifests have it."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write(path: Path, said: Mapping[str, Any]) -> None:
    """Write JSON into a file, in one step.

    Raises:
        SettingsError: If it is a manifest that is too large to be read again.
    """
    data = (json.dumps(said, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
    if path.name == manifest.NAME and len(data) > LARGEST_MANIFEST_BYTES:
        raise SettingsError(
            f"its manifest would have {len(data)} bytes, of {LARGEST_MANIFEST_BYTES} at most; say "
            "less of it"
        )
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def facts_about(made: Made) -> Mapping[str, Any]:
    """What was made, as JSON for whoever called the command."""
    return {
        "datasetId": made.folder.name,
        "documents": made.documents,
        "chunks": made.chunks,
        "model": made.model,
        "embeddingDimensions": made.dimension,
        "indexPath": str(made.folder / made.index),
        "metadataPath": str(made.folder / METADATA),
        "durationMs": round(1_000 * made.took),
    }

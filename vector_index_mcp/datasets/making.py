"""Makes a dataset from an index, without embedding anything again.

The dataset's folder appears in one step, with its manifest, its table and its metadata.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
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
from vector_index_mcp.errors import SettingsError, encodable
from vector_index_mcp.indexing.reasons import INDEXED

METADATA, INDEX = "metadata.json", "index"
_FILES_AT_ONCE = 200
_BETWEEN = " › "
_LONGEST_REVISION = 64  # SHA-256 in hex


@dataclass(frozen=True, slots=True)
class About:
    """The description of a dataset to make."""

    id: str
    name: str
    description: str
    source: str
    """The name of what it is made from, for people."""
    revision: str = ""
    """The revision of the source; empty if it has none."""
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
        """Return a description with defaults for what is empty, cut to the allowed lengths.

        Args:
            id_: The dataset's id.
            source: The source: a path, or a name for people.
            revision: The source's revision.
            name: The dataset's name for people; by default its id.
            description: What the dataset is about; by default a sentence with its source.
            license_: The license of its texts.
            is_appended: Whether the dataset exists already; then there are no defaults.
        """
        # Only the last part of the path: other people need not know this machine's folders.
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
    """Return valid Unicode of at most `most` UTF-16 code units, the unit of the contract."""
    text = encodable(text).strip()
    return text.encode("utf-16-le")[: 2 * most].decode("utf-16-le", "ignore").strip()


@dataclass(frozen=True, slots=True)
class Made:
    """A dataset that was made."""

    folder: Path
    documents: int
    chunks: int
    left_out: int
    """How many chunks were left out because they have no vector."""
    model: str
    dimension: int
    index: str = INDEX
    """The name of the table's folder."""
    took: float = field(default=0.0, compare=False)
    """The time it took, in seconds."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many files have no text that could be taken, by reason."""


def check_id(id_: str) -> None:
    """Check a dataset's id.

    Raises:
        SettingsError: If it is not valid.
    """
    if not manifest.ID.matches(id_) or len(id_) > manifest.LONGEST_ID:
        raise SettingsError("Dataset ID must be lowercase alphanumeric with hyphens only")


def place_of(root: Path, id_: str, *, is_appended: bool = False) -> Path:
    """Check, before hours of work, that a dataset can be written; return its folder.

    Args:
        root: The folder of all datasets.
        id_: The dataset's id.
        is_appended: Whether the dataset must exist already.

    Raises:
        SettingsError: If the id is not valid, if a new dataset exists already, or if a dataset to
            append to does not exist.
    """
    check_id(id_)
    folder = root / id_
    if is_appended and not (folder / manifest.NAME).is_file():
        raise SettingsError(f"Dataset '{id_}' does not exist; leave out --append to make it")
    if not is_appended:
        _check_free(folder)
    return folder


def _check_free(folder: Path) -> None:
    """Check that `folder` is free for a new dataset.

    Raises:
        SettingsError: If it is not.
    """
    if (folder / manifest.NAME).exists():
        raise SettingsError(f"Dataset '{folder.name}' already exists")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{folder} holds other files; move them away, or choose another id")


async def make(index: Index, below: str, about: About, folder: Path) -> Made:
    """Make a dataset from the contents of an index.

    Args:
        index: An index whose vectors are all from one model.
        below: The folder of the files to include, as their keys begin; empty for all files.
        about: The dataset's description.
        folder: The dataset's folder, which must be free.

    Raises:
        SettingsError: If the folder is not free, or there is no text.
        StoreError: If the index cannot be read, or the dataset cannot be written.
    """
    await anyio.to_thread.run_sync(_check_free, folder)
    model, records = await contents(index, below)
    part = folder.with_name(f".{folder.name}.{os.getpid()}{PART}")
    await removed(part)  # left by a killed process that had the same number
    await anyio.Path(part).mkdir(parents=True)
    try:
        async with table.making(part / INDEX, model) as rows:
            filled = await fill(rows, index, records, below)
        if not rows.count:
            raise nothing_to_index()
        made = Made(
            folder, filled.documents, rows.count, filled.left_out, model.name, model.dimension
        )
        await anyio.to_thread.run_sync(_describe, part, about, made)
        await anyio.Path(part).rename(folder)
    finally:
        await removed(part)  # it exists only if something has failed
    return made


async def removed(part: Path) -> None:
    """Remove an unfinished dataset or table, if there is one, even if the task is cancelled."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(partial(shutil.rmtree, part, ignore_errors=True))


async def contents(index: Index, below: str) -> tuple[ModelIdentity, list[FileRecord]]:
    """Return the model of an index, and the indexed files to include.

    Raises:
        SettingsError: If there are none.
    """
    model, records = index.manifest.model, await _records(index, below)
    if not records:
        raise SettingsError("No supported files found to index")
    if model is None:
        raise nothing_to_index()
    return model, records


@dataclass(frozen=True, slots=True)
class Filled:
    """What was copied into a table."""

    documents: int
    """How many files have a text in the table."""
    left_out: int
    """How many chunks were left out because they have no vector."""


async def fill(rows: Rows, index: Index, records: Sequence[FileRecord], below: str) -> Filled:
    """Copy the chunks of files into a table; an empty chunk would answer nothing, so not those."""
    documents = left_out = 0
    for batch in batched(records, _FILES_AT_ONCE):
        held = await index.store.rows(record.key for record in batch)
        texts: list[Text] = []
        vectors: list[Vector] = []
        for record in batch:
            before = len(texts)
            for chunk, vector in held.get(record.key, []):
                if _is_blank(chunk.text):
                    continue
                if vector is None:
                    left_out += 1
                else:
                    texts.append(_text(record, chunk, below))
                    vectors.append(vector)
            documents += len(texts) > before
        await rows.add(texts, vectors)  # once for all files of the batch: each call writes 3 files
    return Filled(documents, left_out)


def _is_blank(text: str) -> bool:
    """Return whether a text has nothing to see: spaces, controls and zero-width marks only."""
    return not any(sign.isprintable() and sign != " " for sign in text)


def nothing_to_index() -> SettingsError:
    """Return the error that there is no text to make a dataset from."""
    return SettingsError("No text content available to index")


def path_of(record: FileRecord, below: str) -> str:
    """Return the path by which a dataset names the texts of a file."""
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
    """Return a title: the document's name, and the headings or definitions around the chunk."""
    inner = scope.removeprefix(name).removeprefix(_BETWEEN)
    return f"{name}{_BETWEEN}{inner}" if inner else name


def _describe(folder: Path, about: About, made: Made) -> None:
    now = moment()
    facts = Facts(made.model, made.dimension, made.chunks, "product", is_unit=True)
    table.write_facts(folder / INDEX, facts)
    (folder / INDEX / ".gitignore").unlink(missing_ok=True)  # a dataset may be kept in git
    fields: dict[str, Any] = {
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
    write(folder / manifest.NAME, {name: value for name, value in fields.items() if value != ""})


def known_of(about: About, made: Made, since: str) -> Mapping[str, Any]:
    """Return the content of the metadata file; the texts themselves are in the table."""
    stats = {
        "totalFiles": made.documents,
        "totalChunks": made.chunks,
        "embeddingDimensions": made.dimension,
        "indexedAt": moment(),
    }
    described = {"datasetId": about.id, "name": about.name, "description": about.description}
    return {**described, "model": made.model, "createdAt": since, "stats": stats}


def moment() -> str:
    """Return the current time in the format of manifests."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Write JSON into a file, in one step.

    Raises:
        SettingsError: If the file is a manifest, and would be too large to be read again.
    """
    data = (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
    if path.name == manifest.NAME and len(data) > LARGEST_MANIFEST_BYTES:
        raise SettingsError(
            f"its manifest would have {len(data)} bytes, more than the {LARGEST_MANIFEST_BYTES} "
            "allowed; shorten or remove some of its fields"
        )
    part = path.with_name(f".{path.name}.{os.getpid()}{PART}")
    try:
        part.write_bytes(data)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def facts_about(made: Made) -> Mapping[str, Any]:
    """Return JSON about the dataset that was made, for the command and the HTTP interface."""
    skipped = {"skipped": dict(made.skipped)} if made.skipped else {}
    return skipped | {
        "datasetId": made.folder.name,
        "documents": made.documents,
        "chunks": made.chunks,
        "model": made.model,
        "embeddingDimensions": made.dimension,
        "indexPath": str(made.folder / made.index),
        "metadataPath": str(made.folder / METADATA),
        "durationMs": round(1_000 * made.took),
    }

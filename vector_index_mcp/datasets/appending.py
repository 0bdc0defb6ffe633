"""Appends texts to a dataset that this program has made; texts with the same paths are replaced.

A service that uses the dataset meanwhile sees the old version or the new one. The new table is
written beside the old one; then the manifest, which names the table, is replaced in one step. Files
that both tables share are hard links, so they take up space once.
"""

import secrets
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from vector_index_mcp.datasets import (
    conversion,
    keeping,
    making,
    manifest,
    rows,
    snapshot,
    table,
)
from vector_index_mcp.datasets.making import About, Made
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.models import plain
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART, Facts
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.types import ModelIdentity
from vector_index_mcp.errors import SettingsError, VectorIndexError

_PARTS = 10**12


async def append(index: Index, below: str, about: About, folder: Path) -> Made:
    """Append the contents of an index to a dataset.

    Args:
        index: An index with vectors of the dataset's model.
        below: The folder of the files to include, as their keys begin; empty for all files.
        about: The new description; empty fields stay as they are.
        folder: The dataset's folder.

    Raises:
        SettingsError: If the dataset cannot be appended to, or there is no text.
        StoreError: If the index or the dataset's table cannot be read or written.
    """
    described, facts = await anyio.to_thread.run_sync(checked, folder)
    try:
        return await _appended(index, below, about, folder, described, facts)
    except (OSError, BadDatasetError, VectorIndexError):
        # Another process may have replaced the table, and that is the reason.
        await anyio.to_thread.run_sync(_check_same, folder, described)
        raise


async def _appended(
    index: Index, below: str, about: About, folder: Path, described: Manifest, facts: Facts
) -> Made:
    model, records = await making.contents(index, below)
    await _prove(described)
    await _check_model(described, facts, model)
    new = _unused(folder)
    # Not the number of the process: those in two containers may have the same.
    part = new.with_name(f".{new.name}.{secrets.randbelow(_PARTS)}{PART}")
    try:
        await anyio.to_thread.run_sync(snapshot.clone, described.index, part)
        paths = frozenset(making.path_of(record, below) for record in records)
        async with table.adding(part, paths) as (into, added):
            filled = await making.fill(added, index, records, below)
            keys = [*await into.store.holdings()]
        if not added.count:
            raise making.nothing_to_index()
        documents = len({rows.path_in(key) for key in keys})
        count = replace(facts, count=len(keys))
        made = Made(
            folder,
            documents,
            len(keys),
            filled.left_out,
            model.name,
            model.dimension,
            new.name,
        )
        publish = partial(_publish, part, new, described, about, made, count)
        await anyio.to_thread.run_sync(publish)
    finally:
        await making.removed(part)
    return made


def checked(folder: Path) -> tuple[Manifest, Facts]:
    """Return the dataset in a folder, and the facts about its table, if it can be appended to.

    Raises:
        SettingsError: If it cannot.
    """
    try:
        return _checked(folder)
    except SettingsError:  # another process may have replaced its table between two looks
        return _checked(folder)


def _checked(folder: Path) -> tuple[Manifest, Facts]:
    try:
        described = manifest.read(folder / manifest.NAME, folder, folder)
        own = folder.resolve()
        is_ours = table.is_ours(described.index) and described.index.parent == own
        is_ours = is_ours and described.metadata == own / making.METADATA
        if is_ours and (facts := table.facts_of(described.index)).is_unit:
            return described, facts
    except BadDatasetError as error:
        raise SettingsError(f"{folder} cannot be added to: {error}") from error
    raise SettingsError(
        f"{folder} was not made by this program; make a dataset of all of its texts instead"
    )


async def _prove(described: Manifest) -> None:
    """Check the dataset's table before it is opened here: somebody else may have made it.

    Raises:
        SettingsError: If it cannot be searched.
    """
    try:
        await conversion.prove(described.index)
    except BadDatasetError as error:
        raise SettingsError(f"dataset '{described.id}' cannot be added to: {error}") from error


async def _check_model(described: Manifest, facts: Facts, model: ModelIdentity) -> None:
    try:
        index = await table.opened(described.index)
    except BadDatasetError as error:
        raise SettingsError(f"dataset '{described.id}' cannot be added to: {error}") from error
    known = index.manifest.model
    index.close()
    if known is None:
        raise SettingsError(f"the table of dataset '{described.id}' has no model; make it again")
    if (plain(known.name), known.digest) != (plain(model.name), model.digest):
        raise SettingsError(
            f"dataset '{described.id}' was made with the model {facts.model}, or with other "
            f"weights of it; add texts with --model {facts.model}"
        )


def _unused(folder: Path) -> Path:
    numbers = (folder / f"{making.INDEX}-{number}" for number in range(2, 1_000_000))
    return next(place for place in numbers if not place.exists())


def _check_same(folder: Path, described: Manifest) -> dict[str, Any]:
    """Check that a dataset is as it was; return the fields of its manifest.

    Raises:
        SettingsError: If it has changed.
    """
    path = folder / manifest.NAME
    with suppress(BadDatasetError):
        if manifest.read(path, folder, folder) == described:
            return dict(manifest.said_in(path))
    raise SettingsError(f"dataset '{described.id}' has changed meanwhile; try again")


def _publish(
    part: Path, new: Path, described: Manifest, about: About, made: Made, facts: Facts
) -> None:
    """Make the manifest name the new table, and remove the old table."""
    path, now = made.folder / manifest.NAME, making.moment()
    fields = _check_same(made.folder, described)
    table.write_facts(part, facts)
    part.rename(new)
    changed = {
        "name": about.name,
        "description": about.description,
        "sourceRevision": about.revision,
        "license": about.license,
    }
    fields |= {name: value for name, value in changed.items() if value}
    fields |= {
        "index": new.name,
        "documentCount": made.documents,
        "chunkCount": made.chunks,
        "updatedAt": now,
    }
    whole = replace(about, id=described.id, name=fields["name"], description=fields["description"])
    try:
        making.write(path, fields)
    except SettingsError:
        shutil.rmtree(new)
        raise
    making.write(described.metadata, making.known_of(whole, made, fields.get("createdAt", now)))
    with suppress(OSError):  # another process may remove it, too
        keeping.remove(keeping.left_overs(made.folder, new), made.folder)

"""Fetches the files of a snapshot into a folder; files that are there already are kept.

A file gets its final name only when it is complete and has the digest that the snapshot names. So
an interrupted fetch can be continued, even with another snapshot.
"""

import contextlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store.foreign import TABLE
from vector_index_mcp.errors import StorageError, sentence
from vector_index_mcp.indexing.mirroring import limits
from vector_index_mcp.indexing.mirroring.layout import Blob, Snapshot
from vector_index_mcp.indexing.stamps import digest_of
from vector_index_mcp.objects import within
from vector_index_mcp.objects.store import Objects, at_once

RECORDS = "records.json"
"""The name of the file with the records, in the folder that a snapshot is fetched to."""
_PART = ".part"
T = TypeVar("T")


@dataclass(slots=True)
class Fetch:
    """The progress of a fetch."""

    total: int
    """The bytes of all files."""
    done: int = 0
    """The bytes of complete files."""
    fetched: int = 0
    """The bytes that came from the store."""
    parts: set[Path] = field(default_factory=set)
    """Files that are not complete yet."""

    @property
    def bytes_done(self) -> int:
        """The bytes that are there, including those of incomplete files."""
        return self.done + sum(map(_size_of, list(self.parts)))


def wanted_by(snapshot: Snapshot) -> dict[str, Blob]:
    """The files of a snapshot, by their paths in the folder that it is fetched to."""
    files = {f"{TABLE}/{path}": blob for path, blob in snapshot.files.items()}
    return {RECORDS: snapshot.records, **files}


async def fetch(objects: Objects, snapshot: Snapshot, folder: Path, progress: Fetch) -> None:
    """Make `folder` hold the files of `snapshot`, and nothing else.

    Raises:
        StorageError: If the store refuses or is silent, if its files differ from the snapshot's
            digests, or if there is too little space on the disk.
    """
    wanted = wanted_by(snapshot)
    missing = await _run(partial(_missing, folder, wanted))
    there = sum(blob.size for place, blob in wanted.items() if place not in missing)
    progress.done += there
    await _run(partial(_make_sure_of_space, folder, progress.total - there))
    # The largest first: the smaller ones are fetched at the same time.
    in_order = sorted(missing, key=lambda place: -wanted[place].size)
    await at_once(
        (partial(_get, objects, wanted[each], folder / each, progress) for each in in_order),
        limits.AT_ONCE,
    )


async def _get(objects: Objects, blob: Blob, path: Path, progress: Fetch) -> None:
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_PART}")
    progress.parts.add(part)
    try:
        digest = await objects.download(blob.name, part, blob.size)
        if digest is None:
            raise StorageError("a file that its description names is missing")
        if digest != blob.digest or _size_of(part) != blob.size:
            raise StorageError("a file has not the size and digest that its description names")
        await _run(partial(os.replace, part, path))
    finally:
        progress.parts.discard(part)
        with anyio.CancelScope(shield=True), contextlib.suppress(OSError):  # moved, or unwritable
            await anyio.Path(part).unlink()
    progress.done += blob.size
    progress.fetched += blob.size


def _missing(folder: Path, wanted: Mapping[str, Blob]) -> list[str]:
    """Make `folder` and remove unwanted files from it; returns the wanted files that it lacks."""
    if folder.is_symlink() or folder.is_file():  # the repository may contain such a link or file
        folder.unlink()
    folder.mkdir(exist_ok=True)
    known = {folder / place: blob for place, blob in wanted.items()}
    found = (Path(above, name) for above, _, names in within.walk(folder) for name in names)
    for path in found:
        blob = known.get(path)
        is_file = path.is_file() and not path.is_symlink()
        if is_file and blob and _size_of(path) == blob.size and digest_of(str(path)) == blob.digest:
            del known[path]
        else:
            path.unlink()
    for path in known:
        path.parent.mkdir(parents=True, exist_ok=True)
    return [path.relative_to(folder).as_posix() for path in known]


def _make_sure_of_space(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < size + limits.BYTES_KEPT_FREE:
        raise StorageError(f"there is too little space on the disk for {size / 1e6:,.0f} MB")


def _size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


async def _run(work: Callable[[], T]) -> T:
    """Run a blocking function in a thread.

    Raises:
        StorageError: If it raises OSError.
    """
    try:
        return await anyio.to_thread.run_sync(work)
    except OSError as error:
        raise StorageError(f"its files cannot be written here: {sentence(error)}") from error

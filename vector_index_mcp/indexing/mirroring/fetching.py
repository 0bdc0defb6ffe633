"""Fetches the files of a snapshot into a folder; what is there already is not fetched again.

A file has its name once it is whole and has the digest that the snapshot says. So a fetch that was
broken off goes on where it was, also with another snapshot.
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
from vector_index_mcp.objects.store import Objects, at_once

RECORDS = "records.json"
"""What is said of the files, in the folder that a snapshot is fetched to."""
_PART = ".part"
T = TypeVar("T")


@dataclass(slots=True)
class Fetch:
    """How far a fetch is."""

    total: int
    """Bytes."""
    done: int = 0
    """Bytes of whole files."""
    fetched: int = 0
    """Bytes that came from the store."""
    parts: set[Path] = field(default_factory=set)
    """Files that are not whole yet."""

    @property
    def bytes_done(self) -> int:
        """All bytes that are there."""
        return self.done + sum(map(_size_of, list(self.parts)))


def wanted_by(snapshot: Snapshot) -> dict[str, Blob]:
    """The files of a snapshot by their places in the folder that it is fetched to."""
    files = {f"{TABLE}/{path}": blob for path, blob in snapshot.files.items()}
    return {RECORDS: snapshot.records, **files}


async def fetch(objects: Objects, snapshot: Snapshot, folder: Path, progress: Fetch) -> None:
    """Make `folder` hold the files of `snapshot`, and nothing else.

    Raises:
        StorageError: If the store refuses, is silent, or has other files than the snapshot says;
            or if there is too little space for them.
    """
    wanted = wanted_by(snapshot)
    missing = await _run(partial(_missing, folder, wanted))
    there = sum(blob.size for place, blob in wanted.items() if place not in missing)
    progress.done += there
    await _run(partial(_make_sure_of_space, folder, progress.total - there))
    # The largest first: the others are done beside it.
    in_order = sorted(missing, key=lambda place: -wanted[place].size)
    await at_once(
        (partial(_get, objects, wanted[each], folder / each, progress) for each in in_order),
        limits.AT_ONCE,
    )


async def _get(objects: Objects, blob: Blob, path: Path, progress: Fetch) -> None:
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}{_PART}")
    progress.parts.add(part)
    try:
        if not await objects.download(blob.name, part, blob.size):
            raise StorageError("a file that its description names is not there")
        is_whole = _size_of(part) == blob.size
        if not is_whole or await _run(partial(digest_of, str(part))) != blob.digest:
            raise StorageError("a file is not what its description says")
        await _run(partial(os.replace, part, path))
    finally:
        progress.parts.discard(part)
        with anyio.CancelScope(shield=True), contextlib.suppress(OSError):  # gone already, or stuck
            await anyio.Path(part).unlink()
    progress.done += blob.size
    progress.fetched += blob.size


def _missing(folder: Path, wanted: Mapping[str, Blob]) -> list[str]:
    """What is not in `folder` yet, which is made; removes from it what is not wanted."""
    if folder.is_symlink() or folder.is_file():  # a project may have come with it
        folder.unlink()
    folder.mkdir(exist_ok=True)
    known = {folder / place: blob for place, blob in wanted.items()}
    for path in [*folder.rglob("*")]:
        blob = known.get(path)
        is_file = path.is_file() and not path.is_symlink()
        if is_file and blob and _size_of(path) == blob.size and digest_of(str(path)) == blob.digest:
            del known[path]
        elif path.is_symlink() or not path.is_dir():
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
    """Do what blocks in a thread."""
    try:
        return await anyio.to_thread.run_sync(work)
    except OSError as error:
        raise StorageError(f"it cannot be written here: {sentence(error)}") from error

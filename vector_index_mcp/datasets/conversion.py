"""Converts and checks foreign datasets in child processes, and ends those that take too long."""

import contextlib
import itertools
import logging
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread

from vector_index_mcp.datasets import snapshot, table
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.table import PART, put_in_place
from vector_index_mcp.objects import within
from vector_index_mcp.processes import errand

_log = logging.getLogger(__name__)

_CONVERTING, _PROVING = (f"vector_index_mcp.datasets.{name}" for name in ("converting", "proving"))
# A million texts, 3 GB, take minutes. Small files that take longer are made to block a reader.
_SECONDS, _BYTES_PER_SECOND = 60.0, 3_000_000
_MOST_FOLDERS, _MOST_NAMES = 1_000, 20_000  # `proving` refuses a table with more
_BLOCK_BYTES = 512  # of `st_blocks`, whatever the file system's own


async def prepare(manifest: Manifest, folder: Path) -> Path:
    """Return the folder with the table of the dataset that `manifest` describes.

    Args:
        manifest: The dataset's manifest.
        folder: The folder in the cache to make the table in, unless it is there already. If the
            dataset's index is a table of ours, its files are hard-linked there. If the file system
            cannot do that, the table is used where it lies.

    Raises:
        BadDatasetError: If the dataset cannot be read.
    """
    if await anyio.to_thread.run_sync(table.is_ours, folder):
        return folder
    if await anyio.to_thread.run_sync(table.is_ours, manifest.index):
        return await _kept(manifest.index, folder)
    with _reported():
        await anyio.Path(folder.parent).mkdir(parents=True, exist_ok=True)
        size = await anyio.to_thread.run_sync(_size_of, manifest)
    seconds = _SECONDS + size / _BYTES_PER_SECOND
    await _done(seconds, _CONVERTING, str(manifest.index), str(manifest.metadata), str(folder))
    return folder


def _size_of(manifest: Manifest) -> int:
    return sum(file.stat().st_size for file in (manifest.metadata, manifest.index))


async def prove(index: Path) -> None:
    """Check in a child process that a table in our format, perhaps foreign, can be searched.

    Raises:
        BadDatasetError: If it cannot be searched.
    """
    size = await anyio.to_thread.run_sync(_bytes_of, index)
    await _done(_SECONDS + size / _BYTES_PER_SECOND, _PROVING, str(index), str(size))


def _bytes_of(folder: Path) -> int:
    """Return how many bytes the files of a table take up; holes in them do not count."""
    size = 0
    for above, _, names in itertools.islice(within.walk(folder), _MOST_FOLDERS):
        for name in names[:_MOST_NAMES]:
            with contextlib.suppress(OSError):
                status = Path(above, name).lstat()
                size += min(status.st_size, _BLOCK_BYTES * getattr(status, "st_blocks", 1 << 60))
    return size


async def _kept(index: Path, folder: Path) -> Path:
    """Check a table in our format, and hard-link it to `folder`; return where it can be used.

    A linked table stays whole during a search, even if its owner replaces the original.
    """
    part = folder.with_name(f"{folder.name}.{os.getpid()}{PART}")
    with _reported():
        is_linked = await anyio.to_thread.run_sync(_linked, index, part)
    if not is_linked:
        await prove(index)
        return index
    try:
        await prove(part)
        with _reported():
            await anyio.to_thread.run_sync(put_in_place, part, folder)
    finally:
        await anyio.to_thread.run_sync(partial(shutil.rmtree, part, ignore_errors=True))
    return folder


def _linked(index: Path, part: Path) -> bool:
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    return snapshot.link(index, part)


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    """Turn system errors into a BadDatasetError."""
    try:
        yield
    except OSError as error:
        raise BadDatasetError(f"the dataset cannot be read or copied here ({error})") from error


async def _done(seconds: float, module: str, *arguments: str) -> None:
    try:
        with _reported():
            async with errand.begun(module, *arguments) as child:
                answer = await child.answer(seconds)
    except errand.ErrandError as error:
        raise BadDatasetError(str(error)) from None
    if cause := answer.get("cause"):
        _log.info("%s: %s", arguments[0], cause)  # for a log: a terminal shows the words alone
    if words := str(answer.get("error", "")):
        raise BadDatasetError(words)

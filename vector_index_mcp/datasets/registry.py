"""Which datasets are served, and why others are not; follows the folder while it changes."""

import contextlib
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from vector_index_mcp.datasets import manifest, table
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.finding import Found, find
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.rows import CHUNKER
from vector_index_mcp.datasets.table import PART
from vector_index_mcp.errors import VectorIndexError

_log = logging.getLogger(__name__)

Prepare = Callable[[Manifest, Path], Awaitable[Path]]
"""`conversion.prepare`."""
_LOOK_SECONDS = 0.5
_FIRST_SECONDS = 10.0  # that the first question waits for datasets that are being loaded
_HASH_CHARS = 24
_PART_SECONDS = 3_600
_AT_ONCE = 2  # conversions: each is a process


@dataclass(frozen=True, slots=True)
class LoadError:
    """Why a dataset is not served."""

    path: Path
    """Of its manifest."""
    error: str
    when: datetime

    @property
    def id(self) -> str:
        """What it is called: nobody can trust what its manifest says."""
        return self.path.parent.name


@dataclass(slots=True)
class _Entry:
    """What became of a manifest."""

    found: Found
    dataset: Dataset | None = None
    error: LoadError | None = None


class Registry:
    """The datasets below one folder. `follow` has it be as the folder is now."""

    def __init__(self, root: Path, project: Path, cache: Path, prepare: Prepare) -> None:
        """Make one; nothing is read yet.

        Args:
            root: The folder of all datasets, absolute; it need not be there.
            project: Where relative paths in manifests begin.
            cache: Where tables are kept of indexes that are not ours.
            prepare: Makes such a table.
        """
        self._root, self._project, self._cache = root, project, cache
        self._prepare = prepare
        self._entries: dict[Path, _Entry] = {}
        self._replaced: list[Dataset] = []
        """By others, or by nothing; searches that have begun may still read them."""
        self._before: list[Found] | None = None
        self._wanted: dict[Path, Found] = {}
        self._loading: dict[Path, Found] = {}
        self._limiter = anyio.Semaphore(_AT_ONCE)
        self._is_untidy = True
        self._known = anyio.Event()

    @property
    def is_loading(self) -> bool:
        """Whether datasets are being opened or converted."""
        return bool(self._loading)

    # -- questions -------------------------------------------------------------------------

    async def ready(self) -> dict[str, Dataset]:
        """The datasets that are served, by id; once the folder was looked at."""
        await self._known.wait()
        found = [entry.dataset for entry in self._entries.values() if entry.dataset is not None]
        return {dataset.manifest.id: dataset for dataset in found}

    async def errors(self) -> list[LoadError]:
        """Why others are not served; once the folder was looked at."""
        await self._known.wait()
        return [entry.error for entry in self._entries.values() if entry.error is not None]

    # -- following -------------------------------------------------------------------------

    async def follow_forever(self) -> None:
        """Have it be as the folder is, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._be_patient)
                while True:
                    await self._look(tasks)
                    await anyio.sleep(_LOOK_SECONDS)
        finally:
            for entry in self._entries.values():
                if entry.dataset is not None:
                    entry.dataset.release()
            self._entries.clear()

    async def follow(self) -> None:
        """Have it be as the folder is now; returns when all of it is loaded."""
        async with anyio.create_task_group() as tasks:
            await self._look(tasks)

    async def _be_patient(self) -> None:
        """Let questions be answered although a dataset takes long to be loaded."""
        await anyio.sleep(_FIRST_SECONDS)
        self._known.set()

    async def _look(self, tasks: TaskGroup) -> None:
        """Begin to load what has changed, and forget what is gone.

        What has just changed is taken over once it was the same in two looks: somebody may still
        be copying. Until then, and while it is converted, the old one is served.
        """
        found = await anyio.to_thread.run_sync(find, self._root)
        before = set(self._before) if self._before is not None else set(found)
        self._before = found
        for path in self._entries.keys() - {each.path for each in found}:
            self._replace(path, None)
        self._wanted = {each.path: each for each in found}
        for each in found:
            entry = self._entries.get(each.path)
            is_known = entry is not None and entry.found == each
            if each in before and not is_known and self._loading.get(each.path) != each:
                self._loading[each.path] = each
                tasks.start_soon(self._load, each)
        if not self._loading:
            self._known.set()
            if self._is_untidy:
                self._is_untidy = False
                await anyio.to_thread.run_sync(self._tidy)

    async def _load(self, found: Found) -> None:
        path = found.path
        try:
            async with self._limiter:
                if self._loading.get(path) != found:  # it has changed again meanwhile
                    return
                entry = await self._loaded(found)
            if self._wanted.get(path) == found:
                self._replace(path, self._checked(path, entry))
            elif entry.dataset is not None:
                entry.dataset.release()
        finally:
            if self._loading.get(path) == found:
                del self._loading[path]
            if not self._loading:
                self._known.set()

    def _replace(self, path: Path, new: _Entry | None) -> None:
        self._is_untidy = True
        old = self._entries.pop(path, None)
        if new is not None:
            self._entries[path] = new
        if old is not None and old.dataset is not None:
            old.dataset.release()
            self._replaced.append(old.dataset)

    def _checked(self, path: Path, entry: _Entry) -> _Entry:
        """The entry, unless another one has the id of its dataset."""
        dataset = entry.dataset
        if dataset is None:
            return entry
        for other, known in self._entries.items():
            taken = known.dataset is not None and known.dataset.manifest.id
            if other != path and taken == dataset.manifest.id:
                dataset.release()
                words = f"Dataset id '{taken}' is that of {other}; choose another one"
                return _Entry(entry.found, error=_error(entry.found, words))
        return entry

    async def _loaded(self, found: Found) -> _Entry:
        try:
            described = await anyio.to_thread.run_sync(
                manifest.read, found.path, self._root, self._project
            )
            made = self._cache / _name_of(found, described)
            try:
                dataset = await Dataset.open(described, await self._prepare(described, made))
            except (BadDatasetError, VectorIndexError):
                if not table.is_ours(made):
                    raise
                # What was made of it once is of no use any more.
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                dataset = await Dataset.open(described, await self._prepare(described, made))
        except (BadDatasetError, VectorIndexError) as error:
            _log.warning("%s: %s", found.path, error)
            return _Entry(found, error=_error(found, str(error)))
        return _Entry(found, dataset=dataset)

    def _tidy(self) -> None:
        """Remove the tables that nobody needs any more."""
        self._replaced = [dataset for dataset in self._replaced if dataset.is_open]
        self._is_untidy = bool(self._replaced)
        served = [entry.dataset for entry in self._entries.values() if entry.dataset is not None]
        needed = {dataset.folder.name for dataset in (*served, *self._replaced)}
        with contextlib.suppress(OSError), os.scandir(self._cache) as entries:
            for entry in entries:
                # Another process may be making one right now.
                is_new = time.time() - entry.stat().st_mtime < _PART_SECONDS
                if entry.name not in needed and not (entry.name.endswith(PART) and is_new):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _error(found: Found, words: str) -> LoadError:
    return LoadError(found.path, words, datetime.now(UTC))


def _name_of(found: Found, described: Manifest) -> str:
    """Names the table of a dataset as it is now."""
    facts = (CHUNKER, described.index, described.metadata, found.stamp)
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]

"""Loads the datasets of a folder, and follows the folder's changes.

It knows which datasets are served, and why others are not.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Collection, Set
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from vector_index_mcp.datasets import finding, keeping, manifest, table
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.finding import Stamp
from vector_index_mcp.datasets.limits import MOST_DATASETS, MOST_ENTRIES
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError, LoadError
from vector_index_mcp.datasets.rows import CHUNKER
from vector_index_mcp.datasets.table import PART
from vector_index_mcp.errors import VectorIndexError

_log = logging.getLogger(__name__)

Prepare = Callable[[Manifest, Path], Awaitable[Path]]
"""`conversion.prepare`."""
_LOOK_SECONDS = 0.5  # between two scans of the folder
_LOOKS_TO_SETTLE = 3  # one scan may be under way, and a change must be the same in two
_LOOK_SHARE = 20  # the pause between scans is at least this many times as long as a scan
_FIRST_SECONDS = 10.0  # how long the first query waits for datasets that are being loaded
_COMING_SECONDS = 30.0  # how long a query waits for a dataset that it names; clients wait 60 s
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 5.0, 600.0
_UNNEEDED_SECONDS = 600.0  # how long an unused table is kept: its dataset may come back
_HASH_CHARS = 24
_AT_ONCE = 2  # conversions at the same time: each is a process
_PART_SECONDS = 3_600  # an unfinished table of this age was left by a killed process


@dataclass(frozen=True, slots=True)
class _Found:
    """A manifest that a scan has found, with the state of its dataset on disk."""

    path: Path
    stamp: Stamp
    """The stamp of the manifest and of the files that it names."""


@dataclass(slots=True)
class _Entry:
    """The result of loading a manifest's dataset: the dataset or an error."""

    found: _Found
    dataset: Dataset | None = None
    error: LoadError | None = None
    tries: int = 0
    """How often in a row loading has failed before."""
    retry: float = 0.0
    """When to load a failed dataset again, in the time of `time.monotonic`."""
    is_rival: bool = False
    """Whether it failed because another dataset has its id."""


class Registry:
    """The datasets below one folder. `follow` and `follow_forever` load its current datasets."""

    def __init__(self, root: Path, project: Path, cache: Path, prepare: Prepare) -> None:
        """Set up the registry; nothing is read yet.

        Args:
            root: The folder of all datasets, absolute; it need not exist.
            project: The folder that relative paths in manifests are relative to.
            cache: The folder for the tables that are made from foreign indexes.
            prepare: Makes such a table.
        """
        self.root, self._project, self._cache = root, project, cache
        self._prepare = prepare
        self._entries: dict[Path, _Entry] = {}
        self._described: dict[Path, tuple[Stamp, Manifest | None]] = {}
        """The parsed manifests by path, each with what was looked at before; None for a bad one."""
        self._replaced: list[Dataset] = []
        """Datasets that are no longer served, but may still be read by searches under way."""
        self.has_folder = True
        """Whether the last scan found the folder of all datasets."""
        self._before: set[_Found] | None = None
        """What the last scan found; None before the first."""
        self._wanted: dict[Path, _Found] = {}
        self._loading: dict[Path, _Found] = {}
        self._limiter = anyio.Semaphore(_AT_ONCE)
        self._known = anyio.Event()
        """Set once the datasets are loaded, or the first query has waited long enough."""
        self._unneeded: dict[str, float] = {}
        """Since when each table in the cache is unused, by the table's name."""
        self._pause = _LOOK_SECONDS
        self.revision = 0
        """A number that grows with each change of the served datasets."""
        self._hurried, self._looked = anyio.Event(), anyio.Event()

    @property
    def is_loading(self) -> bool:
        """Whether datasets are being opened or converted."""
        return bool(self._loading)

    @property
    def awaited(self) -> int:
        """How many datasets are being opened or converted for the first time."""
        return len(self._loading.keys() - self._entries.keys())

    # -- queries ---------------------------------------------------------------------------

    async def ready(self) -> dict[str, Dataset]:
        """Return the datasets that are served, by id; waits for the first scan of the folder."""
        return {dataset.manifest.id: dataset for dataset in (await self.served()).values()}

    async def ready_with(self, ids: Collection[str]) -> dict[str, Dataset]:
        """Like `ready`; waits, for 30 s at most, for those of `ids` that are being loaded."""
        await self._known.wait()
        with anyio.move_on_after(_COMING_SECONDS):
            while not self._coming.isdisjoint(ids):
                await self._looked.wait()
        return await self.ready()

    @property
    def _coming(self) -> set[str]:
        """The ids of datasets that are being loaded for the first time."""
        paths = self._described.keys() & self._loading.keys() - self._entries.keys()
        return {described.id for path in paths if (described := self._described[path][1])}

    async def served(self) -> dict[Path, Dataset]:
        """Return the datasets that are served, by the path of the manifest; waits as `ready`."""
        await self._known.wait()
        entries = self._entries.items()
        return {path: each.dataset for path, each in entries if each.dataset is not None}

    async def errors(self) -> list[LoadError]:
        """Return why other datasets are not served; waits for the first scan of the folder."""
        await self._known.wait()
        return [entry.error for entry in self._entries.values() if entry.error is not None]

    async def opened(self, described: Manifest) -> Dataset:
        """Open a dataset that may lie anywhere. The caller has to release it.

        Raises:
            BadDatasetError: If the dataset cannot be served.
            StoreError: If its table cannot be read.
        """
        stamp = await anyio.to_thread.run_sync(
            finding.stamp_of, [described.index, described.metadata]
        )
        return await self._opened(described, self._cache / _name_of(stamp))

    async def _opened(self, described: Manifest, made: Path) -> Dataset:
        return await Dataset.open(described, await self._prepare(described, made))

    def delete(self, id_: str) -> Path | None:
        """Delete a dataset from disk; see `keeping.delete`.

        Raises:
            OSError: If the dataset cannot be deleted.
            SettingsError: If several folders have a dataset with this id.
            UnknownError: If there is no such dataset.
        """
        path = keeping.manifest_of(self.root, id_)
        return keeping.delete(path, self.root, self._project)

    async def distrust(self, dataset: Dataset) -> None:
        """Stop serving a dataset whose table is damaged or gone, so that it is loaded again."""
        served = (path for path, entry in self._entries.items() if entry.dataset is dataset)
        if (path := next(served, None)) is None:
            return
        self._replace(path, None)
        if dataset.folder.is_relative_to(self._cache):
            gone = table.out_of_the_way(dataset.folder)
            await anyio.to_thread.run_sync(partial(shutil.rmtree, gone, ignore_errors=True))

    # -- following -------------------------------------------------------------------------

    async def follow_forever(self) -> None:
        """Scan the folder again and again, and load what has changed, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._be_patient)
                while True:
                    await self._look(tasks)
                    self._looked.set()
                    self._looked = anyio.Event()
                    with anyio.move_on_after(self._pause):
                        await self._hurried.wait()
                    self._hurried = anyio.Event()
        finally:
            for entry in self._entries.values():
                if entry.dataset is not None:
                    entry.dataset.release()
            self._entries.clear()

    async def hurry(self) -> None:
        """Scan at once, after a change of our own; wait until it is loaded, for 10 s at most."""
        with anyio.move_on_after(_FIRST_SECONDS):
            for _ in range(_LOOKS_TO_SETTLE):
                looked = self._looked
                self._hurried.set()
                await looked.wait()
            while self._loading:
                await self._looked.wait()

    async def follow(self) -> None:
        """Scan the folder once, and wait until everything in it is loaded."""
        async with anyio.create_task_group() as tasks:
            await self._look(tasks)

    async def _be_patient(self) -> None:
        """After a while, let queries be answered although a dataset is still being loaded."""
        await anyio.sleep(_FIRST_SECONDS)
        self._known.set()

    async def _look(self, tasks: TaskGroup) -> None:
        """Scan the folder: start to load what has changed, and drop what is gone.

        A changed dataset is loaded once it is the same in two scans, because somebody may still be
        copying it. Until then, and while it is being converted, the old one is served.
        """
        began = time.monotonic()
        found = await anyio.to_thread.run_sync(self._seen)
        self._pause = max(_LOOK_SECONDS, _LOOK_SHARE * (time.monotonic() - began))
        before = self._before if self._before is not None else set(found)
        self._before = set(found)
        self._wanted = {each.path: each for each in found}
        for path in self._entries.keys() - self._wanted.keys():
            self._replace(path, None)
        for each in found:
            is_due = self._is_due(each) and self._loading.get(each.path) != each
            if each in before and is_due:
                self._loading[each.path] = each
                tasks.start_soon(self._load, each)
        if not self._loading:
            self._known.set()
            self._replaced = [dataset for dataset in self._replaced if dataset.is_open]
            served = [e.dataset for e in self._entries.values() if e.dataset is not None]
            needed = {dataset.folder.name for dataset in (*served, *self._replaced)}
            await anyio.to_thread.run_sync(self._tidy, needed)

    def _is_due(self, found: _Found) -> bool:
        entry = self._entries.get(found.path)
        if entry is None or entry.found != found:
            return True
        return entry.error is not None and entry.retry <= time.monotonic()

    def _seen(self) -> list[_Found]:
        """Return all manifests, each with the stamp of its files."""
        self.has_folder = os.path.isdir(self.root)  # `Path.is_dir` may raise
        walk = finding.find(self.root)
        found = [_Found(path, self._stamp_of(path)) for path in walk.paths]
        self._described = {each.path: self._described[each.path] for each in found}
        if not walk.is_whole:
            # This entry is no real manifest. Its empty stamp makes `_loaded` report an error.
            found.append(_Found(self.root / "…" / manifest.NAME, ()))
        return found

    def _stamp_of(self, path: Path) -> Stamp:
        own = finding.stamp_of([path])
        before, described = self._described.get(path, ((), None))
        # A manifest is parsed twice: only then is it known that no place changed meanwhile.
        looked = own + finding.leads_of(described.places if described is not None else ())
        if described is None or before != looked:
            described = None
            with contextlib.suppress(BadDatasetError):  # `_loaded` reports the error
                described = manifest.read(path, self.root, self._project)
            self._described[path] = looked, described
        if described is None:
            return own
        return own + finding.stamp_of([described.index, described.metadata])

    async def _load(self, found: _Found) -> None:
        path = found.path
        try:
            async with self._limiter:
                if self._loading.get(path) != found:  # the files have changed again meanwhile
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
        self.revision += 1
        old = self._entries.pop(path, None)
        if new is not None:
            if old is not None and new.error is not None and old.error is not None:
                new.tries = old.tries + 1
            pause = min(_FIRST_RETRY_SECONDS * 2**new.tries, _LAST_RETRY_SECONDS)
            new.retry = time.monotonic() + pause
            self._entries[path] = new
        if old is not None and old.dataset is not None:
            old.dataset.release()
            self._replaced.append(old.dataset)
            for path_of, entry in self._entries.items():
                if entry.is_rival and path_of != path:  # its id may be free now
                    entry.retry = 0.0

    def _checked(self, path: Path, entry: _Entry) -> _Entry:
        """Return the entry, or an error entry if another dataset has the same id.

        A dataset that is served keeps the id. At the start, the first one by path gets it.
        """
        if entry.dataset is None:
            return entry
        for other, known in self._entries.items():
            if other == path or known.dataset is None:
                continue
            if known.dataset.manifest.id == entry.dataset.manifest.id:
                if not self._known.is_set() and path < other:
                    self._replace(other, _rival(known, path))
                    return entry
                entry.dataset.release()
                return _rival(entry, other)
        return entry

    async def _loaded(self, found: _Found) -> _Entry:
        try:
            if not found.stamp:
                raise BadDatasetError(
                    f"there are more than {MOST_ENTRIES:,} files or more than {MOST_DATASETS:,} "
                    f"datasets below {self.root}; the others are not searched for datasets"
                )
            described = await anyio.to_thread.run_sync(
                manifest.read, found.path, self.root, self._project
            )
            made = self._cache / _name_of(found.stamp)
            try:
                dataset = await self._opened(described, made)
            except (BadDatasetError, VectorIndexError):
                if not await anyio.to_thread.run_sync(table.is_ours, made):
                    raise
                # The table in the cache may be damaged: make it again.
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                dataset = await self._opened(described, made)
            if await anyio.to_thread.run_sync(self._stamp_of, found.path) != found.stamp:
                dataset.release()  # its table may mix old and new files
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                raise BadDatasetError("it changed while it was read; it will be read again")
        except (BadDatasetError, VectorIndexError) as error:
            _log.warning("%s: %s", found.path, error)
            return _Entry(found, error=_error(found, str(error)))
        return _Entry(found, dataset=dataset)

    def _tidy(self, needed: Set[str]) -> None:
        """Remove tables from the cache that have been unused for a while; runs in a thread.

        Args:
            needed: The names of those that are in use.
        """
        now = time.monotonic()
        unneeded: dict[str, float] = {}
        with contextlib.suppress(OSError), os.scandir(self._cache) as entries:
            for entry in entries:
                # Another process may be writing this table right now.
                is_new = time.time() - entry.stat().st_mtime < _PART_SECONDS
                if entry.name in needed or (entry.name.endswith(PART) and is_new):
                    continue
                since = unneeded[entry.name] = self._unneeded.get(entry.name, now)
                if now - since >= _UNNEEDED_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
        self._unneeded = unneeded


def _rival(entry: _Entry, other: Path) -> _Entry:
    """Return the error entry for a dataset whose id another dataset has."""
    assert entry.dataset is not None
    words = (
        f"Dataset id '{entry.dataset.manifest.id}' is also that of {other}; give one of them "
        "another id"
    )
    return _Entry(entry.found, error=_error(entry.found, words), is_rival=True)


def _error(found: _Found, words: str) -> LoadError:
    return LoadError(found.path, words, datetime.now(UTC))


def _name_of(stamp: Stamp) -> str:
    """Return the name for the table of a dataset with this stamp."""
    facts = (CHUNKER, stamp)
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]

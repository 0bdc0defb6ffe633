"""Loads the datasets of a folder, and follows the folder's changes.

It knows which datasets are served, and why others are not.
"""

import logging
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

from vector_index_mcp.datasets import finding, keeping, table
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.limits import MOST_DATASETS, MOST_ENTRIES
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError, LoadError
from vector_index_mcp.datasets.scanning import Found, Scanner
from vector_index_mcp.errors import VectorIndexError, sentence

_log = logging.getLogger(__name__)

Prepare = Callable[[Manifest, Path], Awaitable[Path]]
"""`conversion.prepare`."""
_LOOK_SECONDS = 0.5  # between two scans of the folder
_LOOKS_TO_SETTLE = 3  # one scan may be under way, and a change must be the same in two
_LOOK_SHARE = 20  # the pause between scans is at least this many times as long as a scan
_LONGEST_PAUSE_SECONDS = 60.0  # the same, while errors of this program keep it from looking
_FIRST_SECONDS = 10.0  # how long the first query waits for datasets that are being loaded
_COMING_SECONDS = 30.0  # how long a query waits for a dataset that it names; clients wait 60 s
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 5.0, 600.0
_AT_ONCE = 2  # conversions at the same time: each is a process


@dataclass(slots=True)
class _Entry:
    """The result of loading a manifest's dataset: the dataset or an error."""

    found: Found
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
        self.root, self._cache = root, cache
        self._scanner, self._prepare = Scanner(root, project), prepare
        self._entries: dict[Path, _Entry] = {}
        self._replaced: list[Dataset] = []
        """Datasets that are no longer served, but may still be read by searches under way."""
        self._before: set[Found] | None = None
        """What the last scan found; None before the first."""
        self._wanted: dict[Path, Found] = {}
        self._loading: dict[Path, Found] = {}
        self._limiter = anyio.Semaphore(_AT_ONCE)
        self._known = anyio.Event()
        """Set once the datasets are loaded, or the first query has waited long enough."""
        self._pause = _LOOK_SECONDS
        self.revision = 0
        """A number that grows with each change of the served datasets."""
        self._hurried, self._looked = anyio.Event(), anyio.Event()

    @property
    def has_folder(self) -> bool:
        """Whether the last scan found the folder of all datasets."""
        return self._scanner.has_folder

    @property
    def is_loading(self) -> bool:
        """Whether datasets are being opened or converted."""
        return bool(self._loading)

    @property
    def awaited(self) -> int:
        """How many datasets are being opened or converted for the first time."""
        return len(self._awaited)

    @property
    def _awaited(self) -> Set[Path]:
        return self._loading.keys() - self._entries.keys()

    # -- queries ---------------------------------------------------------------------------

    async def ready(self) -> dict[str, Dataset]:
        """Return the datasets that are served, by id; waits for the first scan of the folder."""
        return {dataset.manifest.id: dataset for dataset in (await self.served()).values()}

    async def ready_with(self, ids: Collection[str]) -> dict[str, Dataset]:
        """Like `ready`; waits, for 30 s at most, for those of `ids` that are being loaded."""
        await self._known.wait()
        with anyio.move_on_after(_COMING_SECONDS):
            while not self._scanner.ids_of(self._awaited).isdisjoint(ids):
                await self._looked.wait()
        return await self.ready()

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
        dataset = await self._opened(described, self._cache / table.name_of(stamp))
        await anyio.to_thread.run_sync(self._tidy, {dataset.folder.name})
        return dataset

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
        return keeping.delete(path, self.root, self._scanner.project)

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
                    await self._look_surely(tasks)
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
        await self._tidy_up()

    async def _be_patient(self) -> None:
        """After a while, let queries be answered although a dataset is still being loaded."""
        await anyio.sleep(_FIRST_SECONDS)
        self._known.set()

    async def _look_surely(self, tasks: TaskGroup) -> None:
        try:
            await self._look(tasks)
            if not self._loading:
                await self._tidy_up()
        except Exception:  # noqa: BLE001 - no dataset may end the service
            self._pause = min(2 * self._pause, _LONGEST_PAUSE_SECONDS)
            _log.exception("the datasets cannot be followed; tried again in %.0f s", self._pause)

    async def _look(self, tasks: TaskGroup) -> None:
        """Scan the folder: start to load what has changed, and drop what is gone.

        A changed dataset is loaded once it is the same in two scans, because somebody may still be
        copying it. Until then, and while it is being converted, the old one is served.
        """
        began = time.monotonic()
        found = await anyio.to_thread.run_sync(self._scanner.seen)
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

    def _is_due(self, found: Found) -> bool:
        entry = self._entries.get(found.path)
        if entry is None or entry.found != found:
            return True
        return entry.error is not None and entry.retry <= time.monotonic()

    async def _load(self, found: Found) -> None:
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

    async def _loaded(self, found: Found) -> _Entry:
        try:
            if not found.stamp:
                raise BadDatasetError(
                    f"there are more than {MOST_ENTRIES:,} files or more than {MOST_DATASETS:,} "
                    f"datasets below {self.root}; the others are not searched for datasets"
                )
            described = await anyio.to_thread.run_sync(self._scanner.read, found.path)
            made = self._cache / table.name_of(found.stamp)
            try:
                dataset = await self._opened(described, made)
            except (BadDatasetError, VectorIndexError):
                if not await anyio.to_thread.run_sync(table.is_ours, made):
                    raise
                # The table in the cache may be damaged: make it again.
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                dataset = await self._opened(described, made)
            if await anyio.to_thread.run_sync(self._scanner.stamp_of, found.path) != found.stamp:
                dataset.release()  # its table may mix old and new files
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                raise BadDatasetError("it changed while it was read; it will be read again")
        except (BadDatasetError, VectorIndexError) as error:
            _log.warning("%s: %s", found.path, error)
            return _Entry(found, error=_error(found, str(error)))
        except Exception as error:  # noqa: BLE001 - no dataset may end the service
            _log.exception("%s", found.path)
            return _Entry(found, error=_error(found, sentence(error)))
        return _Entry(found, dataset=dataset)

    async def _tidy_up(self) -> None:
        self._replaced = [dataset for dataset in self._replaced if dataset.is_open]
        served = [e.dataset for e in self._entries.values() if e.dataset is not None]
        in_use = {dataset.folder.name for dataset in (*served, *self._replaced)}
        await anyio.to_thread.run_sync(self._tidy, in_use)

    def _tidy(self, in_use: Set[str]) -> None:
        """Remove the tables that have long been unused from the cache; runs in a thread.

        Args:
            in_use: The names of those that are open.
        """

        def needed() -> tuple[Set[str], bool]:
            """Return the names of those in use, and of those that a manifest would lead to."""
            found = self._wanted.values() or self._scanner.seen()
            # `opened` knows no manifest, whose stamp comes first.
            stamps = {stamp for each in found for stamp in (each.stamp, each.stamp[1:])}
            return in_use | {*map(table.name_of, stamps)}, self._scanner.is_whole

        table.remove_unused(self._cache, needed)


def _rival(entry: _Entry, other: Path) -> _Entry:
    """Return the error entry for a dataset whose id another dataset has."""
    assert entry.dataset is not None
    words = (
        f"Dataset id '{entry.dataset.manifest.id}' is also that of {other}; give one of them "
        "another id"
    )
    return _Entry(entry.found, error=_error(entry.found, words), is_rival=True)


def _error(found: Found, words: str) -> LoadError:
    return LoadError(found.path, words, datetime.now(UTC))

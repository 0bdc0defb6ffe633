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

from vector_index_mcp.datasets import finding, keeping, manifest, table
from vector_index_mcp.datasets.dataset import Dataset
from vector_index_mcp.datasets.finding import Stamp
from vector_index_mcp.datasets.limits import MOST_ENTRIES
from vector_index_mcp.datasets.manifest import Manifest
from vector_index_mcp.datasets.refusal import BadDatasetError
from vector_index_mcp.datasets.rows import CHUNKER
from vector_index_mcp.datasets.table import PART
from vector_index_mcp.errors import VectorIndexError

_log = logging.getLogger(__name__)

Prepare = Callable[[Manifest, Path], Awaitable[Path]]
"""`conversion.prepare`."""
_LOOK_SECONDS = 0.5
_LOOKS_TO_SETTLE = 3  # one may be under way, and what changes is the same in two
_LOOK_SHARE = 20  # of the time between two looks, that one may take
_FIRST_SECONDS = 10.0  # that the first question waits for datasets that are being loaded
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 5.0, 600.0
_UNNEEDED_SECONDS = 600.0  # that a table is kept which nobody needs: its dataset may come back
_HASH_CHARS = 24
_AT_ONCE = 2  # conversions: each is a process
_PART_SECONDS = 3_600


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


@dataclass(frozen=True, slots=True)
class _Found:
    """A manifest, and how its dataset is on disk."""

    path: Path
    stamp: Stamp
    """Of the manifest, and of what it names."""


@dataclass(slots=True)
class _Entry:
    """What became of a manifest."""

    found: _Found
    dataset: Dataset | None = None
    error: LoadError | None = None
    tries: int = 0
    retry: float = 0.0
    """When a dataset that failed is tried again."""
    is_rival: bool = False
    """Whether it failed because another dataset has its id."""


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
        self.root, self._project, self._cache = root, project, cache
        self._prepare = prepare
        self._entries: dict[Path, _Entry] = {}
        self._described: dict[Path, tuple[Stamp, Manifest | None]] = {}
        """By path, what each manifest said when its file was like that; None if it was bad."""
        self._replaced: list[Dataset] = []
        """By others, or by nothing; searches that have begun may still read them."""
        self._before: set[_Found] | None = None
        self._wanted: dict[Path, _Found] = {}
        self._loading: dict[Path, _Found] = {}
        self._limiter = anyio.Semaphore(_AT_ONCE)
        self._known = anyio.Event()
        self._unneeded: dict[str, float] = {}
        """By name, since when nobody needs a table."""
        self._pause = _LOOK_SECONDS
        self.revision = 0
        """Grows with every change of what is served."""
        self._hurried, self._looked = anyio.Event(), anyio.Event()

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

    async def opened(self, described: Manifest) -> Dataset:
        """A dataset that lies anywhere, opened for whoever asks, who releases it.

        Raises:
            BadDatasetError: If it cannot be served.
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
            OSError: If it cannot be deleted.
            UnknownError: If there is none.
        """
        path = keeping.manifest_of(self.root, id_)
        return keeping.delete(path, self.root, self._project)

    def distrust(self, dataset: Dataset) -> None:
        """Have a dataset loaded anew whose table turned out to be damaged or gone."""
        for path, entry in self._entries.items():
            if entry.dataset is dataset:
                if dataset.folder.is_relative_to(self._cache):
                    shutil.rmtree(dataset.folder, ignore_errors=True)
                self._replace(path, None)
                return

    # -- following -------------------------------------------------------------------------

    async def follow_forever(self) -> None:
        """Have it be as the folder is, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._be_patient)
                while True:
                    await self._look(tasks)
                    self._looked.set()
                    self._looked = anyio.Event()
                    with anyio.move_on_after(self._pause):
                        await self._hurried.wait()
        finally:
            for entry in self._entries.values():
                if entry.dataset is not None:
                    entry.dataset.release()
            self._entries.clear()

    async def hurry(self) -> None:
        """Look at once, after a change of our own; returns when it is taken over, or soon."""
        with anyio.move_on_after(_FIRST_SECONDS):
            for _ in range(_LOOKS_TO_SETTLE):
                looked = self._looked
                self._hurried.set()
                await looked.wait()
                self._hurried = anyio.Event()
            while self._loading:
                await self._looked.wait()

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
            await anyio.to_thread.run_sync(self._tidy)

    def _is_due(self, found: _Found) -> bool:
        entry = self._entries.get(found.path)
        if entry is None or entry.found != found:
            return True
        return entry.error is not None and entry.retry <= time.monotonic()

    def _seen(self) -> list[_Found]:
        """All manifests with what they name, as they are on disk."""
        walk = finding.find(self.root)
        found = [_Found(path, self._stamp_of(path)) for path in walk.paths]
        self._described = {each.path: self._described[each.path] for each in found}
        if not walk.is_whole:
            # It stands for what nobody knows; being no manifest, it is an error.
            found.append(_Found(self.root / "…" / manifest.NAME, ()))
        return found

    def _stamp_of(self, path: Path) -> Stamp:
        own = finding.stamp_of([path])
        known = self._described.get(path)
        if known is None or known[0] != own or known[1] is None:
            described = None
            with contextlib.suppress(BadDatasetError):  # it is told when it is loaded
                described = manifest.read(path, self.root, self._project)
            known = self._described[path] = own, described
        if known[1] is None:
            return own
        return own + finding.stamp_of([known[1].index, known[1].metadata])

    async def _load(self, found: _Found) -> None:
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
                if entry.is_rival and path_of != path:  # the id that it wants may be free now
                    entry.retry = 0.0

    def _checked(self, path: Path, entry: _Entry) -> _Entry:
        """The entry, unless another one has the id of its dataset.

        Who is served stays; of those that are there at the start, the first by its path is served.
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
                    f"there are more than {MOST_ENTRIES:,} files below {self.root}; what lies "
                    "deeper is not looked at"
                )
            described = await anyio.to_thread.run_sync(
                manifest.read, found.path, self.root, self._project
            )
            made = self._cache / _name_of(found.stamp)
            try:
                dataset = await self._opened(described, made)
            except (BadDatasetError, VectorIndexError):
                if not table.is_ours(made):
                    raise
                # What was made of it once is of no use any more.
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                dataset = await self._opened(described, made)
            if await anyio.to_thread.run_sync(self._stamp_of, found.path) != found.stamp:
                dataset.release()  # it may be half of the old one and half of the new
                await anyio.to_thread.run_sync(partial(shutil.rmtree, made, ignore_errors=True))
                raise BadDatasetError("it was changed while it was read; it is read again")
        except (BadDatasetError, VectorIndexError) as error:
            _log.warning("%s: %s", found.path, error)
            return _Entry(found, error=_error(found, str(error)))
        return _Entry(found, dataset=dataset)

    def _tidy(self) -> None:
        """Remove the tables that nobody has needed for a while."""
        self._replaced = [dataset for dataset in self._replaced if dataset.is_open]
        served = [entry.dataset for entry in self._entries.values() if entry.dataset is not None]
        needed = {dataset.folder.name for dataset in (*served, *self._replaced)}
        now = time.monotonic()
        unneeded: dict[str, float] = {}
        with contextlib.suppress(OSError), os.scandir(self._cache) as entries:
            for entry in entries:
                # Another process may be making one right now.
                is_new = time.time() - entry.stat().st_mtime < _PART_SECONDS
                if entry.name in needed or (entry.name.endswith(PART) and is_new):
                    continue
                since = unneeded[entry.name] = self._unneeded.get(entry.name, now)
                if now - since >= _UNNEEDED_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)
        self._unneeded = unneeded


def _rival(entry: _Entry, other: Path) -> _Entry:
    """What becomes of a dataset whose id another one has."""
    assert entry.dataset is not None
    words = (
        f"Dataset id '{entry.dataset.manifest.id}' is that of {other}; give one of them another id"
    )
    return _Entry(entry.found, error=_error(entry.found, words), is_rival=True)


def _error(found: _Found, words: str) -> LoadError:
    return LoadError(found.path, words, datetime.now(UTC))


def _name_of(stamp: Stamp) -> str:
    """Names the table of a dataset as it is now."""
    facts = (CHUNKER, stamp)
    return hashlib.sha256(repr(facts).encode("utf-8", "replace")).hexdigest()[:_HASH_CHARS]

"""Makes datasets: it brings an index up to date, and turns it into a dataset.

The index is a new one of a folder of texts, which is removed afterwards, or one that is kept.
"""

import contextlib
import itertools
import logging
import os
import shutil
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread

from vector_index_mcp.datasets import appending, making
from vector_index_mcp.datasets.limits import ENDINGS, FEWEST_WORDS, MOST_OVERLAP, MOST_WORDS
from vector_index_mcp.datasets.making import About, Made
from vector_index_mcp.datasets.table import PART
from vector_index_mcp.engine.models.model import is_hub_name
from vector_index_mcp.errors import (
    BusyError,
    QueryError,
    SettingsError,
    StoreError,
    sentence,
)
from vector_index_mcp.files.folder import is_broad
from vector_index_mcp.indexing.following import Show, follow_text, follow_vectors
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.opening.locks import held
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.service import LiveIndex
from vector_index_mcp.processes import git

_log = logging.getLogger(__name__)

_CHARS_PER_WORD = 6
_LONGEST_TEXT = 2_000  # characters of a description, a model's name or a license
_MOST_JOBS = 8  # under way or waiting
_KEPT_JOBS = 16  # finished jobs that can still be looked up
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Order:
    """An order to make a dataset, or to append to one."""

    source: Path
    """The folder of texts, resolved."""
    about: About
    endings: Sequence[str] = ENDINGS
    """The endings of the files to include, without a dot."""
    model: str = ""
    """The embedding model; empty for that of the settings."""
    words: int = 0
    """The most words in a chunk; 0 for the default."""
    is_appended: bool = False
    """Whether the dataset exists already, and the texts are appended to it."""

    @property
    def chunk_chars(self) -> int:
        """The most characters in a chunk; 0 for the default."""
        return self.words * _CHARS_PER_WORD


def order_of(given: Mapping[str, Any], *, allow_broad: bool = False) -> Order:
    """Check the fields of a request, and return the order.

    Args:
        given: The fields by the contract's names; `sourcePath`, `datasetId` and `name` are needed.
        allow_broad: Whether a drive's root or a home folder is allowed as the source.

    Raises:
        QueryError: If a field is missing or wrong.
        SettingsError: If the dataset's id is not valid, or the folder cannot be used.
    """
    needed = [given.get(name) for name in ("sourcePath", "datasetId", "name")]
    if not all(isinstance(value, str) and value.strip() for value in needed):
        raise QueryError("sourcePath, datasetId, and name are required")
    texts = {name: given.get(name) or "" for name in ("description", "model", "license")}
    words, overlap = given.get("chunkSize") or 0, given.get("chunkOverlap") or 0
    if not all(isinstance(text, str) and len(text) <= _LONGEST_TEXT for text in texts.values()):
        raise QueryError("description, model and license are texts")
    if type(words) is not int or (words and not FEWEST_WORDS <= words <= MOST_WORDS):
        raise QueryError(f"chunkSize is a number of words from {FEWEST_WORDS} to {MOST_WORDS}")
    if type(overlap) is not int or not 0 <= overlap <= MOST_OVERLAP:
        raise QueryError(f"chunkOverlap is a number of words from 0 to {MOST_OVERLAP}")
    path, id_, name = map(str, needed)
    if texts["model"] and not is_hub_name(texts["model"]):
        raise QueryError("a model is named as on the hub: name or owner/name")
    making.check_id(id_)
    source = folder_of(path, allow_broad=allow_broad)
    about = About.of(
        id_,
        path,
        git.revision_of(source),
        name=name,
        description=texts["description"],
        license_=texts["license"],
    )
    return Order(source, about, model=texts["model"], words=words)


def folder_of(written: str, *, allow_broad: bool) -> Path:
    """Return the folder of texts that a person has written, resolved.

    Raises:
        SettingsError: If it is no absolute path of a folder, or is a drive's root or home folder.
    """
    try:
        path = Path(written).expanduser()
        folder = Path(os.path.realpath(path))
        is_folder = path.is_absolute() and folder.is_dir()
    except (OSError, RuntimeError, ValueError):  # no such user, or no path at all
        is_folder = False
    if not is_folder:
        raise SettingsError(
            f"{written[:300]!r} is no folder; give the absolute path of one that holds texts"
        )
    if not allow_broad and is_broad(folder):
        raise SettingsError(
            f"{folder} holds far more than the texts of a dataset; name a folder in it"
        )
    return folder


IndexOf = Callable[[Order, Path], LiveIndex]
"""Returns the index of an order's texts, without those in the folder of all datasets.

The index is not running yet. The same order gets the same index, so that a job whose process was
killed is continued."""


@dataclass(slots=True)
class Job:
    """An order with its progress."""

    number: int
    order: Order
    what: str = "waiting"
    """The current step, for people."""
    done: int = 0
    total: int = 0
    made: Made | None = None
    error: str = ""
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    ended: anyio.Event = field(default_factory=anyio.Event)

    def show(self, what: str, done: int, total: int) -> None:
        """Set the progress: the current step, and how much of it is done."""
        self.what, self.done, self.total = what, done, total


class Workshop:
    """Makes datasets in one folder, one after another, while it is `running`."""

    def __init__(self, root: Path, index_of: IndexOf, *, allow_broad: bool = False) -> None:
        """Set up the workshop; it starts nothing yet.

        Args:
            root: The folder of all datasets.
            index_of: Returns the index for an order.
            allow_broad: Whether a drive's root or a home folder may become a dataset.
        """
        self._root, self._index_of = root, index_of
        self.allow_broad = allow_broad
        self._numbers = itertools.count(1)
        self._bench = anyio.Semaphore(1)
        self._tasks: anyio.abc.TaskGroup | None = None
        self.jobs: list[Job] = []
        """Oldest first."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the workshop: jobs are worked on while this context is open."""
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    @property
    def is_busy(self) -> bool:
        """Whether something is being made."""
        return any(not job.ended.is_set() for job in self.jobs)

    async def begin(self, order: Order) -> Job:
        """Start a job that makes a dataset; do not wait for its end.

        Raises:
            BusyError: If too many datasets are being made, or this one is.
            SettingsError: If the dataset's id is taken or not valid.
        """
        assert self._tasks is not None  # callers begin jobs only while it is running
        await anyio.to_thread.run_sync(_place_of, order, self._root)
        waiting = [job for job in self.jobs if not job.ended.is_set()]
        if len(waiting) >= _MOST_JOBS:
            raise BusyError(f"{_MOST_JOBS} datasets are being made; try again when one is done")
        if any(job.order.about.id == order.about.id for job in waiting):
            raise BusyError(f"dataset '{order.about.id}' is being made already")
        job = Job(next(self._numbers), order)
        ended = [each for each in self.jobs if each not in waiting]
        self.jobs = [*ended[-_KEPT_JOBS:], *waiting, job]
        self._tasks.start_soon(self._work, job)
        return job

    def cancel(self, number: int) -> None:
        """Cancel a job. A later job for the same source reuses what was embedded."""
        for job in self.jobs:
            if job.number == number:
                job.scope.cancel()

    async def _work(self, job: Job) -> None:
        job.error = "cancelled"
        try:
            with job.scope:
                async with self._bench:
                    job.made = await made(self._index_of, job.order, self._root, job.show)
                    job.error = ""
        except Exception as error:  # noqa: BLE001 - one failed job must not end the service
            _log.info("the dataset %s could not be made", job.order.about.id, exc_info=True)
            job.error = sentence(error)
        finally:
            job.ended.set()


async def made(index_of: IndexOf, order: Order, root: Path, show: Show) -> Made:
    """Make a dataset from a folder of texts.

    Args:
        index_of: Returns the index for the order.
        order: The order.
        root: The folder of all datasets.
        show: Called with the progress.

    Raises:
        SettingsError: If the dataset's id is taken or not valid.
        VectorIndexError: If the dataset cannot be made.
    """
    folder = await anyio.to_thread.run_sync(_place_of, order, root)
    live = index_of(order, root)
    place = Path(live.uri)
    await anyio.to_thread.run_sync(_discard_others, place)
    with _alone(place):
        try:
            return await of_index(
                live, "", order.about, folder, show, is_appended=order.is_appended
            )
        finally:  # what was embedded stays in the cache of vectors, also if the job has failed
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(_discard, place)


async def of_index(
    live: LiveIndex,
    below: str,
    about: About,
    folder: Path,
    show: Show,
    *,
    is_appended: bool = False,
) -> Made:
    """Make a dataset from an index, which is brought up to date first.

    Args:
        live: The index, not yet running.
        below: The folder of the files to include, as their keys begin; empty for all files.
        about: The dataset's description.
        folder: The dataset's folder.
        show: Called with the progress.
        is_appended: Whether the dataset exists already, and the texts are appended to it.

    Raises:
        SettingsError: If there is no text, or the dataset cannot be appended to.
        VectorIndexError: If the index cannot be read, or the dataset cannot be written.
    """
    began = time.monotonic()
    async with live.running(Role.VISITOR):
        if not await live.is_kept_elsewhere():
            run = await live.trigger(force_reindex=False)
            await follow_text(show, run)
            if run.error:  # the index lacks texts
                raise StoreError(run.error)
            await follow_vectors(show, live)
            if live.progress.chunks:
                await live.embed()
        async with live.reading() as (found, ledger):
            work = appending.append if is_appended else making.make
            made = await work(found, below, about, folder)
            skipped = _skipped(ledger, below)
    return replace(made, took=time.monotonic() - began, skipped=skipped)


def _skipped(ledger: Ledger, below: str) -> dict[str, int]:
    """Return how many files below a folder are not in the index, by reason."""
    keys = frozenset(ledger.below(below))
    left = (record for record in ledger.not_indexed() if record.key in keys)
    return dict(Counter(record.reason for record in left))


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Hold a lock, so that no other process makes a dataset from the same texts.

    Raises:
        BusyError: If another process holds the lock.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        try:
            stack.enter_context(held(_lock_of(place)))
        except BusyError:
            raise BusyError(
                "another process is making a dataset from the same texts; try again when it is done"
            ) from None
        yield


def _lock_of(place: Path) -> Path:
    return place.with_name(f"{place.name}{_LOCK}")


def _discard(place: Path) -> None:
    """Remove an index that is no longer needed, and its lock, which the caller holds."""
    _put_aside(place)
    _remove_aside(place)
    _remove_lock(place)


def _put_aside(place: Path) -> None:
    """Rename an index.

    An interrupted removal must not leave half an index under its name, which the next job would
    refuse to replace.
    """
    with contextlib.suppress(OSError):
        place.rename(place.with_name(f"{place.name}.{os.getpid()}{PART}"))


def _aside(place: Path) -> list[Path]:
    return [*place.parent.glob(f"{place.name}.*{PART}")]


def _remove_aside(place: Path) -> None:
    for left in _aside(place):
        shutil.rmtree(left, ignore_errors=True)


def _remove_lock(place: Path) -> None:
    """Remove a lock that is held, unless it leads to something that could not be removed."""
    if not (place.exists() or _aside(place)):
        with contextlib.suppress(OSError):  # Windows removes no file that is open
            _lock_of(place).unlink()


def _discard_others(place: Path) -> None:
    """Remove the indexes beside `place` whose processes were killed: they hold texts.

    Their locks are held for moments only: who continues such a job need not wait.
    """
    for lock in [*place.parent.glob(f"*{_LOCK}")]:
        other = lock.with_name(lock.name.removesuffix(_LOCK))
        if other != place:
            with contextlib.suppress(BusyError, OSError):
                with held(lock):
                    _put_aside(other)
                _remove_aside(other)
                with held(lock):
                    _remove_lock(other)


def _place_of(order: Order, root: Path) -> Path:
    """Check, before hours of work, that the dataset can be written; return its folder.

    Raises:
        SettingsError: If it cannot.
    """
    folder = making.place_of(root, order.about.id, is_appended=order.is_appended)
    if order.is_appended:
        appending.checked(folder)
    return folder

"""Looks at folders in threads, since a drive may never answer."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent import futures
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import Folder, Folders, absence_of

_PATIENCE_SECONDS = 3.0  # for a drive to answer; a disk that stands still takes longer to start
_MOMENT_SECONDS = 0.2  # how long the event loop may wait for a drive
_NO_ANSWER = (
    "the drive of the folder {} does not answer; the index is kept and goes on when it answers"
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Look:
    """A look at a place, in a thread."""

    answer: futures.Future[Any] = field(default_factory=futures.Future)
    began: float = field(default_factory=time.monotonic)

    def begin(self, look: Callable[[], object]) -> None:
        """Start the thread, for which the interpreter does not wait at its end.

        Raises:
            TimeoutError: If the system starts no thread.
        """
        self.answer.set_running_or_notify_cancel()  # from now on it cannot be cancelled
        thread = threading.Thread(target=self._run, args=(look,), name="look", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            self.answer.set_exception(TimeoutError())
            raise TimeoutError from error

    def _run(self, look: Callable[[], object]) -> None:
        try:
            self.answer.set_result(look())
        finally:  # so that nobody takes an error for a drive that hangs
            if not self.answer.done():
                self.answer.set_exception(RuntimeError("a look at a drive has failed"))

    async def wait(self) -> None:
        """Wait until it has ended.

        Raises:
            TimeoutError: If it takes too long.
        """
        left = self.began + _PATIENCE_SECONDS - time.monotonic()
        with anyio.fail_after(max(left, 0)):
            await asyncio.wrap_future(self.answer)


class Looks:
    """Looks at places in threads, since a drive may never answer.

    There is at most one look at a place at a time, so a drive that hangs holds few threads.
    """

    def __init__(self) -> None:
        self._last: dict[Path, _Look] = {}

    async def at(self, place: Path, look: Callable[[], T]) -> T:
        """Call `look`, which looks at `place`, in a thread, and return what it returns.

        Args:
            place: A path; only one look at it is under way at any time.
            look: It must not raise.

        Raises:
            TimeoutError: If it, or an earlier look at the place, takes longer than a few seconds.
        """
        while (earlier := self._under_way(place)) is not None:  # it may have looked too early
            await earlier.wait()
        mine = self._begin(place, look)
        await mine.wait()
        found: T = mine.answer.result()
        return found

    def at_once(self, place: Path, look: Callable[[], T]) -> T:
        """Like `at`, but block until it has ended; only for looks that take milliseconds.

        Raises:
            TimeoutError: If it, or an earlier look at the place, takes longer than 0.2 s.
        """
        until = time.monotonic() + _MOMENT_SECONDS
        if (earlier := self._under_way(place)) is not None:
            futures.wait([earlier.answer], earlier.began + _MOMENT_SECONDS - time.monotonic())
            if not earlier.answer.done():
                raise TimeoutError
        mine = self._begin(place, look)
        found: T = mine.answer.result(max(until - time.monotonic(), 0))
        return found

    async def is_there(self, folder: Folder) -> bool | None:
        """Whether a folder is there; None if its drive does not answer."""
        try:
            return await self.at(folder.path, partial(absence_of, folder)) is None
        except TimeoutError:
            return None

    async def answers(self, place: Path) -> bool:
        """Whether the drive of a path answers, be it that nothing is there."""
        try:
            await self.at(place, partial(os.path.exists, place))
        except TimeoutError:
            return False
        return True

    async def problem_of(self, folder: Folder) -> ProjectError | None:
        """Why a folder is out of reach; None if it is there."""
        try:
            return await self.at(folder.path, partial(absence_of, folder))
        except TimeoutError:
            return ProjectError(_NO_ANSWER.format(folder.path))

    async def absence(self, folders: Folders) -> ProjectError | None:
        """Why all folders are out of reach; None if any can be reached or none exists."""
        first = None
        for folder in sorted(folders, key=lambda each: self._under_way(each.path) is not None):
            if (problem := await self.problem_of(folder)) is None:
                return None
            first = first or problem
        return first

    async def absent(self, folders: Folders) -> dict[str, str]:
        """The folders that are out of reach, by name, and why."""
        problems = [(folder.name, await self.problem_of(folder)) for folder in folders]
        return {name: str(problem) for name, problem in problems if problem is not None}

    def is_waiting(self, folders: Iterable[Folder]) -> bool:
        """Whether the drive of any of these folders has not answered yet."""
        return any(self._under_way(folder.path) is not None for folder in folders)

    def _under_way(self, place: Path) -> _Look | None:
        last = self._last.get(place)
        return None if last is None or last.answer.done() else last

    def _begin(self, place: Path, look: Callable[[], object]) -> _Look:
        mine = self._last[place] = _Look()
        mine.begin(look)
        return mine

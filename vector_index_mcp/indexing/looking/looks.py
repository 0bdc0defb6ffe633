"""Looks at folders and at the index in threads of their own, since a drive may never answer."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import ProjectError, StorageError
from vector_index_mcp.files.folder import Folder, Folders, absence_of
from vector_index_mcp.processes import detached
from vector_index_mcp.processes.detached import Detached, NoThreadError

_CHECKS_AT_ONCE = 40
_NO_ANSWER = "the drive of the {} {} does not answer; the index is kept and goes on when it answers"
_NO_THREAD = "the {} {} cannot be looked at: {}; the index is kept, and is tried again"

T = TypeVar("T")


class Looks:
    """Looks at places in threads, since a drive may never answer.

    There is at most one look at a place at a time, and at most one piece of work that takes longer,
    so a drive that hangs holds few threads.
    """

    def __init__(self) -> None:
        self._looking: dict[Path, Detached] = {}
        self._working: dict[Path, Detached] = {}
        self._checking = Detached(_CHECKS_AT_ONCE, "check")

    async def at(self, place: Path, look: Callable[[], T]) -> T:
        """Call `look`, which looks at `place`, in a thread, and return what it returns.

        Args:
            place: A path; only one look at it is under way at any time.
            look: It takes milliseconds.

        Raises:
            TimeoutError: If it, or an earlier look at the place, takes longer than a few seconds.
            NoThreadError: If the system starts no thread.
        """
        threads = self._looking.setdefault(place, Detached(1, "look"))
        return await threads.run(lambda _: look(), detached.DRIVE_SECONDS)

    async def is_there(self, folder: Folder) -> bool | None:
        """Whether a folder is there; None if its drive does not answer."""
        try:
            return await self.at(folder.path, partial(absence_of, folder)) is None
        except TimeoutError:
            return None

    async def answers(self, place: Path) -> bool:
        """Whether the drive of a path answers, be it that nothing is there, or nobody can look."""
        try:
            await self.at(place, partial(os.path.exists, place))
        except NoThreadError:
            return True
        except TimeoutError:
            return False
        return True

    async def all_answer(self, folders: Iterable[Folder]) -> bool:
        """Whether the drives of all these folders answer."""
        return all([await self.answers(folder.path) for folder in folders])

    async def problem_of(self, folder: Folder) -> ProjectError | None:
        """Why a folder is out of reach; None if it is there."""
        try:
            return await self.at(folder.path, partial(absence_of, folder))
        except TimeoutError as error:
            return _silent(folder, error)

    async def absence(self, folders: Folders) -> ProjectError | None:
        """Why all folders are out of reach; None if any can be reached or none exists."""
        first = None
        for folder in sorted(folders, key=lambda each: self.is_waiting([each])):
            if (problem := await self.problem_of(folder)) is None:
                return None
            first = first or problem
        return first

    async def absent(self, folders: Iterable[Folder]) -> dict[str, str]:
        """The folders that are out of reach, by name, and why."""
        problems = [(folder.name, await self.problem_of(folder)) for folder in folders]
        return {name: str(problem) for name, problem in problems if problem is not None}

    def is_waiting(self, folders: Iterable[Folder]) -> bool:
        """Whether the drive of any of these folders has not answered yet."""
        threads = (self._looking.get(folder.path) for folder in folders)
        return any(each is not None and each.is_busy for each in threads)

    async def hung(self, folders: Iterable[Folder]) -> set[Folder]:
        """Those of the folders whose drive does not answer; starts no look if none is under way."""
        waiting = [folder for folder in folders if self.is_waiting([folder])]
        return {folder for folder in waiting if await self.is_there(folder) is None}

    async def silent(self, folders: Iterable[Folder]) -> dict[str, str]:
        """The folders that `hung` finds, by name, each with a sentence that says so."""
        return {folder.name: str(_silent(folder)) for folder in await self.hung(folders)}

    async def work_in(self, folder: Folder, do: Callable[[], T]) -> T:
        """Call `do`, which may read a whole folder, in a thread as long as the drive answers.

        Raises:
            ProjectError: If the drive does not answer, or `do` raises it.
        """
        try:
            return await self._work_at(folder.path, do)
        except TimeoutError as error:
            raise _silent(folder, error) from error

    async def check_in(self, folders: Iterable[Folder], do: Callable[[], T]) -> T:
        """Call `do`, which reads some files of some folders, as long as their drives answer.

        Raises:
            TimeoutError: If one of the drives does not answer.
        """
        answer = partial(self.all_answer, folders)
        return await self._checking.run(lambda _: do(), detached.DRIVE_SECONDS, answer)

    async def while_all_answer(self, folders: Iterable[Folder], work: Coroutine[Any, Any, T]) -> T:
        """Await what reads files of some folders, as long as their drives answer.

        Raises:
            TimeoutError: If one of the drives does not answer. `work` is cancelled.
        """
        return await _while(partial(self.all_answer, folders), work)

    async def _work_at(self, place: Path, do: Callable[[], T]) -> T:
        threads = self._working.setdefault(place, Detached(1, "work"))
        answer = partial(self.answers, place)
        return await threads.run(lambda _: do(), detached.DRIVE_SECONDS, answer)

    # -- the index -------------------------------------------------------------------------

    async def at_index(self, uri: str, look: Callable[[], T]) -> T:
        """Call `look`, which looks at the index: in a thread, if it lies in a folder.

        Raises:
            StorageError: If the drive does not answer.
        """
        if not is_local(uri):
            return look()
        try:
            return await self.at(Path(uri), look)
        except TimeoutError as error:
            raise _silent_index(uri, error) from error

    async def work_at_index(self, uri: str, do: Callable[[], T]) -> T:
        """Call `do`, which may read a whole local index, as long as the drive answers.

        Raises:
            StorageError: If the drive does not answer.
        """
        try:
            return await self._work_at(Path(uri), do)
        except TimeoutError as error:
            raise _silent_index(uri, error) from error

    async def while_it_answers(self, uri: str, work: Coroutine[Any, Any, T]) -> T:
        """Await what uses the index, as long as the index's drive answers.

        Raises:
            StorageError: If the drive does not answer. Nobody waits for `work` any more then.
        """
        if not is_local(uri):
            return await work
        try:
            return await _while(partial(self.answers, Path(uri)), work)
        except TimeoutError as error:
            raise _silent_index(uri) from error


async def _while(answers: Callable[[], Awaitable[bool]], work: Coroutine[Any, Any, T]) -> T:
    """Await what uses drives, as long as they answer; cancel it if they do not.

    Raises:
        TimeoutError: If they do not answer.
    """
    task = asyncio.ensure_future(work)
    task.add_done_callback(_note_end)
    try:
        if not await _ends(task, answers):
            raise TimeoutError
        return task.result()
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):  # what it has begun may use the writer's lock
            await _ends(task, answers)
        raise
    finally:
        task.cancel()


async def _ends(task: asyncio.Task[Any], answers: Callable[[], Awaitable[bool]]) -> bool:
    """Wait until a task has ended; False if it has not, and the drives do not answer."""
    while not (await asyncio.wait([task], timeout=detached.DRIVE_SECONDS))[0]:
        if not await answers():
            return task.done()
    return True


def _note_end(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # asyncio logs one that nobody has asked for


def _silent(folder: Folder, error: TimeoutError | None = None) -> ProjectError:
    return ProjectError(_words("folder", str(folder.path), error))


def _silent_index(uri: str, error: TimeoutError | None = None) -> StorageError:
    return StorageError(_words("index", uri, error))


def _words(what: str, where: str, error: TimeoutError | None) -> str:
    if isinstance(error, NoThreadError):
        return _NO_THREAD.format(what, where, error)
    return _NO_ANSWER.format(what, where)

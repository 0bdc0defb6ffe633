"""The one who writes: changes of the disk and commits of them, one after another.

Changes come from many and are made by one thread, under a lock that dies with the process, so that
other processes take turns. What waits meanwhile is committed together: each change is a commit of
its own, and one process of git writes them all. First the disk has it, then the history; a change
that the history does not take is undone, so that an error always means that nothing has changed.
"""

import asyncio
import queue
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import filelock

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import ByHand, about_by_hand
from vector_index_mcp.notes.store.disk import WORK, Applied, Change, Disk, reported
from vector_index_mcp.notes.store.history import Commit, Tree, write
from vector_index_mcp.notes.store.opening import Opening
from vector_index_mcp.notes.store.repository import Repository

_LOCK = "lock"
_OTHERS_SECONDS = 60.0  # how long we wait for other processes
_MOST_AT_ONCE = 64
_TRIES = 3  # to commit, when somebody else moves the branch meanwhile
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call wants."""

    change: Change
    message: str
    """Of the commit."""
    result: Any = None


Planned = Callable[[], Plan]
"""Makes the plan of what the disk says in the very moment in which nobody else changes it."""


@dataclass(slots=True)
class _Wish:
    planned: Planned
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(slots=True)
class _Work:
    do: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Made:
    """A change that the disk has and the history has not."""

    wish: _Wish
    plan: Plan
    applied: Applied


class Writer:
    """Writes one store. Constructing it does nothing yet."""

    def __init__(
        self, disk: Disk, repository: Repository, on_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Make one.

        Args:
            disk: The store's.
            repository: The store's.
            on_commit: Called in the writer's thread when the branch has moved.
        """
        self.disk = disk
        self.repository = repository
        self.tree = Tree(repository)
        self.by_hand = ByHand(disk)
        self.on_commit = on_commit
        self._opening = Opening(disk, repository)
        self._asked: queue.SimpleQueue[_Wish | _Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    # -- from any thread -------------------------------------------------------------------

    def start(self) -> None:
        """Begin to work."""
        self._thread = threading.Thread(target=self._run, name="notes writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End what has been asked for, then stop."""
        self._asked.put(None)
        if self._thread is not None:
            self._thread.join()
        self._opening.close()

    def ask(self, planned: Planned) -> "Future[Any]":
        """Have a change made and committed; what comes is the result of its plan, or a Refusal."""
        wish = _Wish(planned)
        self._asked.put(wish)
        return wish.future

    def alone(self, do: Callable[[], _Result]) -> "Future[_Result]":
        """Have `do` called while nobody else changes the store, which is open and free then."""
        work = _Work(do)
        self._asked.put(work)
        return work.future

    # -- in the thread ---------------------------------------------------------------------

    def _run(self) -> None:
        is_wanted = True
        while is_wanted:
            asked = [self._asked.get()]
            with suppress(queue.Empty):
                while len(asked) < _MOST_AT_ONCE:
                    asked.append(self._asked.get_nowait())
            is_wanted = None not in asked
            self._serve([each for each in asked if each is not None])

    def _serve(self, asked: "list[_Wish | _Work]") -> None:
        """Do what is asked for, in order; wishes in a row together."""
        while asked:
            count = next((n for n, each in enumerate(asked) if isinstance(each, _Work)), None)
            wishes = [each for each in asked[:count] if isinstance(each, _Wish)]
            work = asked[count] if count is not None else None
            asked = asked[count + 1 :] if count is not None else []
            if wishes:
                self._guarded([wish.future for wish in wishes], partial(self._make, wishes))
            if isinstance(work, _Work):
                self._guarded([work.future], partial(_do, work))

    def _guarded(self, futures: "list[Future[Any]]", do: Callable[[], None]) -> None:
        """Do something under the lock; whoever waits for it learns why it failed."""
        try:
            with self._locked():
                self._opening.ensure(self.tree, self.by_hand)
                with self._opening.changing():
                    do()
        except Exception as error:  # noqa: BLE001 - whoever asked is told, and the next one served
            for future in futures:
                if not future.done():
                    future.set_exception(error)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self._opening.check_place()
        with reported(WORK):
            with beneath.opened(self.disk.root, WORK, is_made=True):
                pass
            lock = filelock.FileLock(self.disk.root / WORK / _LOCK, mode=0o600)
            try:
                lock.acquire(timeout=_OTHERS_SECONDS, poll_interval=0.005)
            except filelock.Timeout as error:
                raise Refusal(
                    Code.FILE_SYSTEM_ERROR,
                    f"another process has been writing for {_OTHERS_SECONDS:.0f} s; try again",
                ) from error
        try:
            yield
        finally:
            lock.release()

    def _make(self, wishes: list[_Wish]) -> None:
        made: list[_Made] = []
        commits: list[Commit] = []
        for wish in wishes:
            try:
                plan = wish.planned()
                new = self._commits_of(plan)
                made.append(_Made(wish, plan, self.disk.apply(plan.change)))
            except Exception as error:  # noqa: BLE001 - the others' changes are made all the same
                wish.future.set_exception(error)
                continue
            commits += new
            self.tree.note(self.tree.commit, new)
        if made:
            self._keep(made, commits)

    def _keep(self, made: list[_Made], commits: list[Commit]) -> None:
        try:
            self.commit(commits)
        except Exception as error:  # noqa: BLE001 - all who wait are told
            for each in reversed(made):
                each.applied.undo()
            self.tree.commit = ""  # of which we know nothing any more
            for each in made:
                each.wish.future.set_exception(error)
            return
        for each in made:
            each.applied.finish()
            each.wish.future.set_result(each.plan.result)

    def _commits_of(self, plan: Plan) -> list[Commit]:
        """The commit of a plan, behind one of what people have changed there."""
        files: dict[str, bytes | None] = {}
        for path in plan.change.drops:
            if self.disk.is_folder(path):
                self.by_hand.check_can_go(self.tree, path)
            else:
                files[path] = None
            files |= dict.fromkeys({*self.tree.below(path), *self.by_hand.kept([path])})
        files |= plan.change.puts
        theirs = self.by_hand.changed(self.tree, files, is_needed=True)
        commit = Commit(plan.message, files)
        if not theirs:
            return [commit]
        return [Commit(about_by_hand(theirs), theirs, self._opening.author), commit]

    # -- for what is done alone ------------------------------------------------------------

    def take_over_by_hand(
        self,
        paths: Iterable[str] | None = None,
        about: Callable[[Collection[str]], str] = about_by_hand,
    ) -> int:
        """Commit what people have changed, as theirs; how many files that are.

        Args:
            paths: Where to look; None for everywhere.
            about: Words the commit's message, told which files.

        Raises:
            Refusal: If the history does not take it.
        """
        files = self.by_hand.changed(self.tree, paths)
        if files:
            self.commit([Commit(about(files), files, self._opening.author)])
        return len(files)

    def commit(self, commits: list[Commit]) -> str:
        """Have the history take `commits`; the name of the last.

        Raises:
            Refusal: If it does not.
        """
        branch = self.repository.branch()
        for left in reversed(range(_TRIES)):
            parent = self.repository.commit_of(branch)
            try:
                made = write(self.repository, branch, parent, self.tree, commits)
                break
            except Refusal:
                if not left or self.repository.commit_of(branch) == parent:
                    raise
        if parent == self.tree.commit:
            self.tree.note(made, commits)
        else:
            self.tree.follow(made)
        self.on_commit()
        return made


async def awaited(future: "Future[_Result]") -> _Result:
    """What a thread gives; whoever waits may go, the thread ends what it has begun."""
    waited = asyncio.wrap_future(future)
    waited.add_done_callback(_seen)  # an error that nobody waits for any more is none
    return await asyncio.shield(waited)


def _seen(waited: "asyncio.Future[Any]") -> None:
    if not waited.cancelled():
        waited.exception()


def _do(work: _Work) -> None:
    work.future.set_result(work.do())

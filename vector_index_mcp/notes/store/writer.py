"""The store's only writer: it changes the files and commits each change.

Requests come from many threads; one thread serves them in order. It holds a lock file, so that
other processes take turns; the system frees the lock if the process dies. Changes that wait at the
same time are written in one batch: each is a commit of its own, and one git process makes them all.
A change goes to the disk first and into the history second. If git cannot commit it, the files are
restored, so that an error always means that nothing has changed. Before either, what people have
edited in its files goes into the history: no file is replaced or removed that differs from the last
commit, so that a kill at any moment loses no edit.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store import applying
from vector_index_mcp.notes.store.byhand import ByHand, about_by_hand, some
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.filters import check_unfiltered
from vector_index_mcp.notes.store.git_index import GitIndex
from vector_index_mcp.notes.store.history import Commit, Tree, changes_between, move, write
from vector_index_mcp.notes.store.line_ends import LineEnds, Placed
from vector_index_mcp.notes.store.opening import Opening
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.turns import turn_at
from vector_index_mcp.notes.store.upkeep import without_pruning

_log = logging.getLogger(__name__)

_MOST_AT_ONCE = 64
_OF_THE_CALL = frozenset(Code) - {Code.FILE_SYSTEM_ERROR, Code.GIT_ERROR, Code.GIT_COMMAND_FAILED}
"""Errors that a vanished store cannot cause."""
_TRIES_WHILE_EDITED = 20  # of a change whose files somebody saves at the same time
_TRIES = 3  # attempts to commit if somebody else moves the branch meanwhile
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Plan:
    """A change to make, and its commit message."""

    change: Change
    message: str
    result: Any = None
    """The result of the future that `Writer.ask` returns."""
    places: tuple[str, ...] = ()
    """Further files and folders that must be checked out."""
    is_exact: bool = False
    """Whether the history gets the contents as they are, with their line ends."""


Planned = Callable[[], Plan]
"""Reads the disk and returns a plan; again if its files were edited by hand meanwhile. Called while
no other change is under way."""


@dataclass(slots=True)
class _Request:
    planned: Planned
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(slots=True)
class _Work:
    do: Callable[[], Any]
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A change as it goes to the disk."""

    change: Change
    commit: Commit
    """It records the change."""
    seen: applying.States
    """The states of its files before these were looked at."""
    theirs: Mapping[str, bytes | None]
    """Edits of these files that were made by hand, to be committed first."""


@dataclass(frozen=True, slots=True)
class _Made:
    """A change that is on the disk, and not committed yet."""

    request: _Request
    plan: Plan
    commit: Commit
    applied: applying.Applied


class Writer:
    """Writes one store. The constructor starts nothing."""

    def __init__(
        self, disk: Disk, repository: Repository, on_commit: Callable[[], None] = lambda: None
    ) -> None:
        """Set up the writer.

        Args:
            disk: The store's files.
            repository: The store's repository.
            on_commit: Called in the writer's thread after each move of the branch.
        """
        self.disk = disk
        self.repository = repository
        self.tree = Tree(repository)
        self.by_hand = ByHand(disk)
        self.index = GitIndex(disk, repository)
        self.on_commit = on_commit
        self._opening = Opening(disk, repository)
        self.presence = self._opening.presence
        self._asked: queue.SimpleQueue[_Request | _Work | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    # -- from any thread -------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread."""
        self._thread = threading.Thread(target=self._run, name="notes writer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Serve all requests made so far, then stop the thread."""
        self._asked.put(None)
        if self._thread is not None:
            self._thread.join()
        self.presence.close()

    def ask(self, planned: Planned) -> "Future[Any]":
        """Request a change and its commit.

        The future's result is that of the plan; its exception is a Refusal, mostly.
        """
        request = _Request(planned)
        self._asked.put(request)
        return request.future

    def alone(self, do: Callable[[], _Result]) -> "Future[_Result]":
        """Request a call of `do` while nothing else changes the store, which is open by then."""
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

    def _serve(self, asked: "list[_Request | _Work]") -> None:
        """Serve requests and work in order; consecutive requests form one batch."""
        while asked:
            count = next((n for n, each in enumerate(asked) if isinstance(each, _Work)), None)
            requests = [each for each in asked[:count] if isinstance(each, _Request)]
            work = asked[count] if count is not None else None
            asked = asked[count + 1 :] if count is not None else []
            if requests:
                futures = [request.future for request in requests]
                self._guarded(futures, partial(self._make, requests))
            if isinstance(work, _Work):
                self._guarded([work.future], partial(_do, work))

    def _guarded(self, futures: "list[Future[Any]]", do: Callable[[], None]) -> None:
        """Call `do` under the lock, with the store open; a failure goes to the futures."""
        try:
            self._opening.check_place()
            with turn_at(self.disk), without_pruning(self.disk):
                if self._opening.ensure(self.tree, self.by_hand):
                    self._report_move()
                with self._opening.changing():
                    do()
        except Exception as error:  # noqa: BLE001 - it goes to the futures; the thread goes on
            self._fail(futures, error)

    def _fail(self, futures: "Iterable[Future[Any]]", error: Exception) -> None:
        """Answer with an error; if the store has just been moved away, that is the reason."""
        if not (isinstance(error, Refusal) and error.code in _OF_THE_CALL):
            try:
                self.presence.check(is_under_way=True)
            except Refusal as vanished:
                error = vanished
            except Exception:  # noqa: BLE001 - the thread goes on, and the first error says more
                _log.exception("the notes in %s cannot be looked at", self.disk.root)
        for future in futures:
            if not future.done():
                future.set_exception(error)

    def _make(self, requests: list[_Request]) -> None:
        kept: list[_Made] = []
        try:
            with self.index.locked():
                self._change(requests, kept)
        finally:
            for each in kept:
                each.request.future.set_result(each.plan.result)

    def _change(self, requests: list[_Request], kept: list[_Made]) -> None:
        """Make and commit changes; add those to `kept` that are in the history.

        If people have edited files of a change, or save one meanwhile, it is planned anew once
        their edits are committed.

        Raises:
            Refusal: If git cannot commit; changes that are not kept were undone.
        """
        made: list[_Made] = []
        for request in requests:
            for _ in range(_TRIES_WHILE_EDITED):
                theirs = self._tried(request, made)
                if theirs is None:
                    break
                if theirs:
                    self._keep(made, kept)  # what was done before comes before, here as well
                    self.commit([Commit(about_by_hand(theirs), theirs, self._opening.author)])
            else:
                self._fail([request.future], applying.EditedMeanwhile(some(theirs or ["a file"])))
        self._keep(made, kept)

    def _tried(self, request: _Request, made: list[_Made]) -> Mapping[str, bytes | None] | None:
        """Try to make a change on the disk, and add it to `made`.

        Return None if it was made or refused. Otherwise it is to be tried again; the result are
        edits by hand that must be committed before.
        """
        try:
            plan = request.planned()
            prepared = self._prepared(plan)
            if prepared.theirs:
                return prepared.theirs
            applied = applying.apply(self.disk, prepared.change, prepared.seen)
        except applying.EditedMeanwhile:
            return {}
        except Exception as error:  # noqa: BLE001 - the other requests are served all the same
            self._fail([request.future], error)
            return None
        made.append(_Made(request, plan, prepared.commit, applied))
        self.tree.note(self.tree.commit, [prepared.commit])
        return None

    def _keep(self, made: list[_Made], kept: list[_Made]) -> None:
        """Commit changes that are on the disk, and move them to `kept`; or undo them.

        Raises:
            Refusal: If git cannot commit them.
        """
        if not made:
            return
        try:
            with applying.or_undone([each.applied for each in made]):
                self.commit([each.commit for each in made])
        except Exception:
            self.tree.forget()  # its files now include changes that were undone
            raise
        for each in made:
            each.applied.finish()
        kept += made
        made.clear()

    def _prepared(self, plan: Plan) -> _Prepared:
        """Return the plan's change as it goes to the disk, and what must be known before."""
        change = plan.change
        self.by_hand.checkout.check_can_be_written(
            self.tree, (*change.puts, *change.drops, *plan.places)
        )
        check_unfiltered(self.disk, self.tree, change.puts)
        files: dict[str, bytes | None] = {}
        # Noted before they are looked at, so that a file which is made meanwhile is met as new.
        dropped = applying.states_of(self.disk, change.drops)
        for path in change.drops:
            if self.disk.is_folder(path):
                self.by_hand.check_can_go(self.tree, path)
            else:
                files[path] = None
            files |= dict.fromkeys({*self.tree.below(path), *self.by_hand.kept(self.tree, [path])})
        files |= change.puts
        others = [path for path in files if path not in dropped]
        seen = {**applying.states_of(self.disk, others), **dropped}
        theirs = self.by_hand.changed(self.tree, files, is_needed=True)
        placed = self._placed(plan)
        change = replace(change, puts=placed.on_disk)
        commit = Commit(plan.message, {**files, **placed.kept})
        return _Prepared(change, commit, seen, theirs)

    def _placed(self, plan: Plan) -> Placed:
        ends, puts = LineEnds(self.disk), plan.change.puts
        if plan.is_exact:
            return Placed(ends.as_checked_out(self.tree, puts), dict(puts))
        return ends.placed(self.tree, puts)

    # -- for work requested with `alone` ---------------------------------------------------

    def take_over_by_hand(
        self,
        paths: Iterable[str] | None = None,
        about: Callable[[Collection[str]], str] = about_by_hand,
    ) -> int:
        """Commit edits made by hand, with their author; return the number of changed files.

        Very much becomes several commits.

        Args:
            paths: The files to look at; None for all.
            about: Returns the commit's message for the changed files.

        Raises:
            Refusal: If git cannot commit them.
        """
        count = 0
        for files in self.by_hand.turns(self.tree, paths):
            if files:
                self.commit([Commit(about(files), files, self._opening.author)])
            count += len(files)
        return count

    def commit(self, commits: list[Commit]) -> str:
        """Add `commits` to the branch; return the id of the last one.

        Raises:
            Refusal: If git cannot write them.
        """
        branch = self.repository.branch()
        for left in reversed(range(_TRIES)):
            parent = self.repository.commit_of(branch)
            changed = self.tree.changed_by(commits)
            try:
                with self.index.moving(parent, changed) as moving:
                    made = write(self.repository, branch, parent, self.tree, commits, moving.begin)
                    moving.arrive(made)
                break
            except Refusal:
                if not left or self.repository.commit_of(branch) == parent:
                    raise
        if parent == self.tree.commit:
            self.tree.note(made, commits)
        self._follow(made)
        return made

    def move(self, branch: str, old: str, new: str) -> None:
        """Move the branch from the commit `old`, or from none (empty), to the commit `new`.

        Raises:
            Refusal: If git cannot move it.
        """
        changed = changes_between(self.repository, old, new) if old else {}
        with self.index.moving(old, changed) as moving:
            moving.begin()
            move(self.repository, branch, old, new)
            moving.arrive(new)
        self._follow(new)

    def _follow(self, commit: str) -> None:
        """Follow the branch, which has moved to `commit`.

        This raises nothing: the caller would undo its files, which are part of the commit by now.
        """
        try:
            self.tree.follow(commit)
        except Exception as error:  # noqa: BLE001 - the next work reads the tree again
            refusal = as_refusal(error, "reading the last commit")
            _log.warning("the last commit cannot be read now: %s", refusal)
            self.tree.forget()
        self._report_move()

    def _report_move(self) -> None:
        """Report that the branch has moved; if the index lags behind, who hears it tries again."""
        self.index.catch_up()
        self.on_commit()


async def awaited(future: "Future[_Result]") -> _Result:
    """Wait for a thread's result. If the wait is cancelled, the thread still finishes its work."""
    waited = asyncio.wrap_future(future)
    waited.add_done_callback(_retrieved)
    return await asyncio.shield(waited)


def _retrieved(waited: "asyncio.Future[Any]") -> None:
    """Fetch the exception: asyncio logs one that nobody has fetched, as after a cancelled wait."""
    if not waited.cancelled():
        waited.exception()


def _do(work: _Work) -> None:
    work.future.set_result(work.do())

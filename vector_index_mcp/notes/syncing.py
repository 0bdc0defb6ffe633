"""Keeps a store and its git remote in sync, in a thread of its own; no commit of either is lost.

It fetches the remote's commits. If the store has no new commits, its branch moves forward to the
remote's; otherwise both are merged. Then it pushes. A failure delays no write: the thread tries
again, with growing pauses. If the remote's history was rewritten, the commits that it had before
stay under `refs/rescue/`.
"""

import logging
import math
import queue
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from vector_index_mcp.notes.coming import by_merging, by_moving, put
from vector_index_mcp.notes.layout import INDEX
from vector_index_mcp.notes.refusal import Code, Refusal, as_refusal
from vector_index_mcp.notes.store.applying import EditedMeanwhile
from vector_index_mcp.notes.store.history import Commit
from vector_index_mcp.notes.store.remote import Address, RejectedError, Remote, tracking
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.upkeep import wait_for_others
from vector_index_mcp.notes.store.writer import Writer

_log = logging.getLogger(__name__)

_FETCH_SECONDS = 300.0  # between two fetches
_FETCH_FOR_READER_SECONDS = 30.0  # the same, while somebody reads
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 1.0, 300.0
_BURST_SECONDS = 0.2  # commits within this time are pushed together
_ROUNDS = 5  # attempts to merge and push while others push as well
_TRIES_WHILE_EDITED = 20
_MOST_NEWS = 50


@dataclass(frozen=True, slots=True)
class Exchanged:
    """What an exchange with the remote has done."""

    has_remote: bool = True
    has_taken: bool = False
    """Whether the store has commits of the remote that it did not have."""
    has_pushed: bool = False
    notes: tuple[str, ...] = ()
    """What was decided about what the remote had, in sentences."""


class Syncing:
    """Keeps one store and its remote in sync. Its thread works from `start` to `stop`."""

    def __init__(self, writer: Writer, remote: Remote) -> None:
        self._writer = writer
        self._repository: Repository = writer.repository
        self._remote = remote
        self._wanted = threading.Event()
        self._stopping = remote.stopping
        self._thread: threading.Thread | None = None
        self._asked: queue.SimpleQueue[Future[Exchanged]] = queue.SimpleQueue()
        self._exchanging = False
        self._next_fetch = 0.0
        self._last_fetch = -math.inf
        self.has_tried = threading.Event()
        """Set once the first attempt has ended, or none will come."""
        self.problem = ""
        """Why the last attempt failed; empty if it succeeded."""
        self.news: list[str] = []
        """What the last merges have decided, in sentences, newest last."""

    # -- from any thread -------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, which first fetches from the remote."""
        self._wanted.set()
        self._thread = threading.Thread(target=self._run, name="notes remote", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread. Commits not pushed yet are pushed when the store is next opened."""
        self._stopping.set()
        self.has_tried.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join()
        _answer(self._all_asked(), Refusal(Code.GIT_ERROR, "the service is stopping"))

    def look(self) -> None:
        """Report that there are new commits. Returns at once."""
        self._wanted.set()

    def look_for_reader(self) -> None:
        """Fetch now, unless that was done a moment ago: somebody reads. Returns at once."""
        if time.monotonic() - self._last_fetch >= _FETCH_FOR_READER_SECONDS and not self.problem:
            self._next_fetch = 0.0
            self._wanted.set()

    def wait_for_first(self, seconds: float) -> None:
        """Wait until the first attempt to fetch has ended, for `seconds` at most. Blocks."""
        with suppress(Refusal):  # the address cannot be used: the attempt says so
            if self._remote.address() is not None:
                self.has_tried.wait(seconds)

    def now(self) -> "Future[Exchanged]":
        """Request a fetch and a push that begin after this call.

        The future's result is what was exchanged; its exception says what failed.
        """
        asked: Future[Exchanged] = Future()
        self._asked.put(asked)
        self._wanted.set()
        return asked

    @property
    def is_busy(self) -> bool:
        """Whether a push is due or under way; False while the remote cannot be reached."""
        return (self._wanted.is_set() or self._exchanging) and not self.problem

    def status(self) -> str:
        """Return what `compared` returns.

        If that cannot be found out, for example because the remote's address may not be used, the
        words say why.
        """
        try:
            return self.compared()
        except Refusal as refusal:
            return str(refusal)

    def compared(self) -> str:
        """Return whether the store and its remote agree, in words; empty without a remote.

        Raises:
            Refusal: If that cannot be found out.
        """
        if self._remote.address() is None:
            return ""
        branch = self._repository.branch()
        short = branch.removeprefix("refs/heads/")
        ours, theirs = (self._repository.commit_of(r) for r in (branch, tracking(branch)))
        state = "up to date" if ours == theirs else self._distance(ours, theirs)
        if self.problem:
            state += f" as of the last fetch; {self.problem}; the service tries again by itself"
        elif self._last_fetch == -math.inf:  # this process has not asked the remote
            state += " as of the last fetch"
        return f"origin/{short} ({state})"

    def _distance(self, ours: str, theirs: str) -> str:
        if not theirs:
            return "nothing pushed yet"
        counted = self._repository.run("rev-list", "--left-right", "--count", f"{ours}...{theirs}")
        if counted.status:
            return "not compared"
        ahead, behind = (int(number) for number in counted.output.split())
        states = [f"{ahead} to push"] * bool(ahead) + [f"{behind} to merge"] * bool(behind)
        return ", ".join(states)

    # -- in the thread ---------------------------------------------------------------------

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while not self._stopping.is_set():
            self._wanted.wait(max(0.0, self._next_fetch - time.monotonic()))
            if self._stopping.wait(_BURST_SECONDS):
                return
            self._exchanging = True  # before the next line: meanwhile the service may not end
            self._wanted.clear()
            # A request that comes later waits for the next round: this one may have fetched before.
            asked = self._all_asked()
            if asked:
                self._next_fetch = 0.0
            try:
                exchanged = self._sync()
            except Exception as error:  # noqa: BLE001 - those who wait get it; the thread goes on
                refusal = as_refusal(error, "the exchange with the remote")
                self.problem = str(refusal)
                self._exchanging = False
                self.has_tried.set()
                _log.warning("the remote is not up to date: %s", refusal)
                _answer(asked, refusal)
                self._next_fetch = time.monotonic() + pause
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                self._wait_out(self._next_fetch)
            else:
                self.problem, pause = "", _FIRST_PAUSE_SECONDS
                self._exchanging = False
                self.has_tried.set()
                _answer(asked, exchanged)

    def _wait_out(self, until: float) -> None:
        """Wait until the time `until`, or a call of `now`; a new commit alone ends no pause."""
        while (left := until - time.monotonic()) > 0 and self._asked.empty():
            if self._stopping.wait(min(left, _BURST_SECONDS)):
                return
        self._wanted.set()

    def _all_asked(self) -> "list[Future[Exchanged]]":
        asked: list[Future[Exchanged]] = []
        with suppress(queue.Empty):
            while True:
                asked.append(self._asked.get_nowait())
        return asked

    def _sync(self) -> Exchanged:
        address = self._remote.address()
        if address is None:
            self._note_fetch()
            return Exchanged(has_remote=False)
        has_taken, notes = False, list[str]()
        for _ in range(_ROUNDS):
            branch = self._repository.branch()
            if time.monotonic() >= self._next_fetch:
                is_known = bool(self._repository.commit_of(tracking(branch)))
                notes += self._fetch(address, branch)
                self._note_fetch()
                if not is_known and (only := self._only_other(address, branch)) is not None:
                    notes += self._writer.alone(partial(self._go_on_as, only)).result()
                    branch = only
            taken = self._writer.alone(partial(self._taken_over, branch)).result()
            has_taken |= taken is not None
            notes += taken or ()
            ours = self._repository.commit_of(branch)
            if ours == self._repository.commit_of(tracking(branch)):
                return Exchanged(has_taken=has_taken, notes=tuple(notes))
            try:
                self._remote.push(address, ours, branch)
                return Exchanged(has_taken=has_taken, has_pushed=True, notes=tuple(notes))
            except RejectedError:
                self._next_fetch = 0.0
        raise Refusal(
            Code.GIT_ERROR, f"other machines pushed first in each of {_ROUNDS} attempts; try again"
        )

    def _note_fetch(self) -> None:
        self._last_fetch = time.monotonic()
        self._next_fetch = self._last_fetch + _FETCH_SECONDS

    def _fetch(self, address: Address, branch: str) -> list[str]:
        """Fetch, and return what was decided, in sentences.

        If the remote's history was rewritten, the old commits are kept under a reference.
        """
        with suppress(OSError):
            wait_for_others(self._writer.disk)
        before = self._repository.commit_of(tracking(branch))
        self._remote.fetch(address, branch)
        after = self._repository.commit_of(tracking(branch))
        if not before or after == before or self._repository.is_in(before, after):
            return []
        name = f"refs/rescue/origin-{_today()}-{before[:12]}"
        self._repository.done("update-ref", name, before)
        what = "history was rewritten" if after else f"branch {branch} is gone"
        return self._note([f"the remote's {what}; its earlier commits are kept as {name}"])

    def _only_other(self, address: Address, branch: str) -> str | None:
        """Fetch the remote's only branch, and return it, if it has notes and is not `branch`.

        Otherwise return None.

        The two differ if the remote names a branch as its own that nobody has pushed to, which a
        clone then checks out, or if `git init` has made one of another name here.
        """
        if self._repository.commit_of(tracking(branch)):
            return None
        only, *others = self._remote.branches(address) or [branch]
        if others or only == branch:
            return None
        # It is there if an earlier try ended half way.
        if self._repository.commit_of(only) not in {"", self._repository.commit_of(branch)}:
            return None
        self._remote.fetch(address, only)
        found = self._repository.run("cat-file", "-e", f"{tracking(only)}:{INDEX}")
        return None if found.status else only

    def _go_on_as(self, branch: str) -> list[str]:
        """Make `branch` of our commits, and check it out; runs in the writer's thread."""
        before = self._repository.branch()
        ours = self._repository.commit_of(before)
        if ours and not self._repository.commit_of(branch):
            self._repository.done("update-ref", branch, ours, "0" * 40)
        self._repository.check_out(branch)
        new, old = (name.removeprefix("refs/heads/") for name in (branch, before))
        return self._note([f"the remote has {new} and not {old}; the notes go on as {new}"])

    def _taken_over(self, branch: str) -> list[str] | None:
        """Do what `_take_over` does, anew if somebody saves a file that it changes meanwhile."""
        for _ in range(_TRIES_WHILE_EDITED):
            with suppress(EditedMeanwhile):
                return self._take_over(branch)
        return self._take_over(branch)

    def _take_over(self, branch: str) -> list[str] | None:
        """Move our branch forward to the remote's, or merge both; return what was decided.

        The result is None if neither was needed. Runs in the writer's thread.

        Raises:
            EditedMeanwhile: If somebody has saved a file that this changes; nothing was changed.
            Refusal: If it is not possible.
        """
        writer, repository = self._writer, self._repository
        if repository.branch() != branch:
            raise Refusal(
                Code.GIT_ERROR,
                f"another branch than {branch.removeprefix('refs/heads/')} was checked out while "
                "it was fetched",
            )
        theirs = repository.commit_of(tracking(branch))
        writer.take_over_by_hand()
        ours = repository.commit_of(branch)
        writer.tree.follow(ours)  # if that failed after the commit of edits made by hand
        if not theirs or (ours and self._repository.is_in(theirs, ours)):
            return None
        if not ours or self._repository.is_in(ours, theirs):
            return self._go_forward(branch, ours, theirs)
        return self._merge(branch, ours, theirs)

    def _go_forward(self, branch: str, ours: str, theirs: str) -> list[str]:
        coming = by_moving(self._repository, ours, theirs)
        put(coming, self._writer, lambda: self._writer.move(branch, ours, theirs))
        return self._note(coming.notes)

    def _merge(self, branch: str, ours: str, theirs: str) -> list[str]:
        found = self._repository.run("merge-base", ours, theirs)
        base = found.output.decode("ascii").strip() if not found.status else ""
        label = f"origin/{branch.removeprefix('refs/heads/')}, {_today()}"
        coming = by_merging(self._repository, base, ours, theirs, label)
        message = "Merged what was written elsewhere"
        if coming.notes:
            message += "\n\n" + "\n".join(coming.notes)
        commit = Commit(message, coming.files, merges=theirs, taken=coming.taken)
        put(coming, self._writer, lambda: self._writer.commit([commit]))
        return self._note(coming.notes)

    def _note(self, news: list[str]) -> list[str]:
        for each in news:
            _log.info("%s", each)
        self.news = [*self.news, *news][-_MOST_NEWS:]
        return news


def _answer(asked: "list[Future[Exchanged]]", result: Exchanged | Exception) -> None:
    for each in asked:
        if isinstance(result, Exception):
            each.set_exception(result)
        else:
            each.set_result(result)


def _today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")

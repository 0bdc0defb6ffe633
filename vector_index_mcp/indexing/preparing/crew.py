"""Prepares files in child processes: one warm child for a few files, a crew of children for many.

Nothing is parsed in the service itself, for three reasons. A file may make a parser crash, hang or
take all memory, which then ends only the child. Cutting runs in Python, and threads share one
interpreter. And an idle service then holds no memory of parsers.

If a child ends on a file, another child cuts that file by its lines; if it crashed or was killed,
only after a second child has ended on the file as well. A saved file that takes long is set aside,
so that others need not wait for it, and a task of its own prepares it.
"""

import logging
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import anyio
import anyio.to_thread

from vector_index_mcp.files import read
from vector_index_mcp.files.scan import Stamp
from vector_index_mcp.indexing.preparing.aside import Aside
from vector_index_mcp.indexing.preparing.child import CRASHED, HUNG, TOO_SLOW, Child, EndedError
from vector_index_mcp.indexing.preparing.file import (
    Prepared,
    Request,
    Task,
    given_up,
    prepare,
    put_off,
)
from vector_index_mcp.indexing.preparing.head_start import HeadStart
from vector_index_mcp.indexing.preparing.portions import FILES_PER_PORTION, large, portions
from vector_index_mcp.indexing.preparing.recipe import Recipe
from vector_index_mcp.indexing.reasons import NO_PROCESS, was_slow
from vector_index_mcp.processes.detached import Detached, NoThreadError

_log = logging.getLogger(__name__)

_MOST_CHILDREN = 8  # on a large machine, the other processors are left to the user
# A child takes 0.13 s to start; in that time another one prepares 50 files.
_FILES_WORTH_CHILDREN = 100
_FILES_WORTH_STARTED_ONES = 24
# Limits of processor time for a small file, in bulk and after a save. An ordinary file takes some
# milliseconds, and five times as long on a slow machine.
_SECONDS = 2.0
_PROMPT_SECONDS = 0.4
# Limits by the clock, for any file: a last resort against parsers that wait forever.
_PATIENCE_SECONDS = 60.0
_PROMPT_PATIENCE_SECONDS = 5.0
_MOST_THREADS = 40

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Manner:
    """How files are prepared."""

    promptly: bool = False
    """Whether those that take long are left."""
    polite: bool = False
    """Whether everything else comes first."""
    by_lines: str = ""
    """Why they are not parsed; empty if they are."""


class Crew:
    """The children that prepare the files of one index."""

    def __init__(self, recipe: Recipe, head_start: HeadStart | None = None) -> None:
        """Make a crew without children; these start when there is work.

        Args:
            recipe: Turns a text into chunks.
            head_start: Has begun to prepare the first files, by the same recipe.
        """
        self.recipe = recipe
        self._head_start = head_start
        self._started_early: dict[str, Prepared] = {}
        self._bulk: list[Child] = []  # idle children for bulk work
        self._warm: Child | None = None  # the idle child for saved files
        self._aside = Aside()
        self._threads = Detached(_MOST_THREADS, "crew")  # for what uses a drive, which may hang

    async def start(self) -> None:
        """Start all children for bulk work now, because many files will come."""
        try:
            while len(self._bulk) < _processors():
                self._bulk.append(await Child.start(polite=True))
        except OSError as error:  # starting is tried again when the children are needed
            _log.warning("a process that prepares files cannot be started: %s", error)

    async def warm_up(self) -> None:
        """Start the child for saved files, because some will soon come. Returns at once."""
        if self._warm is None and not self._bulk:
            try:
                await self._rest_warm(await Child.start(polite=False))
            except OSError as error:
                _log.warning("a process that prepares files cannot be started: %s", error)

    async def prepare(self, tasks: Sequence[Task], seconds: float = math.inf) -> list[Prepared]:
        """Prepare files; returns the results in any order. No file makes it raise.

        Args:
            tasks: The files.
            seconds: After this time no further portion is begun; the results of its files are
                missing then. If there is a limit, so are those of large files beside small ones,
                which need not wait for them.
        """
        done, left = await self._done_before(tasks)
        deadline = anyio.current_time() + seconds
        is_limited = math.isfinite(seconds)
        apart = await self._in_thread(partial(large, left)) if is_limited else set()
        small = [task for task in left if task.key not in apart]
        if apart and not small:
            waiting = [[task] for task in left]
        else:
            is_much = self._needs_crew(small)
            most = FILES_PER_PORTION if is_much else len(small)
            waiting = await self._in_thread(partial(portions, small, most))
            if not is_much:
                done += await self._work_off(waiting, deadline)
                return done

        async def work_off() -> None:
            done.extend(await self._work_off(waiting, deadline, polite=True))

        async with anyio.create_task_group() as group:
            for _ in range(min(_processors(), len(waiting))):
                group.start_soon(work_off)
        return done

    async def prepare_promptly(self, tasks: Sequence[Task]) -> list[Prepared]:
        """Like `prepare`, but sets files aside that take long, or took long the last time.

        `finish_late_forever` reports when to ask for them again.
        """
        done, left = await self._done_before(tasks)
        if self._needs_crew(left):
            return self._no_longer_late(done + await self.prepare(left))
        slow = [task for task in left if task.known and was_slow(task.known)]
        await self._set_aside(slow)
        left = [task for task in left if task not in slow]
        while left:
            answers, reason = await self._ask(left, _Manner(promptly=True))
            done += answers
            left = left[len(answers) :]
            if not reason:
                continue
            if reason in {TOO_SLOW, HUNG}:
                await self._set_aside(left[:1])
            else:
                done.append(await self.by_lines(left[0], reason))
            left = left[1:]
        return self._no_longer_late(done)

    @property
    def late_count(self) -> int:
        """How many files are set aside."""
        return self._aside.waiting_count

    def take_aside(self) -> list[str]:
        """The files that were set aside and not asked for since. None is any more."""
        return self._aside.take_all()

    async def finish_late_forever(self, report: Callable[[list[str]], None]) -> None:
        """Prepare the files that are set aside, until cancelled.

        Args:
            report: Called with the key of each file as soon as it is prepared. The next call of
                `prepare` or `prepare_promptly` returns the result at once, unless the file has
                changed since.
        """
        while True:
            late = await self._aside.next()
            [prepared] = await self._work_off([[late.task]], math.inf, polite=True)
            self._aside.note(late, prepared)
            report([late.task.key])

    async def rest(self) -> None:
        """End the children for bulk work, because there is none."""
        self._started_early = {}
        if self._head_start is not None:
            await anyio.to_thread.run_sync(self._head_start.end)
            self._head_start = None
        while self._bulk:
            await self._bulk.pop().end()

    async def end(self) -> None:
        """End all idle children."""
        await self.rest()
        self._aside.forget_prepared()
        if self._warm is not None:
            child, self._warm = self._warm, None
            await child.end()

    async def _done_before(self, tasks: Sequence[Task]) -> tuple[list[Prepared], list[Task]]:
        """The results that are ready, of files that have not changed since; and the other tasks."""
        if not (self._head_start or self._started_early or self._aside.has_prepared):
            return [], list(tasks)
        done = await self._in_thread(partial(self._take_done, tasks))
        finished = {each.key for each in done}
        return done, [task for task in tasks if task.key not in finished]

    def _take_done(self, tasks: Sequence[Task]) -> list[Prepared]:
        if self._head_start is not None:
            self._started_early = {each.key: each for each in self._head_start.take()}
            self._head_start = None
            _log.info("%d files had a head start", len(self._started_early))
        done = []
        for task in tasks:
            # The head start did not know the index, so its results are those of new files.
            each = self._started_early.pop(task.key, None) if task.known is None else None
            stamps = set[Stamp]()
            if (found := self._aside.take(task)) is not None:
                late, each = found
                # A record for which the next scan tries again does not have the file's own stamp.
                stamps.add(late.stamp)
            if each is None or each.record is None:
                continue
            stamps.add(each.record.stamp)
            if read.stamp_now(task.folder, task.key) in stamps:
                done.append(each)
        return done

    async def _in_thread(self, do: Callable[[], T]) -> T:
        """Call `do` in a thread, which is left alone if this call is cancelled."""
        try:
            return await self._threads.run(lambda _: do(), math.inf)
        except NoThreadError:  # a drive that hangs is less likely then
            return do()

    def _needs_crew(self, tasks: Sequence[Task]) -> bool:
        enough = _FILES_WORTH_STARTED_ONES if self._bulk else _FILES_WORTH_CHILDREN
        return len(tasks) >= enough

    def _no_longer_late(self, done: list[Prepared]) -> list[Prepared]:
        self._aside.drop(each.key for each in done)
        return done

    async def _set_aside(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            stamp = await self._in_thread(partial(read.stamp_now, task.folder, task.key))
            self._aside.put(task, stamp)

    async def _work_off(
        self, waiting: list[list[Task]], deadline: float, *, polite: bool = False
    ) -> list[Prepared]:
        """Take portions of files off `waiting`, which other tasks share, and prepare them."""
        done: list[Prepared] = []
        while waiting and (not done or anyio.current_time() < deadline):
            tasks = waiting.pop()
            answers, reason = await self._ask(tasks, _Manner(polite=polite))
            done += answers
            left = tasks[len(answers) :]
            if reason:
                culprit, *left = left
                done.append(await self.by_lines(culprit, reason, polite=polite))
            if left:
                waiting.append(left)
        return done

    async def by_lines(self, task: Task, reason: str, *, polite: bool = False) -> Prepared:
        """Prepare a file that cannot be parsed for this reason: cut it by its lines.

        A document of another format is given up, since it would be converted once more.
        """
        if read.is_converted(task.folder, task.key):
            _log.error("%r cannot be converted: %s", task.key, reason)
            return await self._in_thread(partial(given_up, task, reason))
        _log.warning("%r is cut by its lines: %s", task.key, reason)
        answers, still = await self._ask([task], _Manner(polite=polite, by_lines=reason))
        if still:
            _log.error("%r cannot be prepared: %s", task.key, still)
            return await self._in_thread(partial(given_up, task, still))
        return answers[0]

    async def _ask(self, tasks: Sequence[Task], manner: _Manner) -> tuple[list[Prepared], str]:
        """Ask children to prepare files; a file on which one has crashed is tried once more.

        A child that was killed says nothing about its file, since the system may have needed
        memory: a new child tries that file again, alone.

        Returns:
            The results of the first files, at least one if there is no reason; and the reason why
            the next file cannot be prepared, or nothing.
        """
        answers, reason = await self._ask_once(tasks, manner)
        if reason != CRASHED:
            return answers, reason
        suspect = tasks[len(answers)]
        _log.info("%r is tried again: %s", suspect.key, reason)
        again, reason = await self._ask_once([suspect], manner, is_new=True)
        return answers + again, reason

    async def _ask_once(
        self, tasks: Sequence[Task], manner: _Manner, *, is_new: bool = False
    ) -> tuple[list[Prepared], str]:
        """Ask a child to prepare files.

        Returns:
            The results of the first files, and the reason why the child ended on the next one;
            empty if it did not end.
        """
        seconds, patience = _SECONDS, _PATIENCE_SECONDS
        if manner.promptly:
            seconds, patience = _PROMPT_SECONDS, _PROMPT_PATIENCE_SECONDS
        request = Request(self.recipe, tuple(tasks), seconds, manner.by_lines)
        answers: list[Prepared] = []
        child: Child | None = None
        try:
            child = await self._take(polite=manner.polite, is_new=is_new)
            async for answer in child.ask(request, patience):
                answers.append(answer)
        except EndedError as error:
            await self._replace(child)
            has_done_all = len(answers) == len(tasks)  # then no file can be the reason
            return answers, "" if has_done_all else str(error)
        except OSError as error:  # no memory, no descriptors, no such program any more
            await _end(child)
            _log.warning("a process that prepares files cannot be started: %s", error)
            return await self._in_thread(partial(self._here, tasks)), ""
        except anyio.get_cancelled_exc_class():  # else the next request would get these answers
            await _end(child)
            raise
        if child.has_grown:
            await self._replace(child)
        elif child.is_polite:
            self._bulk.append(child)
        else:
            await self._rest_warm(child)
        return answers, ""

    async def _rest_warm(self, child: Child) -> None:
        """Keep an idle child for saved files; end it if there is one by now."""
        if self._warm is None:
            self._warm = child
        else:
            await child.end()

    async def _take(self, *, polite: bool, is_new: bool) -> Child:
        if is_new:
            return await Child.start(polite=polite)
        if self._warm is not None and not polite:
            child, self._warm = self._warm, None
            return child
        return self._bulk.pop() if self._bulk else await Child.start(polite=polite)

    async def _replace(self, child: Child | None) -> None:
        """End a child; if it was the warm one, start another for the next saved file."""
        await _end(child)
        if child is not None and not child.is_polite:
            await self.warm_up()

    def _here(self, tasks: Sequence[Task]) -> list[Prepared]:
        """Prepare files in this process, without parsing them: cut them by their lines.

        Those that would have to be converted, or for which there is too little memory, stay as they
        were indexed, or fail, until the next scan has them tried again.
        """
        return [self._here_safely(task) for task in tasks]

    def _here_safely(self, task: Task) -> Prepared:
        if read.is_converted(task.folder, task.key):  # that may take minutes, or crash
            return put_off(task, NO_PROCESS)
        try:
            return prepare(self.recipe, task, NO_PROCESS)
        except MemoryError:
            return put_off(task, "there is too little memory")


async def _end(child: Child | None) -> None:
    if child is not None:
        await child.end()


def _processors() -> int:
    """How many processors this process may use."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(_MOST_CHILDREN, usable)

"""Prepares files: a few in a thread, many in one child process per processor.

Children, because cutting is Python's work and threads share one interpreter; because parsers then
take no memory from a service that idles; and because a parser that crashes or hangs on a file
takes its child along and not the service. They are started when there is much to do and end when it
is done.
"""

import logging
import os
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.codebase.prefetch import Prefetch
from vector_index_mcp.codebase.prepare import Prepared, Recipe, Task, given_up, prepare
from vector_index_mcp.codebase.preparer import LENGTH_BYTES
from vector_index_mcp.engine import children
from vector_index_mcp.engine.portions import portions
from vector_index_mcp.files import read

_log = logging.getLogger(__name__)

_MOST_CHILDREN = 8  # on a large machine, the rest is the user's
# A child takes 0.13 s to start, in which a thread prepares 50 files.
_FILES_WORTH_CHILDREN = 100
_FILES_WORTH_STARTED_ONES = 24
_FILES_PER_PORTION = 12  # some 30 ms of work, so that all children finish together
_PATIENCE_SECONDS = 60.0  # for one portion; parsing is limited to a second per file
_COMMAND = children.command("vector_index_mcp.codebase.preparer")
_CRASHED = "its parser crashed or hung, see the log"
_GONE_WRONG = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
    TimeoutError,
    pickle.UnpicklingError,
)


class Preparers:
    """All preparing of one project."""

    def __init__(self, root: Path, recipe: Recipe, prefetch: Prefetch | None = None) -> None:
        """Prepare to prepare.

        Args:
            root: The project.
            recipe: What turns a file into chunks.
            prefetch: Has begun with the first files, by the same recipe.
        """
        self.root = root
        self._recipe = recipe
        self._prefetch = prefetch
        self._prefetched: dict[str, Prepared] = {}
        self._idle: list[anyio.abc.Process] = []

    async def start(self) -> None:
        """Start the children now, because there will be much to do."""
        try:
            while len(self._idle) < _processors():
                self._idle.append(await self._start())
        except OSError as error:  # it is tried again when they are needed
            _log.warning("no process to prepare files in: %s", error)

    async def prepare(self, tasks: Sequence[Task]) -> list[Prepared]:
        """What becomes of the files of `tasks`, in any order. Never raises for a file."""
        if self._prefetch is None and not self._prefetched:
            return await self._prepare(tasks)
        done = await anyio.to_thread.run_sync(self._done_before, tasks)
        finished = {each.key for each in done}
        left = [task for task in tasks if task[0] not in finished]
        return done + await self._prepare(left) if left else done

    def _done_before(self, tasks: Sequence[Task]) -> list[Prepared]:
        """What was prepared before anybody asked, of files that have not changed since."""
        if self._prefetch is not None:
            self._prefetched = {each.key: each for each in self._prefetch.take()}
            self._prefetch = None
            _log.info("%d files were prefetched", len(self._prefetched))
        asked = (self._prefetched.pop(key, None) for key, known in tasks if known is None)
        return [
            each
            for each in asked
            if each is not None
            and each.record is not None
            and each.record.stamp == read.stamp_now(self.root, each.key)
        ]

    async def _prepare(self, tasks: Sequence[Task]) -> list[Prepared]:
        enough = _FILES_WORTH_STARTED_ONES if self._idle else _FILES_WORTH_CHILDREN
        if len(tasks) < enough:
            return await self._in_thread(tasks)
        done: list[Prepared] = []
        waiting = list(portions(tasks, _FILES_PER_PORTION))

        async def work_off() -> None:
            while waiting:
                done.extend(await self._in_child(waiting.pop()))

        async with anyio.create_task_group() as group:
            for _ in range(min(_processors(), len(waiting))):
                group.start_soon(work_off)
        return done

    async def rest(self) -> None:
        """Let the children end that have nothing to do."""
        self._prefetched = {}
        if self._prefetch is not None:
            await anyio.to_thread.run_sync(self._prefetch.end)
            self._prefetch = None
        while self._idle:
            await self._end(self._idle.pop())

    async def _in_thread(self, tasks: Sequence[Task]) -> list[Prepared]:
        """Like `prepare`; files on which the thread hangs are left to children, which can end."""
        with anyio.move_on_after(_PATIENCE_SECONDS):
            return await anyio.to_thread.run_sync(
                prepare, self.root, self._recipe, tasks, abandon_on_cancel=True
            )
        _log.error("the reading of %d files hangs", len(tasks))
        return await self._in_child(tasks)

    async def _in_child(self, tasks: Sequence[Task]) -> list[Prepared]:
        """Like `prepare`; files on which children die are tried one by one, each in its own."""
        try:
            child = self._idle.pop() if self._idle else await self._start()
        except OSError as error:  # no memory, no descriptors
            _log.warning("no process to prepare files in: %s", error)
            return await self._in_thread(tasks)
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                answer: list[Prepared] = await _ask(child, (self.root, self._recipe, tasks))
        except _GONE_WRONG as error:
            await self._end(child)
            if len(tasks) > 1:
                return [each for task in tasks for each in await self._in_child([task])]
            _log.error("the process that prepared %r came to nothing: %r", tasks[0][0], error)
            return [given_up(self.root, tasks[0], _CRASHED)]
        except anyio.get_cancelled_exc_class():  # the next question would get this one's answer
            await self._end(child)
            raise
        self._idle.append(child)
        return answer

    @staticmethod
    async def _start() -> anyio.abc.Process:
        with anyio.CancelScope(shield=True):  # cut off, it would leave a process that nobody ends
            child = await anyio.open_process(_COMMAND, **children.APART)
        return child

    @staticmethod
    async def _end(child: anyio.abc.Process) -> None:
        with anyio.CancelScope(shield=True):
            if child.returncode is None:
                child.kill()
            await child.aclose()


async def _ask(child: anyio.abc.Process, question: tuple[Path, Recipe, Sequence[Task]]) -> Any:
    assert child.stdin is not None
    assert child.stdout is not None
    await child.stdin.send(pickle.dumps(question))
    answers = BufferedByteReceiveStream(child.stdout)
    size = int.from_bytes(await answers.receive_exactly(LENGTH_BYTES))
    return pickle.loads(await answers.receive_exactly(size))


def _processors() -> int:
    """How many processors this process may use."""
    usable = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return min(_MOST_CHILDREN, usable)

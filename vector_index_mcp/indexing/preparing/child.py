"""One child process that prepares files, as its parent sees it: started, asked, ended."""

import logging
import pickle
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
import psutil
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.indexing.preparing.child_main import LENGTH_BYTES, OUT_OF_MEMORY, POLITE
from vector_index_mcp.indexing.preparing.file import Prepared, Question
from vector_index_mcp.processes import children, confined

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0  # for a child to begin; it takes 0.13
_LOOK_SECONDS = 1.0  # between two looks at the memory of one that is at work on one file
_MOST_BYTES = 1_500_000_000  # more than the system lets it have where it can
_GROWN_BYTES = 160_000_000  # of one at rest: it starts with 25 MB, and some grammars leak
_END_SECONDS = 2.0  # for a killed process to end; one that waits for a dead disk does not
_COMMAND = children.command("vector_index_mcp.indexing.preparing.child_main")
_GONE_WRONG = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
    pickle.UnpicklingError,
)

TOO_SLOW = "its parser took too long"
TOO_LARGE = "its parser took too much memory"
CRASHED = "its parser crashed, or ran out of memory"
HUNG = "its parser hung"
_WORDS = {OUT_OF_MEMORY: TOO_LARGE, -(confined.OUT_OF_TIME or 0): TOO_SLOW}
"""By exit status."""


class EndedError(Exception):
    """The child has come to an end on a file, or had to be ended; says in words what it did."""


@dataclass(eq=False, slots=True)
class Child:
    """A child, and whether it is worth another question."""

    process: anyio.abc.Process
    answers: BufferedByteReceiveStream
    is_polite: bool
    """Whether it lets everything else come first."""
    has_begun: bool = False
    has_grown: bool = False

    @classmethod
    async def start(cls, *, polite: bool) -> "Child":
        """Start one.

        Raises:
            OSError: If there can be no process.
        """
        command = [*_COMMAND, POLITE] if polite else _COMMAND
        with anyio.CancelScope(shield=True):  # cut off, it would leave a process that nobody ends
            process = await anyio.open_process(command, **children.APART)
        assert process.stdout is not None
        return cls(process, BufferedByteReceiveStream(process.stdout), polite)

    async def ask(self, question: Question, patience: float) -> AsyncIterator[Prepared]:
        """What becomes of the files of `question`, in order, each as soon as it is known.

        Args:
            question: The files.
            patience: How many seconds each may take by the clock. The system limits processor time
                and memory, so this is for what waits for ever, and for systems that limit less.

        Raises:
            EndedError: If it ends on the file that would be next.
            OSError: If it ends before it has begun, so that no file can be the reason.
        """
        assert self.process.stdin is not None
        try:
            await self.process.stdin.send(pickle.dumps(question))
            if not self.has_begun:
                self.has_begun = await self._answer(_START_SECONDS)
            for _ in question.tasks:
                yield await self._answer(patience)
            self.has_grown = await self._answer(patience) > _GROWN_BYTES
        except (*_GONE_WRONG, EndedError) as error:
            if not self.has_begun:
                raise OSError("a child did not begin to work") from error
            words = str(error) if isinstance(error, EndedError) else await self._last_words()
            raise EndedError(words) from error

    async def _answer(self, patience: float) -> Any:
        size = int.from_bytes(await self._receive(LENGTH_BYTES, patience))
        return pickle.loads(await self._receive(size, patience))

    async def _receive(self, count: int, patience: float) -> bytes:
        """That many bytes, if they come in time and the child stays small meanwhile."""
        deadline = anyio.current_time() + patience
        while True:
            with anyio.move_on_after(_LOOK_SECONDS):
                return await self.answers.receive_exactly(count)
            if _memory_of(self.process.pid) > _MOST_BYTES:
                raise EndedError(TOO_LARGE)
            if anyio.current_time() > deadline:
                raise EndedError(HUNG)

    async def _last_words(self) -> str:
        """What its exit status says, once it has one."""
        with anyio.move_on_after(_END_SECONDS):
            status = await self.process.wait()
            return _WORDS.get(status, CRASHED)
        return CRASHED

    async def end(self) -> None:
        """End it, whatever it does."""
        with anyio.CancelScope(shield=True):
            if self.process.returncode is None:
                self.process.kill()
            with anyio.move_on_after(_END_SECONDS):
                await self.process.wait()
                await self.process.aclose()
                return
        _log.warning("a child that prepares files cannot be ended: process %d", self.process.pid)


def _memory_of(pid: int) -> int:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:  # it has just ended
        return 0

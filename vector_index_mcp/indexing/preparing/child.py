"""A child process that prepares files, as its parent sees it: starts, asks and ends it."""

import logging
import pickle
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp import __version__
from vector_index_mcp.indexing.preparing.child_main import (
    FOREIGN,
    LENGTH_BYTES,
    OUT_OF_MEMORY,
    POLITE,
)
from vector_index_mcp.indexing.preparing.file import Prepared, Request
from vector_index_mcp.processes import children, confined, memory
from vector_index_mcp.processes.stopping import looks

_log = logging.getLogger(__name__)

_START_SECONDS = 30.0  # for a child to start, which usually takes 0.13 s
_LOOK_SECONDS = 1.0  # between two checks of the memory of a child that works on one file
_MOST_BYTES = 1_500_000_000  # higher than the system's own limit, where that can be set
_GROWN_BYTES = 160_000_000  # of an idle child: it starts with 25 MB, and some grammars leak
_END_SECONDS = 2.0  # for a killed process to end; it does not while it waits for a dead disk
_COMMAND = children.command("vector_index_mcp.indexing.preparing.child_main")
_GONE_WRONG = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    OSError,
    pickle.UnpicklingError,
)

_OF_ANOTHER_VERSION = "a child is of another version of this program"
TOO_SLOW = "its parser took too long"
TOO_LARGE = "its parser took too much memory"
CRASHED = "its parser crashed, or ran out of memory"
HUNG = "its parser hung"
_WORDS = {OUT_OF_MEMORY: TOO_LARGE, -(confined.OUT_OF_TIME or 0): TOO_SLOW}
"""The reason, by the child's exit status."""


class EndedError(Exception):
    """Raised when the child ended on a file, or had to be ended; the message is the reason."""


class _ForeignError(Exception):
    """Raised when one side cannot read the other, because the package has changed on disk."""


@dataclass(eq=False, slots=True)
class Child:
    """A child process."""

    process: anyio.abc.Process
    answers: BufferedByteReceiveStream
    is_polite: bool
    """Whether it runs with low priority."""
    has_begun: bool = False
    """Whether it has reported that it is ready."""
    has_grown: bool = False
    """Whether it holds so much memory that it should be replaced."""

    @classmethod
    async def start(cls, *, polite: bool) -> "Child":
        """Start a child.

        Raises:
            OSError: If the system cannot start a process.
        """
        command = [*_COMMAND, POLITE] if polite else _COMMAND
        process = await children.started(command)
        assert process.stdout is not None
        return cls(process, BufferedByteReceiveStream(process.stdout), polite)

    async def ask(self, request: Request, patience: float) -> AsyncIterator[Prepared]:
        """Yield the result of each file of `request`, in order, as soon as it is ready.

        Args:
            request: The files.
            patience: How many seconds each file may take by the clock. The system also limits
                processor time and memory; this stops a parser that waits forever, and helps on
                systems with fewer limits.

        Raises:
            EndedError: If the child ends on the file that would be next.
            OSError: If the child ends before it is ready, or its answers are those of another
                version of the package, so that no file can be the reason.
        """
        assert self.process.stdin is not None
        try:
            await self.process.stdin.send(pickle.dumps(request))
            if not self.has_begun:
                if await self._answer(_START_SECONDS) != __version__:
                    raise _ForeignError
                self.has_begun = True
            for _ in request.tasks:
                yield await self._answer(patience)
            self.has_grown = await self._answer(patience) > _GROWN_BYTES
        except _ForeignError as error:
            raise OSError(_OF_ANOTHER_VERSION) from error
        except (*_GONE_WRONG, EndedError) as error:
            if not self.has_begun:
                raise OSError("a child did not begin to work") from error
            if isinstance(error, EndedError):
                raise
            raise await self._end_of() from error

    async def _answer(self, patience: float) -> Any:
        size = int.from_bytes(await self._receive(LENGTH_BYTES, patience))
        data = await self._receive(size, patience)
        try:
            return pickle.loads(data)
        except children.UNREADABLE as error:
            raise _ForeignError from error

    async def _receive(self, count: int, patience: float) -> bytes:
        """Receive `count` bytes.

        Raises:
            EndedError: If the time is up, or the child takes too much memory meanwhile.
        """
        for moment in looks(patience, _LOOK_SECONDS):
            with anyio.move_on_after(moment):
                return await self.answers.receive_exactly(count)
            if memory.held_by(self.process.pid) > _MOST_BYTES:
                raise EndedError(TOO_LARGE)
        raise EndedError(HUNG)

    async def _end_of(self) -> EndedError | OSError:
        """Wait for the child's end, and return the error that its exit status means."""
        status = await self._ended()
        if status == FOREIGN:
            return OSError(_OF_ANOTHER_VERSION)
        return EndedError(CRASHED if status is None else _WORDS.get(status, CRASHED))

    async def _ended(self) -> int | None:
        """Wait until the child has ended, but not long; its exit status, or None if it has not."""
        for moment in looks(_END_SECONDS, _LOOK_SECONDS):
            with anyio.move_on_after(moment):
                return await self.process.wait()
        return None

    async def end(self) -> None:
        """Kill the child and wait until it has ended, but not long."""
        with anyio.CancelScope(shield=True):
            if self.process.returncode is None:
                self.process.kill()
            if await self._ended() is not None:
                await self.process.aclose()
                return
            for stream in (self.process.stdin, self.process.stdout):
                if stream is not None:
                    await stream.aclose()
        _log.warning("a child that prepares files cannot be ended: process %d", self.process.pid)

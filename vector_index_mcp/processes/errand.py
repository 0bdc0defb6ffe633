"""A child process that is asked one thing, and ended if it does not answer in time.

For what may crash, hang or take all memory, such as a library that reads foreign files.
"""

import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from vector_index_mcp.processes import children

if TYPE_CHECKING:
    import anyio.abc

_LONGEST_ANSWER_BYTES = 1_000_000
_ENDING_SECONDS = 1.0  # for a child that has closed its output


class ErrandError(Exception):
    """Raised where a child does not answer; says why."""


class Errand:
    """A child process that has been started."""

    def __init__(self, process: "anyio.abc.Process") -> None:
        self._process = process

    async def tell(self, question: dict[str, Any]) -> None:
        """Send a line of JSON, for a module that waits for one."""
        assert self._process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError):  # the answer says what is wrong
            await self._process.stdin.send(json.dumps(question).encode() + b"\n")

    async def answer(self, seconds: float) -> dict[str, Any]:
        """The line of JSON that the child writes.

        Raises:
            ErrandError: If it writes none within that time, or what makes no sense.
        """
        assert self._process.stdout is not None
        lines = BufferedByteReceiveStream(self._process.stdout)
        try:
            with anyio.fail_after(seconds):
                found = json.loads(await lines.receive_until(b"\n", _LONGEST_ANSWER_BYTES))
        except TimeoutError:
            raise ErrandError(f"it could not be read within {seconds:g} s") from None
        except (anyio.IncompleteRead, anyio.EndOfStream):
            status = await self._ended()
            raise ErrandError(
                f"the process that read it ended unexpectedly (status {status})"
            ) from None
        except (anyio.DelimiterNotFound, ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ErrandError("the process that read it says what makes no sense")
        return found

    async def _ended(self) -> int | None:
        """The status of a child that says nothing any more; one that lives on is killed."""
        for kill in (False, True):
            if kill:
                _end(self._process)
            with anyio.move_on_after(_ENDING_SECONDS):
                return await self._process.wait()
        return self._process.returncode


@asynccontextmanager
async def begun(module: str, *arguments: str) -> AsyncIterator[Errand]:
    """A child process that runs `module`, see `processes.child`; it is ended with the context.

    Raises:
        OSError: If the system gives us no process.
    """
    process = await children.start(module, *arguments, environment={})
    async with process:
        try:
            yield Errand(process)
        finally:
            _end(process)


def _end(process: "anyio.abc.Process") -> None:
    """Kill a child, if it is still there."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()

"""Runs a child process that answers one question, and ends it if it does not answer in time.

This is for work that may crash, hang or take all memory, such as a library that reads foreign
files.
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
    """A child has not answered; the message says why."""


class Errand:
    """A child process that has been started."""

    def __init__(self, process: "anyio.abc.Process") -> None:
        self._process = process

    async def tell(self, question: dict[str, Any]) -> None:
        """Send a line of JSON, for a module that waits for one."""
        assert self._process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError):  # `answer` then raises
            await self._process.stdin.send(json.dumps(question).encode() + b"\n")

    async def answer(self, seconds: float) -> dict[str, Any]:
        """Return the JSON object that the child writes, on one line.

        Raises:
            ErrandError: If it writes nothing within that time, or something else.
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
            raise ErrandError("the process that read it sent an answer that is not a JSON object")
        return found

    async def _ended(self) -> int | None:
        """Return the exit status of a child that has closed its output; kill it if it lives on."""
        for kill in (False, True):
            if kill:
                _end(self._process)
            with anyio.move_on_after(_ENDING_SECONDS):
                return await self._process.wait()
        return self._process.returncode


@asynccontextmanager
async def begun(module: str, *arguments: str) -> AsyncIterator[Errand]:
    """Start a child process that runs `module` (see `processes.child`); it ends with the context.

    Raises:
        OSError: If the system starts no process.
    """
    process = await children.start(module, *arguments, environment={})
    async with process:
        try:
            yield Errand(process)
        finally:
            _end(process)


def _end(process: "anyio.abc.Process") -> None:
    """Kill a child if it still runs."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()

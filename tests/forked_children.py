"""Child processes as forks of one that has imported what they need.

Each is a process of its own with its own streams and limits, which begins where `python -m` does.
Only the imports are there already, a tenth of a second of a processor for a child that prepares
files, and three for one that reads tables; tests start a thousand of them. Others start as ever.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

import anyio
import anyio.abc
import template
import templates

from vector_index_mcp.processes import children

_start = children.started
_PYTHON = children.command("")[:-1]
_CHILD = "vector_index_mcp.processes.child"
_PREPARING = "vector_index_mcp.indexing.preparing.child_main"
_READING_TABLES = (
    "vector_index_mcp.datasets.converting",
    "vector_index_mcp.datasets.proving",
    "vector_index_mcp.indexing.mirroring.proving",
)
PREPARING = (_PREPARING, "prepared_once")
"""What is imported for children that prepare files. They allow themselves little memory."""
_IMPORTED = {
    (_PREPARING,): PREPARING,
    **{(_CHILD, name): (_CHILD, *_READING_TABLES) for name in _READING_TABLES},
}
"""What is imported for a child, by the beginning of its command. None of these begins anything when
it is imported."""


class Fork(anyio.abc.AsyncResource):
    """A child, with what of `anyio.abc.Process` is needed of it."""

    def __init__(
        self, streams: tuple[anyio.abc.SocketStream, anyio.abc.SocketStream], report: socket.socket
    ) -> None:
        self.stdin, self.stdout = streams
        self._report = report
        weakref.finalize(self, report.close)  # nobody waits for a child that cannot be ended
        self.pid = template.reported(self._report)
        assert self.pid, "the process to be forked has ended"
        report.setblocking(False)
        self._status: int | None = None

    @property
    def returncode(self) -> int | None:
        if self._status is None:
            with suppress(BlockingIOError):
                self._status = template.reported(self._report)
        return self._status

    async def wait(self) -> int:
        while (status := self.returncode) is None:
            await anyio.wait_readable(self._report)
        return status

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    async def aclose(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.stdin.aclose()
            await self.stdout.aclose()
            await self.wait()
            self._report.close()


async def started(
    command: Sequence[str], env: Mapping[str, str] | None = None, **streams: int
) -> Fork | anyio.abc.Process:
    """As `children.started`."""
    python, rest = list(command[: len(_PYTHON)]), command[len(_PYTHON) :]
    imported = _IMPORTED.get(tuple(rest[:1])) or _IMPORTED.get(tuple(rest[:2]))
    folder = os.environ.get(template.VARIABLE)  # in a service that is a fork
    if imported is None or python != _PYTHON or (folder and imported != PREPARING):
        return await _start(command, env, **streams)
    module, *arguments = rest
    wanted = {
        "module": module,
        "arguments": arguments,
        "folder": sys.prefix,
        "variables": dict(os.environ if env is None else env),
    }
    pairs = [socket.socketpair() for _ in range(3)]
    (stdin, stdout, report), theirs = zip(*pairs, strict=True)
    its_stdin, its_stdout, its_report = theirs
    descriptors = [its_stdin.fileno(), its_stdout.fileno(), 2, its_report.fileno()]
    message = json.dumps(wanted).encode()
    if folder:
        template.ask(f"{folder}/{template.CHILDREN}", message, descriptors)
    else:
        _process, asked = _template(imported)
        socket.send_fds(asked, [message], descriptors)
    for each in theirs:
        each.close()
    with anyio.CancelScope(shield=True):  # else nobody would close them
        streams = [await anyio.abc.UNIXSocketStream.from_socket(each) for each in (stdin, stdout)]
    return Fork(tuple(streams), report)


@cache
def _template(imported: tuple[str, ...]) -> tuple[subprocess.Popen, socket.socket]:
    return templates.started(imported)

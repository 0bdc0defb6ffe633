"""One machine that keeps an index elsewhere: a process, which a test may stop and kill.

Prints a line for each state that it is in, builds anew at SIGUSR1, and ends when its standard input
does.
"""

import json
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from fakes import FakeEmbedder
from waiting import eventually

from vector_index_mcp.indexing import tries
from vector_index_mcp.indexing.opening import remote as remote_opening
from vector_index_mcp.indexing.place import Remote
from vector_index_mcp.objects import lease

SECONDS = 2.5
"""For which a test's machine holds a lease without renewing it."""


def expire_soon(patch=setattr):
    """Have the leases of this process expire soon, as those of a test's machine do."""
    patch(lease, "HOLD_SECONDS", SECONDS)
    patch(lease, "PATIENCE_SECONDS", 1.5 * SECONDS)
    patch(lease, "_RENEW_SECONDS", SECONDS / 4)
    patch(lease, "_RETRY_SECONDS", SECONDS / 10)
    patch(lease, "_REQUEST_SECONDS", SECONDS / 2)


def hurry(patch=setattr):
    """Have this process look often whether it may write."""
    patch(remote_opening, "_SECONDS_BETWEEN_LOOKS", 0.1)
    patch(tries, "_PAUSE_SECONDS", 0.2)


class Machine:
    """Such a process, as a test sees it."""

    def __init__(self, process):
        self.process = process
        self.now = {}
        """What it said last."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            self.now = json.loads(line)

    def send(self, number):
        self.process.send_signal(number)

    async def says(self, **wanted):
        """Wait until it is so."""
        await eventually(lambda: self.now.items() >= wanted.items())
        return self.now

    async def end(self):
        """Have it let go, as at the end of a service."""
        self.process.stdin.close()
        await anyio.to_thread.run_sync(self.process.wait)


@contextmanager
def machine(root, uri, owner, environment):
    """A process that keeps the index of `root`."""
    command = [sys.executable, __file__, str(root), uri, owner]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        try:
            yield Machine(process)
        finally:
            process.kill()


async def _keep(root, uri, owner):
    from serving import codebase_of

    codebase = codebase_of(root, FakeEmbedder(), uri=uri, remote=Remote(owner=owner))
    before = None
    async with codebase.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(_rebuild_when_told, codebase)
        while True:
            index = codebase.index
            progress = index.progress
            now = {
                "is_writer": progress.is_writer,
                "is_settled": progress.is_writer
                and not progress.is_busy
                and 0 < progress.chunks == progress.embedded,
                "state": progress.state,
                "error": progress.error,
                "chunks": progress.chunks,
            }
            if now != before:
                sys.stdout.write(f"{json.dumps(now)}\n")
                sys.stdout.flush()
                before = now
            await anyio.sleep(0.02)


async def _rebuild_when_told(codebase):
    with anyio.open_signal_receiver(signal.SIGUSR1) as signals:
        async for _ in signals:
            await codebase.index.trigger(force_reindex=True)


async def _keep_until_end(root, uri, owner):
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_keep, root, uri, owner)
        await anyio.to_thread.run_sync(sys.stdin.read)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    hurry()
    expire_soon()
    anyio.run(_keep_until_end, Path(sys.argv[1]), *sys.argv[2:])

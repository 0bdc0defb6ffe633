"""The workers of the host: starts them, and ends those that are not worth their memory."""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import anyio
import anyio.abc

from vector_index_mcp.engine.models.worker_process import (
    WORKER_ENVIRONMENT,
    WORKER_MODULE,
    StartWorker,
)
from vector_index_mcp.processes import memory
from vector_index_mcp.sharing.frames import Wanted
from vector_index_mcp.sharing.guest import Guest
from vector_index_mcp.sharing.shared import Shared

_log = logging.getLogger(__name__)

_MOST_LOADED = 2
_NEEDED_BYTES = 1_200_000_000  # the most memory of a worker with the default model
# Users pause for about so long while they work. A worker ended in such a pause would soon have to
# be loaded again.
_PAUSE_SECONDS = 10.0
_LOOK_SECONDS = 1.0


def superfluous(
    loaded: Sequence[Shared], now: float, available_bytes: int, *, for_another: bool
) -> list[Shared]:
    """The workers that have to end. This is the whole rule about their memory.

    A worker without guests ends after the time that its guests have asked for. At most two workers
    stay; if another one is about to start, it counts, and if there is too little memory for it, at
    least one ends. Those unused for longest end first. A worker that is at work never ends, so
    there may be more while all are.

    Args:
        loaded: All workers.
        now: The current time of `time.monotonic`.
        available_bytes: The available memory of the system.
        for_another: Whether another worker is about to be started.
    """
    over = [w for w in loaded if not w.guests and now - w.last_use >= w.idle_seconds]
    rest = [w for w in loaded if w not in over]
    surplus = max(0, len(rest) + for_another - _MOST_LOADED)
    if for_another and available_bytes < _NEEDED_BYTES:
        surplus = max(surplus, 1)
    resting = [w for w in rest if not w.is_busy and now - w.last_use >= _PAUSE_SECONDS]
    return over + sorted(resting, key=lambda w: w.last_use)[:surplus]


class Workers:
    """The workers that guests need. Use it only while `run` runs."""

    def __init__(self, start_worker: StartWorker) -> None:
        """Prepare.

        Args:
            start_worker: Starts a process, such as `processes.children.start`.
        """
        self._start_worker = start_worker
        self._loaded: dict[Wanted, Shared] = {}
        self._starting = anyio.Lock()
        self._tasks: anyio.abc.TaskGroup | None = None

    @property
    def loaded(self) -> list[Shared]:
        """All workers."""
        return [*self._loaded.values()]

    async def run(self) -> None:
        """Manage the workers until cancelled; then they end."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            while True:
                await anyio.sleep(_LOOK_SECONDS)
                self._make_room(for_another=False)

    def _make_room(self, *, for_another: bool) -> None:
        available = memory.available() if for_another else 0
        found = superfluous(self.loaded, time.monotonic(), available, for_another=for_another)
        for shared in found:
            _log.info("the worker %d ends, to give back its memory", shared.pid)
            shared.rest()

    @contextmanager
    def used(self, shared: Shared, guest: Guest, idle_seconds: float) -> Iterator[None]:
        """Let a guest use a worker while the context lasts."""
        shared.admit(guest, idle_seconds)
        try:
            yield
        finally:
            shared.leave(guest)

    async def found(self, wanted: Wanted) -> Shared:
        """The wanted worker; it is started if there is none.

        Raises:
            OSError: If the system cannot start a process.
        """
        async with self._starting:
            shared = self._loaded.get(wanted)
            if shared is not None and not shared.has_ended:
                return shared
            self._make_room(for_another=True)
            offline = {"HF_HUB_OFFLINE": "1"} if wanted.offline else {}
            process = await self._start_worker(
                WORKER_MODULE, *wanted.arguments, environment={**WORKER_ENVIRONMENT, **offline}
            )
            shared = self._loaded[wanted] = Shared(process)
            assert self._tasks is not None
            self._tasks.start_soon(self._look_after, wanted, shared)
            _log.info("the worker %d of %s starts", shared.pid, wanted.arguments[:1])
            return shared

    async def _look_after(self, wanted: Wanted, shared: Shared) -> None:
        try:
            await shared.run()
        finally:
            if self._loaded.get(wanted) is shared:
                del self._loaded[wanted]

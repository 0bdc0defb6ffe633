"""The tries to open an index that was lost, or that could not be opened."""

import anyio

from vector_index_mcp.errors import Problem, StoreError
from vector_index_mcp.indexing.signal import Signal

_PAUSE_SECONDS = 5.0
# After the first, second, ... bug of this program in a row: each try may read all files.
_FAULT_SECONDS = (5.0, 60.0, 600.0, 3_600.0)


class Tries:
    """One try after the other, with pauses after those that failed."""

    def __init__(self) -> None:
        """Set up; the first try has not begun."""
        self.is_under_way = False
        self.is_pausing = False
        """Whether the last try failed, and the next one has not begun."""
        self._ended = Signal()
        self._wanted = anyio.Event()
        self._faults, self._last_fault = 0, float("-inf")

    def begin(self) -> None:
        """Note that a try has begun."""
        self.is_under_way = True

    def end(self) -> None:
        """Note that it has ended, whether the index is open or not."""
        self.is_under_way = False
        self._ended.send()

    async def wait(self) -> None:
        """Wait until the try that is under way, or the next one, has ended."""
        await self._ended.wait()

    async def pause(self, seconds: float) -> None:
        """End a try, and wait that long before the next one, or until somebody hastens it."""
        self.is_pausing, self._wanted = True, anyio.Event()
        self.end()
        with anyio.move_on_after(seconds):
            await self._wanted.wait()
        self.is_pausing = False

    def hasten(self) -> None:
        """End a pause."""
        self._wanted.set()

    def seconds_after(self, error: StoreError) -> float:
        """Return how long to pause after a try, or after the work that followed, failed so."""
        if error.problem is not Problem.FAULT:
            return _PAUSE_SECONDS
        now = anyio.current_time()
        is_new = now - self._last_fault > _FAULT_SECONDS[-1] * 2
        self._faults, self._last_fault = 0 if is_new else self._faults + 1, now
        return _FAULT_SECONDS[min(self._faults, len(_FAULT_SECONDS) - 1)]

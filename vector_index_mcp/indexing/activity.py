"""The steps that are under way and how long each has taken, so that a stall is noticed."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import anyio

_log = logging.getLogger(__name__)

# No step should take longer, except the maintenance of a very large index.
LONG_SECONDS = 30.0


@dataclass(slots=True, eq=False)
class _Step:
    what: str
    began: float
    is_logged: bool = False


@dataclass(slots=True)
class Activity:
    """The steps under way; each task has at most one at a time."""

    long_seconds: float = LONG_SECONDS
    _steps: list[_Step] = field(default_factory=list)

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Note a step for as long as the context lasts.

        Args:
            what: A noun phrase that reads well after "waiting for": "the commit of 3 files".
        """
        step = _Step(what, anyio.current_time())
        self._steps.append(step)
        try:
            yield
        finally:
            self._steps.remove(step)
            if step.is_logged:
                _log.info("%s is over", what)

    def stalls(self) -> list[str]:
        """The steps that take unusually long, oldest first, each with its time in seconds."""
        return [f"{step.what} for {seconds:.0f} s" for step, seconds in self._long()]

    async def log_stalls(self) -> None:
        """Log every step once that takes unusually long, until cancelled."""
        while True:
            await anyio.sleep(self.long_seconds / 2)
            for step, seconds in self._long():
                if not step.is_logged:
                    step.is_logged = True
                    _log.warning("%s has taken %.0f s so far", step.what, seconds)

    def _long(self) -> list[tuple[_Step, float]]:
        now = anyio.current_time()
        taken = [(step, now - step.began) for step in self._steps]
        return [(step, seconds) for step, seconds in taken if seconds >= self.long_seconds]

"""Decides when dirty paths are ready to be indexed. Pure: time is passed in.

A path is ready after `quiet` seconds without another change of it, and at the latest `longest`
seconds after its first one, so that a file that is written all the time is indexed as well. Ready
paths wait for others that change within `quiet` seconds, so that a save of many files is one batch,
but for no longer than that again: what changes all the time, like a log, must not hold up the rest.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(slots=True)
class _Dirty:
    first: float
    last: float


class Debouncer:
    """Dirty paths, which are taken in batches. Times are in seconds."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._quiet = quiet
        self._longest = longest
        self._paths: dict[str, _Dirty] = {}  # in the order of their first change
        # Kept up to date, since a search through the paths at each change would be slow.
        self._due = 0.0  # when a path may be ready; each new one moves it to now + quiet
        self._latest = 0.0  # `_due` is never moved beyond this

    def touch(self, paths: Iterable[str], now: float) -> None:
        """Note that `paths` changed."""
        for path in paths:
            if (known := self._paths.get(path)) is not None:
                known.last = now
                continue
            if not self._paths:
                self._latest = now + min(2 * self._quiet, self._longest)
            self._paths[path] = _Dirty(now, now)
            self._due = now + self._quiet

    def forget(self, paths: Iterable[str]) -> None:
        """Remove `paths` from the set."""
        if self._paths:
            for path in paths:
                self._paths.pop(path, None)

    @property
    def due(self) -> float | None:
        """When `take` is worth a call; None if there are no paths."""
        return min(self._due, self._latest) if self._paths else None

    def take(self, now: float) -> list[str]:
        """Remove the paths that are ready, and return them; nothing before `due`."""
        due = self.due
        if due is None or now < due:
            return []
        ready = [path for path, dirty in self._paths.items() if self._ready_at(dirty) <= now]
        self.forget(ready)
        if self._paths:
            self._due = min(map(self._ready_at, self._paths.values()))
            oldest = next(iter(self._paths.values()))
            self._latest = min(self._due + self._quiet, oldest.first + self._longest)
        return ready

    def _ready_at(self, dirty: _Dirty) -> float:
        return min(dirty.last + self._quiet, dirty.first + self._longest)

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __len__(self) -> int:
        return len(self._paths)

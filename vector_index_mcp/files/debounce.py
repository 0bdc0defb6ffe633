"""Decides when dirty paths are ready to be indexed. Pure: time is passed in.

Paths are ready after `quiet` seconds without another change of any path, so that a save of many
files is one batch. They are ready at the latest `longest` seconds after the first change, so that a
file that is written all the time is indexed as well.
"""

from collections.abc import Iterable, Iterator


class Debouncer:
    """A set of dirty paths that will become one batch. Times are in seconds."""

    def __init__(self, quiet: float, longest: float) -> None:
        self._quiet = quiet
        self._longest = longest
        self._paths: dict[str, None] = {}  # in the order of their first change
        self._first = 0.0
        self._last = 0.0

    def touch(self, paths: Iterable[str], now: float) -> None:
        """Note that `paths` changed."""
        changed = dict.fromkeys(paths)
        if not changed:
            return
        if not self._paths:
            self._first = now
        self._paths.update(changed)
        self._last = now

    def forget(self, paths: Iterable[str]) -> None:
        """Remove `paths` from the set."""
        if self._paths:
            for path in paths:
                self._paths.pop(path, None)

    @property
    def due(self) -> float | None:
        """The time at which the batch is ready; None if there are no paths."""
        if not self._paths:
            return None
        return min(self._last + self._quiet, self._first + self._longest)

    def take(self, now: float) -> list[str]:
        """Return the batch and clear the set, if it is ready; otherwise return nothing."""
        due = self.due
        if due is None or now < due:
            return []
        batch = list(self._paths)
        self._paths.clear()
        return batch

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def __len__(self) -> int:
        return len(self._paths)

"""A run: a scan of all folders and the indexing of all it finds. Progress is reported by run."""

import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import anyio

TRIES_OF_A_RUN = 4
"""How often a run tries to write the index. The last try is some 3.5 s after the first."""


class Kind(StrEnum):
    """Why a run was begun."""

    START = "start"  # nobody has watched before, or an empty index has replaced a damaged one
    RESCAN = "rescan"  # events may have been lost
    REQUEST = "request"  # somebody wants the index to be up to date
    REBUILD = "rebuild"  # all files are to be read again, into a new generation


@dataclass(slots=True)
class Outcome:
    """What became of the files of one or more batches."""

    read: int = 0
    indexed: int = 0
    unchanged: int = 0
    skipped: int = 0
    removed: int = 0
    chunks: int = 0
    failures: set[str] = field(default_factory=set)
    """The keys of the files that failed; one that is tried again counts once."""

    @property
    def failed(self) -> int:
        """How many files failed."""
        return len(self.failures)

    def add(self, other: "Outcome") -> None:
        """Count `other` in."""
        for name in {*Outcome.__slots__} - {"failures"}:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.failures = self.failures | other.failures


@dataclass(slots=True)
class Run:
    """One run: waiting for another one to end, under way, or finished."""

    kind: Kind
    number: int
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    files_seen: int = 0
    """Files that are not ignored; 0 until the folders are walked."""
    files_to_do: int = 0
    """Files that are new or have changed, plus vanished ones; each counts once."""
    files_done: int = 0
    outcome: Outcome = field(default_factory=Outcome)
    walks: int = 0
    """How many times the folders are walked, the one that is due included."""
    is_asked: bool = False
    """Whether somebody waits for it, so that what failed before is tried again."""
    is_rebuilt: bool = False
    """Whether the new generation of a rebuild is the current one, so that walks only compare."""
    error: str | None = None
    finished: anyio.Event = field(default_factory=anyio.Event)
    progressed: anyio.Event = field(default_factory=anyio.Event)
    seconds: float = 0.0
    """How long the run took; 0 while it is under way."""
    _clock: float = field(default_factory=time.monotonic)
    _expected: set[str] = field(default_factory=set)
    _done: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Start the clock of the run now."""
        self.started, self._clock = datetime.now(UTC), time.monotonic()

    def advance(self, files: Collection[str], outcome: Outcome) -> None:
        """Note that more files are done; one that is read once more counts once."""
        new = set(files) - self._done
        self._done |= new
        self.files_done += len(new)
        self.files_to_do += len(new - self._expected)
        self.outcome.failures.difference_update(files)
        self.outcome.add(outcome)
        self.outcome.unchanged -= min(len(files) - len(new), outcome.unchanged)
        self._signal()

    def plan(self, seen: int, to_do: Iterable[str]) -> None:
        """Note that a walk has seen so many files, and which of them have to be done."""
        self.files_seen, self._expected = seen, set(to_do)
        self.files_to_do = len(self._done | self._expected)
        self._signal()

    def expect(self, files: Iterable[str]) -> None:
        """Note that more files have to be done, which the walk did not find."""
        new = set(files) - self._expected
        self._expected |= new
        self.files_to_do += len(new - self._done)
        self._signal()

    def finish(self, error: str | None = None) -> None:
        """End the run; with `error` if the index does not match the folders."""
        self.error = error
        self.seconds = self.elapsed
        self._expected, self._done = set(), set()  # of all files of a large project
        self.finished.set()
        self._signal()

    def continue_from(self, earlier: "Run") -> None:
        """Count in what an earlier run has done, for a caller to whom both are one."""
        self.outcome.add(earlier.outcome)
        # What was indexed just now may have been read once more.
        self.outcome.unchanged -= min(earlier.outcome.indexed, self.outcome.unchanged)

    @property
    def elapsed(self) -> float:
        """Seconds since the run began; for a finished run, how long it took."""
        return self.seconds or time.monotonic() - self._clock

    @property
    def ended(self) -> datetime | None:
        """When the run ended; None while it is under way."""
        if not self.finished.is_set():
            return None
        return self.started + timedelta(seconds=self.seconds)

    @property
    def seconds_left(self) -> float | None:
        """An estimate from the files done so far; None if no file is done, or the run has ended."""
        if not self.files_done or self.finished.is_set():
            return None
        return self.elapsed / self.files_done * max(0, self.files_to_do - self.files_done)

    def _signal(self) -> None:
        self.progressed.set()
        self.progressed = anyio.Event()

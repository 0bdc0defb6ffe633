"""Which run is under way, which comes next, and what that means for the service's state."""

from collections.abc import Callable
from itertools import count

from vector_index_mcp.indexing.run import Kind, Run
from vector_index_mcp.indexing.state import State, StateMachine


class Runs:
    """The runs of one index, one at a time."""

    def __init__(self, state: StateMachine, on_begin: Callable[[], None]) -> None:
        """Begin with none.

        Args:
            state: Follows the runs.
            on_begin: Called when there is something to do for a run.
        """
        self.current: Run | None = None
        self.last: Run | None = None
        self.is_walk_due = False
        """Whether the folders are to be walked for the current run."""
        self._state = state
        self._on_begin = on_begin
        self._next: Run | None = None  # a rebuild that waits for another run to end
        self._numbers = count(1)

    def begin(self, kind: Kind) -> Run:
        """Begin a run, or join the one under way; a rebuild waits until another one has ended.

        A request walks the folders again, unless for a rebuild: events may have been lost since.
        """
        current = self.current
        if current is None:
            return self._begin(Run(kind, next(self._numbers)))
        if current.kind is not Kind.REBUILD and kind is Kind.REQUEST:
            self.is_walk_due = True
            self._on_begin()
        if kind is not Kind.REBUILD or current.kind is Kind.REBUILD:
            return current
        if self._next is None:
            self._next = Run(kind, next(self._numbers))
        return self._next

    def begin_again(self) -> None:
        """Begin a run that fills an index which has just been made anew, or turn one into it."""
        run = self.begin(Kind.START)
        run.kind = Kind.START  # into the empty index itself: there is nothing to keep beside it
        self.is_walk_due = True
        self._on_begin()

    def _begin(self, run: Run) -> Run:
        run.begin()
        self.current = run
        self.is_walk_due = True
        if self._state.current is not State.SCANNING:
            self._state.enter(State.SCANNING)
        self._on_begin()
        return run

    def end(self, error: str | None = None) -> None:
        """End the current run, if there is one; with `error` if the index does not match."""
        if self.current is not None:
            self.current.finish(error)
            self.last, self.current = self.current, None
        if error is not None:
            self._state.enter(State.ERROR, error)
        elif self._state.current is not State.WATCHING:
            self._state.enter(State.WATCHING)
        if self._next is not None:
            run, self._next = self._next, None
            self._begin(run)

    def end_all(self, reason: str) -> None:
        """End whatever run somebody waits for: the index is kept no longer."""
        self._next = None
        self.end(reason)

"""The current run and the next one, and the service's state that follows from them."""

from collections.abc import Callable
from itertools import count

from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.writing.run import Kind, Run


class Runs:
    """The runs of one index, one at a time."""

    def __init__(self, state: StateMachine, on_begin: Callable[[], None]) -> None:
        """Start without any run.

        Args:
            state: Is changed as runs begin and end.
            on_begin: Called when there is work for a run.
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
        """Begin a run, or join the one under way; a rebuild waits until another run has ended.

        A request that joins a run walks the folders again, since events may have been lost after
        the first walk; except in a rebuild, which reads every file anyway.
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
        """Fill an index that was replaced by an empty one, in a new run or the one under way."""
        run = self.begin(Kind.START)
        run.kind = Kind.START  # no rebuild: the current generation is empty, so fill it directly
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
        """End the current run, if any; with `error` if the index does not match the disk."""
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
        """End the current run and the next one, because the index is no longer kept."""
        waiting, self._next = self._next, None
        self.end(reason)
        if waiting is not None:  # somebody may wait for it, although it never began
            waiting.finish(reason)

"""The current run and the next one, and the service's state that follows from them."""

from collections.abc import Callable
from itertools import count

from vector_index_mcp.indexing.state import State, StateMachine
from vector_index_mcp.indexing.writing.run import Kind, Run

_MOST_WALKS = 3  # of one run


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
        self._next: Run | None = None  # it waits for the current one to end
        self._numbers = count(1)

    def begin(self, kind: Kind) -> Run:
        """Begin a run, or join the one under way; a rebuild waits until another run has ended.

        The folders are walked again for whoever joins, since events of what changed after the
        first walk may have been lost. A rebuild becomes the current generation before that. After
        some walks, one waits for the next run: else a run that is joined all the time never ends.
        """
        current = self.current
        if current is None:
            return self._begin(self._new(kind))
        if kind is Kind.REBUILD and current.kind is not Kind.REBUILD:
            return self._after_it(kind)
        if current.walks >= _MOST_WALKS and not self.is_walk_due:
            return self._after_it(Kind.REQUEST)
        current.is_asked |= kind is Kind.REQUEST
        self._walk()
        return current

    def begin_again(self) -> None:
        """Fill an index that was replaced by an empty one, in a new run or the one under way."""
        run = self.current or self._begin(self._new(Kind.START))
        run.kind = Kind.START  # no rebuild: the current generation is empty, so fill it directly
        self._walk()

    def _after_it(self, kind: Kind) -> Run:
        """Return the run after the current one, which does what each wants that waits for it."""
        if self._next is None:
            self._next = self._new(kind)
        elif kind is Kind.REBUILD:
            self._next.kind = kind
        return self._next

    def _new(self, kind: Kind) -> Run:
        return Run(kind, next(self._numbers), is_asked=kind is Kind.REQUEST)

    def _begin(self, run: Run) -> Run:
        run.begin()
        self.current = run
        if self._state.current is not State.SCANNING:
            self._state.enter(State.SCANNING)
        self._walk()
        return run

    def _walk(self) -> None:
        """Have the folders walked for the current run."""
        if self.current is not None and not self.is_walk_due:
            self.current.walks += 1
        self.is_walk_due = True
        self._on_begin()

    def note_rebuilt(self) -> None:
        """Note that the generation that a rebuild has made is the current one now."""
        if self.current is not None:
            self.current.is_rebuilt = True

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

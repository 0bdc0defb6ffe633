"""The state of an index's service, and which state may follow which."""

from enum import StrEnum


class State(StrEnum):
    """The `status` of `get_status`."""

    INITIALIZING = "INITIALIZING"
    """The index is not open yet."""
    SCANNING = "SCANNING"
    """A run is comparing the project with the index and bringing it up to date."""
    WATCHING = "WATCHING"
    """The index matches the disk as it was at the last look, and changes are followed."""
    ERROR = "ERROR"
    """An error keeps the index from being brought up to date; the message names it."""


MAY_FOLLOW = {
    State.INITIALIZING: {State.SCANNING, State.WATCHING, State.ERROR},
    State.SCANNING: {State.WATCHING, State.ERROR},
    State.WATCHING: {State.SCANNING, State.ERROR},
    State.ERROR: {State.SCANNING, State.WATCHING, State.INITIALIZING},
}


class StateMachine:
    """The current state, and the error that explains it."""

    def __init__(self) -> None:
        self.current = State.INITIALIZING
        self.error: str | None = None

    def enter(self, state: State, error: str | None = None) -> None:
        """Go to `state`; entering the current state again only replaces its error.

        Raises:
            ValueError: If `state` may not follow the current one, which is a bug of the caller.
        """
        if state is not self.current and state not in MAY_FOLLOW[self.current]:
            raise ValueError(f"{state} may not follow {self.current}")
        self.current, self.error = state, error

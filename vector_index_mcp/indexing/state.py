"""What the service is doing, and what may follow what. Everything that changes it is here."""

from enum import StrEnum


class State(StrEnum):
    """The `status` of `get_status`."""

    INITIALIZING = "INITIALIZING"
    """The index is not open yet."""
    SCANNING = "SCANNING"
    """A run is comparing the project with the index and bringing it up to date."""
    WATCHING = "WATCHING"
    """The index is as the disk was when it was last looked at; changes are followed."""
    ERROR = "ERROR"
    """Something keeps the index from being brought up to date; the message says what."""


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
        """Go to `state`; entering the current one again only renews its error.

        Raises:
            ValueError: If `state` may not follow the current one: a bug of ours.
        """
        if state is not self.current and state not in MAY_FOLLOW[self.current]:
            raise ValueError(f"{state} may not follow {self.current}")
        self.current, self.error = state, error

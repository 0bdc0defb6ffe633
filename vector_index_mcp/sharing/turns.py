"""Whose request is next. Pure."""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_Guest = TypeVar("_Guest", bound=Hashable)
_Request = TypeVar("_Request")

_MOST_AT_WORK = 2
"""Of a kind: one that is computed, and one that waits behind it so that no time is lost. With more,
a service would have to wait for what another one has sent at once."""


class Turns(Generic[_Guest, _Request]):
    """Requests of several guests: queries before batches, and of each kind one of each in turn.

    The requests of a guest keep their order.
    """

    def __init__(self) -> None:
        # By whether they are urgent; the guest whose turn it is comes first.
        self._waiting: dict[bool, dict[_Guest, deque[_Request]]] = {True: {}, False: {}}
        self._at_work = {True: 0, False: 0}

    @property
    def waiting(self) -> int:
        """How many wait."""
        return sum(len(each) for waiting in self._waiting.values() for each in waiting.values())

    @property
    def at_work(self) -> int:
        """How many have had their turn, and are not answered yet."""
        return sum(self._at_work.values())

    def add(self, guest: _Guest, request: _Request, *, urgent: bool) -> None:
        """Let a request wait for its turn."""
        self._waiting[urgent].setdefault(guest, deque()).append(request)

    def drop(self, guest: _Guest) -> None:
        """Forget what waits of a guest who has left."""
        for waiting in self._waiting.values():
            waiting.pop(guest, None)

    def next(self) -> tuple[_Guest, _Request, bool] | None:
        """What goes to work now, whose it is and whether it is urgent; None if nothing does yet."""
        for urgent, waiting in self._waiting.items():
            if not waiting or self._at_work[urgent] >= _MOST_AT_WORK:
                continue
            guest = next(iter(waiting))
            requests = waiting.pop(guest)
            request = requests.popleft()
            if requests:
                waiting[guest] = requests  # behind all others
            self._at_work[urgent] += 1
            return guest, request, urgent
        return None

    def done(self, *, urgent: bool) -> None:
        """One that was at work is answered."""
        self._at_work[urgent] -= 1

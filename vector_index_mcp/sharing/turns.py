"""Decides whose request is next. Pure."""

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

_Guest = TypeVar("_Guest", bound=Hashable)
_Request = TypeVar("_Request")

_MOST_AT_WORK = 2
"""Of each kind (urgent or not): one that is computed, and one behind it so that no time is lost.
With more, a service would wait longer for the requests of another one."""


class Turns(Generic[_Guest, _Request]):
    """The waiting requests of several guests.

    Urgent requests (queries) come before others (batches). Within each kind, guests take turns, and
    the requests of one guest keep their order.
    """

    def __init__(self) -> None:
        # By whether they are urgent, then by guest; the guest whose turn is next comes first.
        self._waiting: dict[bool, dict[_Guest, deque[_Request]]] = {True: {}, False: {}}
        self._at_work = {True: 0, False: 0}

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(len(each) for waiting in self._waiting.values() for each in waiting.values())

    @property
    def at_work(self) -> int:
        """How many requests have had their turn, and are not answered yet."""
        return sum(self._at_work.values())

    def add(self, guest: _Guest, request: _Request, *, urgent: bool) -> None:
        """Queue a request."""
        self._waiting[urgent].setdefault(guest, deque()).append(request)

    def drop(self, guest: _Guest) -> None:
        """Drop the waiting requests of a guest that has left."""
        for waiting in self._waiting.values():
            waiting.pop(guest, None)

    def next(self) -> tuple[_Guest, _Request, bool] | None:
        """Take the next request: (guest, request, is urgent); None if none may go yet."""
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
        """Note that a request is answered."""
        self._at_work[urgent] -= 1

"""Decides whose request is next. Pure."""

from collections import deque
from collections.abc import Hashable
from enum import Enum, auto
from typing import Generic, TypeVar

_Guest = TypeVar("_Guest", bound=Hashable)
_Request = TypeVar("_Request")

_MOST_AT_WORK = 2
"""Of each kind: one that is computed, and one behind it so that no time is lost. With more, a
service would wait longer for the requests of another one."""


class Kind(Enum):
    """What a request asks for, the most urgent first."""

    QUERY = auto()
    """The vectors of queries."""
    RANKING = auto()
    """The scores of texts. They may have to wait for minutes until the cross-encoder is loaded."""
    BATCH = auto()
    """The vectors of chunks."""


class Turns(Generic[_Guest, _Request]):
    """The waiting requests of several guests.

    Within each kind, guests take turns, and the requests of one guest keep their order. No kind
    waits until the worker has answered requests of another one.
    """

    def __init__(self) -> None:
        # By kind, then by guest; the guest whose turn is next comes first.
        self._waiting: dict[Kind, dict[_Guest, deque[_Request]]] = {kind: {} for kind in Kind}
        self._at_work = dict.fromkeys(Kind, 0)

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return sum(len(each) for waiting in self._waiting.values() for each in waiting.values())

    @property
    def at_work(self) -> int:
        """How many requests have had their turn, and are not answered yet."""
        return sum(self._at_work.values())

    def add(self, guest: _Guest, request: _Request, kind: Kind) -> None:
        """Queue a request."""
        self._waiting[kind].setdefault(guest, deque()).append(request)

    def drop(self, guest: _Guest) -> None:
        """Drop the waiting requests of a guest that has left."""
        for waiting in self._waiting.values():
            waiting.pop(guest, None)

    def next(self) -> tuple[_Guest, _Request, Kind] | None:
        """Take the next request: (guest, request, kind); None if none may go yet."""
        for kind, waiting in self._waiting.items():
            if not waiting or self._at_work[kind] >= _MOST_AT_WORK:
                continue
            guest = next(iter(waiting))
            requests = waiting.pop(guest)
            request = requests.popleft()
            if requests:
                waiting[guest] = requests  # behind all others
            self._at_work[kind] += 1
            return guest, request, kind
        return None

    def done(self, kind: Kind) -> None:
        """Note that a request is answered."""
        self._at_work[kind] -= 1

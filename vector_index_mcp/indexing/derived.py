"""What is worked out from all records of a ledger, and kept until they change."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from vector_index_mcp.indexing.ledger import Ledger

_T = TypeVar("_T")


class Derived(Generic[_T]):
    """One such value. It is used on the event loop alone."""

    def __init__(self) -> None:
        self._kept: tuple[Ledger, int, _T] | None = None

    async def of(self, ledger: Ledger, work_out: Callable[[], Awaitable[_T]]) -> _T:
        """Return the value for `ledger` as it is now; call `work_out` only if it has changed.

        Args:
            ledger: The ledger. Each time that an index is opened, it has another one.
            work_out: Works out the value.
        """
        kept, revision = self._kept, ledger.revision
        if kept is not None and kept[0] is ledger and kept[1] == revision:
            return kept[2]
        value = await work_out()
        self._kept = ledger, revision, value
        return value

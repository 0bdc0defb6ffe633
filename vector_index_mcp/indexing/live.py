"""The open index as its two writers share it."""

import logging
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import (
    DamagedIndexError,
    LostIndexError,
    StorageError,
    StoreError,
)
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.mirroring.origin import Origin
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.indexing.signal import Signal
from vector_index_mcp.processes import memory

_log = logging.getLogger(__name__)

_MAINTENANCE_RETRY_SECONDS = 60
# An error of LanceDB's that nobody can classify counts as damage the second time in a row; but if
# an index made anew has it as well, it is something else, and building once more would not help.
_DOUBTS_BEFORE_DAMAGE = 2
_SECONDS_BETWEEN_DAMAGES = 600.0


@dataclass(slots=True)
class Live:
    """What both tasks write; replaced as a whole when a rebuild or a repair has made a new one."""

    index: Index
    ledger: Ledger
    """Of the index's current store."""
    activity: Activity
    check: Callable[[], None]
    """Raises LostIndexError once the index's folder is not the one that was opened."""
    on_damage: Callable[[], None]
    """Called when `damage` is set, so that the first writer mends it."""
    remedies: Remedies
    origin: Origin | None = None
    """Where the index was fetched from; None if it was made here."""
    damage: StoreError | None = None
    """What shows that the index is damaged, until it is mended."""
    text_moved: Signal = field(default_factory=Signal)
    """Sent when text was committed, or when none waits any more: chunks may lack vectors."""
    lost: anyio.Event = field(default_factory=anyio.Event)
    """Set once the index's folder is gone or another one: it has to be opened again."""
    loss: str = ""
    """Why it is lost."""
    failure: StoreError | None = None
    """What it was given up for, though nobody has taken it."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    _doubts: int = 0
    _last_damage: float = float("-inf")
    _no_maintenance_before: float = 0.0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """The time of a commit, one at a time.

        Raises:
            LostIndexError: If the index's folder is gone, or another one now.
            DamagedIndexError: If somebody else has written to the index.
        """
        async with self.lock:
            self._make_sure()
            yield

    @asynccontextmanager
    async def replacing(self) -> AsyncIterator[None]:
        """Like `writing`, to put another index into the place of this one, whatever it is like."""
        async with self.lock:
            self._check_folder()
            yield

    def make_sure(self) -> None:
        """Raise what `writing` raises, if something is wrong.

        Not while a commit is under way, which is not noted yet: it has looked before.
        """
        if not self.lock.locked():
            self._make_sure()

    def _make_sure(self) -> None:
        self._check_folder()
        if not self.index.store.is_as_left:
            raise DamagedIndexError("another program has changed the index's files")

    async def make_sure_elsewhere(self) -> None:
        """Look whether another machine has changed the index, which costs some requests.

        Raises:
            LostIndexError: If one has.
            StoreError: If the index cannot be reached.
        """
        if is_local(self.index.uri):
            return  # `make_sure` sees that, and waits for no commit
        async with self.lock:
            self._make_sure()
            if await self.index.store.is_outrun():
                raise LostIndexError("another machine has changed the index; it is opened again")

    def distrust(self, keys: Collection[str]) -> None:
        """Have files cut again of which the index says something else than they do."""
        for key in keys:
            _log.error("the index is wrong about %r, which is indexed again", key)
            self.ledger.distrust(key)

    def is_lost(self) -> bool:
        """Whether the index's folder is gone, or another one now."""
        try:
            self._check_folder()
        except LostIndexError:
            return True
        return False

    def _check_folder(self) -> None:
        try:
            self.check()
        except LostIndexError as error:
            self.loss = str(error)
            self.lost.set()
            raise

    def is_damage(self, error: StoreError) -> bool:
        """Whether `error`, which has just been met, shows that the index is damaged.

        Never of one that other machines can reach: it is given up, to be opened again. Nobody
        knows whether what failed will be done yet, and the next turn makes sure that it is not.
        """
        if not is_local(self.index.uri):
            self.give_up(error)
            return False
        if isinstance(error, DamagedIndexError):
            return True
        if isinstance(error, (StorageError, LostIndexError)):
            return False
        self._doubts += 1
        now = anyio.current_time()
        is_new = now - self._last_damage > _SECONDS_BETWEEN_DAMAGES
        if self._doubts < _DOUBTS_BEFORE_DAMAGE or not is_new:
            return False
        self._doubts, self._last_damage = 0, now
        return True

    def give_up(self, error: StoreError) -> None:
        """Have the index opened again, at once if another one has become its writer."""
        if not isinstance(error, LostIndexError):
            self.failure = self.failure or error
        self.loss = self.loss or str(error)
        self.lost.set()

    def note_success(self) -> None:
        """Note that the index could be read and written: an earlier doubt was none."""
        self._doubts = 0

    def report(self, error: StoreError) -> None:
        """Have the index mended if `error`, met outside of the first writer, shows damage."""
        if self.is_damage(error):
            self.damage = error
            self.on_damage()

    async def maintain_if_due(self, *, in_bulk: bool = False, is_end: bool = False) -> None:
        """Let the store tidy up if it is worth it now.

        Args:
            in_bulk: Much more is about to be written, so only what cannot wait is done.
            is_end: Nothing more is about to be written, and questions may come.

        Raises:
            DamagedIndexError: If the index cannot be read.
        """
        upkeep = self.index.store.upkeep
        is_due = upkeep.is_due_at_the_end if is_end else upkeep.is_due
        if upkeep.is_overdue if in_bulk else is_due:
            await self._maintain()

    async def tidy(self) -> None:
        """Have the store tidy up now, however little that is worth.

        Raises:
            DamagedIndexError: If the index cannot be read.
        """
        await self._maintain()

    async def rest(self) -> None:
        """Nothing has been written for a while: tidy up even a little, and hold little memory.

        Called again and again as long as that lasts: what a maintenance held is free only some
        time after it, 17 of 268 MB in a service of 6,654 chunks (measured).

        Raises:
            DamagedIndexError: If the index cannot be read.
        """
        upkeep = self.index.store.upkeep
        # Elsewhere it takes a hundred round trips, and old versions have to stay for longer.
        is_worthwhile = upkeep.is_worthwhile and is_local(self.index.uri)
        if upkeep.is_due or is_worthwhile:
            await self._maintain()
        await anyio.to_thread.run_sync(memory.give_back)

    async def _maintain(self) -> None:
        if anyio.current_time() < self._no_maintenance_before:
            return
        try:
            async with self.writing():
                with self.activity.of("the index's maintenance"):
                    await self.index.store.maintain()
            await anyio.to_thread.run_sync(memory.give_back)
        except (DamagedIndexError, LostIndexError):
            raise
        except StoreError as error:  # a full disk: searches are slower, nothing else is lost
            _log.warning("%s", self.remedies.message(error))
            self.report(error)
            self._no_maintenance_before = anyio.current_time() + _MAINTENANCE_RETRY_SECONDS

"""The open index that the two writing tasks (`indexer` and `vectors`) share."""

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum, auto

import anyio
import anyio.to_thread

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.engine.store.upkeep import Moment
from vector_index_mcp.errors import (
    DamagedIndexError,
    LostIndexError,
    StorageError,
    StoreError,
)
from vector_index_mcp.indexing.activity import Activity
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.mirroring.origin import Origin
from vector_index_mcp.indexing.remedies import Remedies
from vector_index_mcp.indexing.signal import Signal
from vector_index_mcp.processes import memory

_log = logging.getLogger(__name__)

_MAINTENANCE_RETRY_SECONDS = 60
_QUIET_SECONDS = 60.0  # without a commit, after which the store drops old versions
_REPAIR_PATIENCE_SECONDS = 5.0  # how long a search waits until a damaged index is replaced
# An unknown error of LanceDB counts as damage if one use meets it twice in a row: what one use
# reads may be damaged while all that another one reads is sound. If it comes back soon after the
# index was rebuilt, the cause is another one, and a further rebuild would not help.
_DOUBTS_BEFORE_DAMAGE = 2
_SECONDS_BETWEEN_DAMAGES = 600.0


class Use(Enum):
    """What uses an open index."""

    SEARCH = auto()
    TEXT = auto()
    VECTORS = auto()
    UPKEEP = auto()


@dataclass(slots=True)
class Live:
    """The index that both tasks write. A rebuild or repair replaces `index` and `ledger`."""

    index: Index
    ledger: Ledger
    """The ledger of the index's current store."""
    activity: Activity
    check: Callable[[], None]
    """Raises LostIndexError once the index's folder is not the one that was opened."""
    on_damage: Callable[[], None]
    """Called when `damage` is set: wakes the indexer, which repairs the index."""
    remedies: Remedies
    looks: Looks = field(default_factory=Looks)
    """Looks at the index's folder."""
    origin: Origin | None = None
    """Where the index was fetched from; None if it was made here."""
    damage: StoreError | None = None
    """The error that shows that the index is damaged; None after the repair."""
    text_moved: Signal = field(default_factory=Signal)
    """Sent when text was committed, or when no more text waits: chunks may lack vectors then."""
    repaired: Signal = field(default_factory=Signal)
    """Sent when an empty index has replaced a damaged one."""
    worth_a_try: Signal = field(default_factory=Signal)
    """Sent when what failed may succeed: the index's drive answers again, or somebody asks."""
    lost: anyio.Event = field(default_factory=anyio.Event)
    """Set once the index has to be opened again: its folder is gone or was replaced."""
    loss: str = ""
    """Why the index is lost."""
    failure: StoreError | None = None
    """The error for which the index was given up; None if its folder was lost instead."""
    no_patience_before: float = 0.0
    """When a search may wait again for changes, by the event loop's clock: the last one did so in
    vain, as in a folder where files change all the time."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    _last_write: float = field(default_factory=time.monotonic)
    """When the last commit or `rest` ended."""
    _doubts: Counter[Use] = field(default_factory=Counter)
    _last_damage: float = float("-inf")
    _no_maintenance_before: float = 0.0

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Make one commit at a time, while the context lasts.

        Raises:
            LostIndexError: If the index's folder is gone or was replaced.
            DamagedIndexError: If another program has written to the index.
            StorageError: If the index's drive does not answer.
        """
        async with self.lock:
            await self._check_index()
            try:
                yield
            finally:
                self._last_write = time.monotonic()

    @asynccontextmanager
    async def replacing(self) -> AsyncIterator[None]:
        """Like `writing`, but for replacing the index, so it does not check for other writers."""
        async with self.lock:
            await self._require_folder()
            yield

    async def check_index(self, *, each_file: bool = False) -> None:
        """Raise what `writing` raises, if something is wrong.

        During a commit this checks nothing: our own changes would look like another program's.

        Args:
            each_file: Whether to look at every file; `writing` looks only for new ones.
        """
        if not self.lock.locked():
            async with self.lock:
                await self._check_index(each_file=each_file)

    async def _check_index(self, *, each_file: bool = False) -> None:
        await self._require_folder(lambda: self.index.check(each_file=each_file))

    async def checked_or_repaired(self) -> None:
        """Before a search: have the index repaired if it was changed, and wait for that a little.

        Raises:
            LostIndexError: If the index's folder is gone or was replaced.
            StoreError: If the index is not repaired yet, or its drive does not answer.
        """
        try:
            await self.check_index()
        except DamagedIndexError as error:
            self.report(error, Use.SEARCH)
            with anyio.move_on_after(_REPAIR_PATIENCE_SECONDS):
                await self.repaired.wait()
            if self.damage is not None:
                raise

    def note_repair(self, index: Index, ledger: Ledger) -> None:
        """Take an empty index in place of the damaged one."""
        self.index, self.ledger = index, ledger
        self.damage = self.origin = None
        self.repaired.send()

    async def check_elsewhere(self) -> None:
        """Check whether another machine has changed the index; this costs some requests.

        Raises:
            LostIndexError: If another machine has changed it.
            StoreError: If the index cannot be reached.
        """
        if is_local(self.index.uri):
            return  # `check_index` notices that, without waiting for a commit
        async with self.lock:
            await self._check_index()
            if await self.index.store.is_outrun():
                raise LostIndexError("another machine has changed the index; it is opened again")

    def distrust(self, keys: Collection[str]) -> None:
        """Have files indexed again whose rows do not match their content."""
        for key in keys:
            _log.error("the index is wrong about %r, which is indexed again", key)
            self.ledger.distrust(key)

    async def check_folder(self) -> bool:
        """Return whether the index's folder is still there and the same; set `lost` if not.

        Raises:
            StorageError: If the index's drive does not answer.
        """
        try:
            await self._require_folder()
        except LostIndexError:
            return False
        return True

    async def is_silent(self) -> bool:
        """Whether the index's drive does not answer; otherwise like `check_folder`."""
        try:
            await self.check_folder()
        except StorageError:
            return True
        return False

    async def _require_folder(self, further: Callable[[], None] = lambda: None) -> None:
        """Check the index's folder, and call `further`, which looks at what is in it."""

        def look() -> None:
            self.check()
            further()

        try:
            await self.looks.at_index(self.index.uri, look)
        except LostIndexError as error:
            self.loss = str(error)
            self.lost.set()
            raise

    def note_error(self, error: StoreError, use: Use) -> bool:
        """Count an error that `use` has met; return whether the index is damaged by all signs.

        Always False for an index on another machine, which is given up and opened again instead: a
        commit that failed may still arrive there, and opening it again fences that commit out.
        """
        if not is_local(self.index.uri):
            self.give_up(error)
            return False
        if isinstance(error, DamagedIndexError):
            return True
        if isinstance(error, (StorageError, LostIndexError)):
            return False
        self._doubts[use] += 1
        now = anyio.current_time()
        is_new = now - self._last_damage > _SECONDS_BETWEEN_DAMAGES
        if self._doubts[use] < _DOUBTS_BEFORE_DAMAGE or not is_new:
            return False
        self._last_damage = now
        self._doubts.clear()
        return True

    def give_up(self, error: StoreError) -> None:
        """Have the index opened again; without a pause if `error` is a LostIndexError."""
        if not isinstance(error, LostIndexError):
            self.failure = self.failure or error
        self.loss = self.loss or str(error)
        self.lost.set()

    def note_success(self, use: Use) -> None:
        """Note that `use` has done its work, so its unknown error before is no damage."""
        del self._doubts[use]

    def report(self, error: StoreError, use: Use) -> None:
        """Have the indexer repair the index if `error`, which another use met, shows damage."""
        if self.note_error(error, use):
            self.damage = error
            self.on_damage()

    async def maintain_if_due(self, moment: Moment) -> None:
        """Have the store tidy up if that is due at this moment.

        Raises:
            DamagedIndexError: If the index cannot be read.
        """
        if self.index.store.upkeep.is_due_at(moment):
            await self._tidy_if_possible()

    async def tidy(self) -> None:
        """Have the store tidy up now, even if there is little to do.

        Raises:
            StoreError: If the index cannot be read or written.
        """
        async with self.writing():
            with self.activity.of("the index's maintenance"):
                await self.index.store.maintain()
        self.note_success(Use.UPKEEP)
        await anyio.to_thread.run_sync(memory.give_back)

    @property
    def seconds_to_rest(self) -> float:
        """How long until nothing will have been written for a while."""
        return max(0.0, self._last_write + _QUIET_SECONDS - time.monotonic())

    async def rest(self) -> None:
        """Tidy up and give memory back, because nothing has been written for a while.

        Call it again and again as long as that lasts: memory that a maintenance used becomes free
        only some time later (measured: 17 of 268 MB in a service of 6,654 chunks).

        Raises:
            DamagedIndexError: If the index cannot be read.
        """
        upkeep = self.index.store.upkeep
        await self.check_index(each_file=True)
        # On another machine this takes a hundred round trips, and old versions must stay longer.
        is_worthwhile = upkeep.is_worthwhile and is_local(self.index.uri)
        if upkeep.is_due or is_worthwhile:
            await self._tidy_if_possible()
        await anyio.to_thread.run_sync(memory.give_back)
        self._last_write = time.monotonic()

    async def _tidy_if_possible(self) -> None:
        """Have the store tidy up; after an error, not again for a while."""
        if anyio.current_time() < self._no_maintenance_before:
            return
        try:
            await self.tidy()
        except (DamagedIndexError, LostIndexError):
            raise
        except StoreError as error:  # such as a full disk: searches become slower, no data is lost
            _log.warning("%s", self.remedies.message(error))
            self.report(error, Use.UPKEEP)
            self._no_maintenance_before = anyio.current_time() + _MAINTENANCE_RETRY_SECONDS

"""Opens a local index: finds its place, becomes its writer, and replaces a damaged index.

An index inside the project is used only if this user's program wrote it (`ownership`). A cloned
repository may contain a foreign one: then the project's index lies in the user's state folder
instead. A folder outside of the project was chosen by the user, so foreign content there is an
error.
"""

import errno
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread
import filelock

from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.index import Manifest, discard
from vector_index_mcp.engine.store.reach import can_hold
from vector_index_mcp.errors import (
    DamagedIndexError,
    ForeignIndexError,
    LostIndexError,
    OtherVersionError,
    Problem,
    ProjectError,
    StorageError,
    StoreError,
)
from vector_index_mcp.files.folder import Folder, absence_of
from vector_index_mcp.indexing.ledger import Ledger
from vector_index_mcp.indexing.looking.looks import Looks
from vector_index_mcp.indexing.mirroring import origin
from vector_index_mcp.indexing.mirroring.mirror import FETCHED, Mirror
from vector_index_mcp.indexing.opening.locks import (
    is_held,
    lock_of,
    make_sound,
    name_of,
    new_lock,
    try_acquire,
    try_acquire_in_state,
    unusable_state,
)
from vector_index_mcp.indexing.opening.ownership import (
    LOCK,
    Claim,
    Records,
    Standing,
    foreign,
    is_led_through_link,
    why_left_alone,
)
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.indexing.remedies import Remedies

_log = logging.getLogger(__name__)
T = TypeVar("T")

PLACES = "places"  # the folder in the state folder for indexes that cannot lie in their projects
_SECONDS_BETWEEN_TRIES = 0.2
_SECONDS_BETWEEN_LOOKS = 1.0  # between two checks whether the writer is gone


@dataclass(frozen=True, slots=True)
class Opened:
    """An index open for writing."""

    index: Index
    ledger: Ledger
    last_revision: int
    check: Callable[[], None]
    """Raises LostIndexError once the folder is no longer the one that was opened."""
    start_over: "Callable[[], Awaitable[Opened]]"
    """Replaces an index that turned out to be damaged by an empty one, and opens that."""


class Opener:
    """Opens the index at a place, and holds the writer's two locks.

    The outer lock lies in the state folder, named by the index's path: it stays when somebody
    deletes the index. The inner lock lies in the index's folder: it moves along with the folder.
    """

    def __init__(
        self,
        place: Place,
        chunker: str,
        state_folder: Path,
        remedies: Remedies,
        mirror: Mirror | None = None,
        looks: Looks | None = None,
    ) -> None:
        """Prepare; this does not access the disk.

        Args:
            place: The configured place of the index.
            chunker: The chunker's version for a new index.
            state_folder: Where locks and records of indexes lie.
            remedies: What to do about an error.
            mirror: Fills an empty index from a published one; None if nobody publishes it.
            looks: Calls what uses the index's drive, which may hang; None for a new one.
        """
        self.uri = place.uri
        """Where the index lies: the configured place, or a substitute if that is foreign."""
        self.displaced = ""
        """Why the index does not lie at the configured place; empty if it does."""
        self.seconds_between_looks = _SECONDS_BETWEEN_LOOKS
        # Part of the interface; only `RemoteOpener` ever changes these three.
        self.refusal: StoreError | None = None
        self.writer = ""
        self.is_anew = False
        self._place = place
        self._configured = place.uri
        self._chunker = chunker
        self._state_folder = state_folder
        self._records = Records(state_folder)
        self._remedies = remedies
        self._mirror = mirror
        self._looks = looks or Looks()
        # The system releases the locks when the process ends, even after SIGKILL.
        self._outer = new_lock(lock_of(place.uri, state_folder))
        self._inner: filelock.BaseFileLock | None = None
        self._claim: Claim | None = None
        self._is_open = False

    def acquire(self) -> bool:
        """Become the index's writer; False if another process is. Blocks for a moment.

        Raises:
            ForeignIndexError: If the configured place holds something that is not ours.
            ProjectError: If the project is out of reach.
            StoreError: If the index's place or the state folder cannot be written.
        """
        try:
            if not (try_acquire_in_state(self._outer) and self._acquire_folder()):
                self._outer.release(force=True)
                return False
        except OSError as error:
            self._outer.release(force=True)
            raise self._unusable(error) from error
        except (StoreError, ProjectError):
            self._outer.release(force=True)
            raise
        return True

    async def become_writer(self) -> bool:
        """Call `acquire` in a thread."""
        return await self._apart(self.acquire)

    async def has_writer(self) -> bool:
        """Call `is_taken` in a thread."""
        return await self._apart(self.is_taken)

    async def may_be_read(self) -> bool:
        """Call `is_readable` in a thread."""
        return await self._apart(self.is_readable)

    async def let_go(self) -> None:
        """Call `release` in a thread."""
        try:
            await self._apart(self.release)
        except StorageError as error:  # the thread lets go when the drive answers
            _log.warning("%s", error)

    async def _apart(self, do: Callable[[], T]) -> T:
        """Call what uses the index's drive in a thread.

        Raises:
            StorageError: If the drive does not answer.
        """
        return await self._looks.work_at_index(self._configured, do)

    async def keep_writing(self) -> None:
        """Do nothing: unlike a lease, a lock needs no renewal."""

    def _acquire_folder(self) -> bool:
        """Take the lock in the index's folder; make the folder if there is none."""
        home = self._place.home
        if home is not None and (problem := absence_of(Folder(home))) is not None:
            raise problem  # else making the index would make the project's folder, too
        standing = self.locate()
        folder = Path(self.uri)
        if standing is Standing.EMPTY:
            self._claim = self._records.make(folder, home)
        else:
            self._claim = self._records.claim(folder)
        if self._inner is None:
            make_sound(folder / LOCK)
            self._inner = new_lock(folder / LOCK)
        if not try_acquire(self._inner):
            self._inner = None
            return False
        return True

    def release(self) -> None:
        """Let another process become the writer. Call it after the last write."""
        if self._claim is not None and self._is_open:
            try:
                self._claim.close()
            except StoreError as error:
                _log.warning("%s", self._remedies.message(error))
        self._is_open, self._claim = False, None
        if self._inner is not None:
            self._inner.release(force=True)  # the lock counts how often it was acquired
            self._inner = None
        self._outer.release(force=True)

    def is_taken(self) -> bool:
        """Whether another process is the writer. Changes nothing."""
        self.locate()
        return any(is_held(path) for path in (Path(self._outer.lock_file), Path(self.uri) / LOCK))

    def is_readable(self) -> bool:
        """Whether there is an index that we wrote; sets `uri` and `displaced`."""
        return self.locate() is Standing.OURS

    def locate(self) -> Standing:
        """Find out where the index lies, or has to be made; sets `uri` and `displaced`.

        Raises:
            ForeignIndexError: If the configured place, outside of the project, is foreign.
            StoreError: If the place cannot be read.
        """
        try:
            return self._locate(Path(self._configured))
        except OSError as error:
            raise self._unusable(error) from error

    def _locate(self, configured: Path) -> Standing:
        standing = self._standing_at(configured)
        self.uri, self.displaced = self._configured, ""
        if standing is not Standing.FOREIGN:
            return standing
        home, is_able = self._place.home, can_hold(str(configured))
        if home is None or not configured.is_relative_to(home):
            raise foreign(configured) if is_able else self._unusable(_invalid())
        self.displaced = why_left_alone(home, configured)
        if not is_able:
            self.displaced = f"{str(configured)!a} can hold no index, by a character of its path"
        self.uri = str(self.substitute)
        standing = self._records.standing(self.substitute)
        if standing is Standing.FOREIGN:
            raise foreign(self.substitute)
        return standing

    def _standing_at(self, configured: Path) -> Standing:
        """Whose files lie at the configured place; a link or a path that cannot be is foreign."""
        home, is_out = self._place.home, not can_hold(str(configured))
        if home is not None and configured.is_relative_to(home):
            is_out = is_out or configured == home or is_led_through_link(home, configured)
        return Standing.FOREIGN if is_out else self._records.standing(configured)

    def _is_free(self) -> bool:
        """Whether nothing foreign lies any more at the configured place."""
        try:
            return self._standing_at(Path(self._configured)) is not Standing.FOREIGN
        except (OSError, StorageError):
            return False

    def _tidy(self) -> None:
        """Remove what earlier starts left: old records, and a substitute that nobody needs now.

        A process for which another place is configured may still need it.
        """
        self._records.forget_unused()
        if not (self.displaced or is_held(self.substitute / LOCK)):
            shutil.rmtree(self.substitute, ignore_errors=True)

    @property
    def substitute(self) -> Path:
        """The folder for the index if it cannot lie in the project."""
        return self._state_folder / PLACES / name_of(self._place.owner)

    def _unusable(self, error: OSError) -> StoreError:
        if self.displaced:
            return unusable_state(self._state_folder, "written", error)
        return StorageError(
            f"the index at {self.uri} cannot be written ({error.strerror})",
            Problem.INDEX_UNWRITABLE,
        )

    async def open(self) -> Opened:
        """Open the index; make an empty one if there is none, or if it is damaged.

        Raises:
            StoreError: If the index belongs to another project, or its place is out of reach.
        """
        claim = self._claim
        assert claim is not None, "opened without acquire"
        standing = await self._apart(partial(self._records.standing, claim.folder))
        is_copy = standing is Standing.COPY
        is_intact = await self._apart(partial(claim.is_intact, is_copy=is_copy))
        if is_copy:
            _log.info("the index at %s is a copy and becomes this project's own", self.uri)
            await self._apart(claim.renew_mark)
        await self._apart(partial(claim.open, self._place.owner))
        self._is_open = True
        await self._apart(self._tidy)
        if not is_intact:
            _log.error("the index at %s was changed while nobody wrote it; rebuilt", self.uri)
            return await self.start_over()
        return await self._open_sound(is_copy=is_copy)

    async def _open_sound(self, *, is_copy: bool = False) -> Opened:
        """Open an index whose files are unchanged; if that fails twice, the index is damaged."""
        try:
            try:
                return await self._open_existing(is_copy=is_copy)
            except OtherVersionError:
                return await self.start_over()
            except (StorageError, ForeignIndexError, DamagedIndexError):
                raise
            except StoreError as error:
                _log.warning("%s; the index is opened once more", error)
                await anyio.sleep(_SECONDS_BETWEEN_TRIES)
                return await self._open_existing(is_copy=is_copy)
        except (StorageError, ForeignIndexError):
            raise
        except StoreError as error:
            _log.error("the index is damaged and is rebuilt: %s", error)
            return await self.start_over()

    async def _open_existing(self, *, is_copy: bool) -> Opened:
        index = await Index.open(self.uri, writes=True)
        try:
            if self._mirror is not None and await self._mirror.fill(self.uri, index, self._check):
                index = await Index.open(self.uri, writes=True)
            if index is None:
                return await self.start_over()
            return await self._read(index, is_copy=is_copy)
        except BaseException:
            if index is not None:
                index.close()  # else it would hold the folder
            raise

    async def _read(self, index: Index, *, is_copy: bool) -> Opened:
        await self._check_owner(index, is_copy=is_copy)
        records, holdings = await index.store.records(), await index.store.holdings()
        if records:  # the index is filled, so the rest of a failed fetch is useless
            await self._apart(partial(shutil.rmtree, Path(self.uri, FETCHED), ignore_errors=True))
        last_revision = await index.store.last_revision()
        await index.drop_leftovers()
        return self._opened(index, Ledger.reconciled(records, holdings), last_revision)

    async def start_over(self) -> Opened:
        """Replace whatever index there is by an empty one.

        Raises:
            LostIndexError: If the folder is no longer the one that was claimed.
        """
        await self._apart(self._check)
        await discard(self.uri)
        await self._apart(partial(origin.forget, self.uri))
        manifest = Manifest(owner=self._place.owner, chunker=self._chunker)
        return self._opened(await Index.create(self.uri, manifest), Ledger(), 0)

    def _opened(self, index: Index, ledger: Ledger, last_revision: int) -> Opened:
        return Opened(index, ledger, last_revision, self._check, self.start_over)

    def _check(self) -> None:
        if self._claim is not None and not self._claim.holds:
            raise LostIndexError(
                f"the index's folder {self.uri} was removed, moved or replaced; it is looked for "
                "again, and what is missing is rebuilt"
            )
        # Readers look at the configured place first, so an index elsewhere is lost for them.
        if self.displaced and self._is_free():
            raise LostIndexError(f"{self._configured} is free, so the index is built there")

    async def _check_owner(self, index: Index, *, is_copy: bool) -> None:
        """Refuse an index of another project, unless it was moved or copied with this one.

        Raises:
            ForeignIndexError: If the index belongs to another project.
        """
        owner, home = index.manifest.owner, self._place.home
        if owner == self._place.owner:
            return
        is_own = is_copy or (home is not None and Path(self.uri).is_relative_to(home))
        if not is_own and await anyio.to_thread.run_sync(may_exist, owner):
            raise ForeignIndexError(
                f"the index at {self.uri} belongs to {owner}", Problem.INDEX_OF_ANOTHER
            )
        await index.adopt(self._place.owner)


def _invalid() -> OSError:
    return OSError(errno.EINVAL, "its path has a control character, or is no text")


def may_exist(owner: str) -> bool:
    """Whether the owner of an index may still need it; not if its project's folder is gone."""
    return not Path(owner).is_absolute() or os.path.isdir(owner)

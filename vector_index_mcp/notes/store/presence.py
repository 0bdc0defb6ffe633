"""Notices that a store has vanished: its folder was moved away, or its disk is not mounted.

An empty store in its place would take changes that nobody finds once the right one is back.
"""

import os
from contextlib import ExitStack, suppress
from pathlib import Path

from vector_index_mcp.files import beneath
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk, reported
from vector_index_mcp.notes.store.repository import OWN, Repository

_DEVICE = "device"
"""The file in our own GIT_DIR that has the number of the device that the store was on."""
_MOST_DIGITS = 30


def had_store(ours: Path) -> bool:
    """Return whether a service has opened a store, by the folder that it has for it elsewhere."""
    return (ours / OWN / _DEVICE).is_file()


class Presence:
    """Knows the folder of a store since it was last opened. Any thread may call the methods."""

    def __init__(self, disk: Disk, repository: Repository) -> None:
        self._disk = disk
        self._repository = repository
        self._folder: int | None = None
        """An open descriptor of the store's folder."""
        self._git: int | None = None
        """An open descriptor of `.git`: while it is open, no other folder gets its inode number."""

    def check(self, *, is_under_way: bool = False) -> None:
        """Check that the store has not vanished since it was last opened.

        A folder that was deleted has not vanished: somebody wants to begin anew.

        Args:
            is_under_way: Whether a change was under way, which may have been made.

        Raises:
            Refusal: If it has.
        """
        is_there = self._disk.status(f"{GIT}/HEAD") is not None
        if is_there or not (self._was_moved() or self._is_on_another_device()):
            return
        outcome = (
            "the change may already have been made: check before you repeat it"
            if is_under_way
            else "nothing was changed"
        )
        raise Refusal(
            Code.FILE_SYSTEM_ERROR,
            f"the notes in {self._disk.root} have vanished: the folder was moved away, or its "
            "disk is not mounted; bring it back, or run `git init` in that folder to begin with "
            f"empty notes there; {outcome}",
        )

    @property
    def was_opened_and_is_kept(self) -> bool:
        """Whether the folder that was opened still exists, here or somewhere else."""
        opened = _status_of(self._folder)
        return opened is not None and opened.st_nlink > 0

    def _was_moved(self) -> bool:
        opened = _status_of(self._folder)
        if opened is None or not opened.st_nlink:
            return False
        here = self._disk.status("")
        return here is None or not os.path.samestat(opened, here)

    def _is_on_another_device(self) -> bool:
        known = self._repository.own(_DEVICE)[:_MOST_DIGITS]
        if not known.isdigit():
            return False
        place = self._disk.root
        while True:
            with suppress(OSError):
                return place.stat().st_dev != int(known)
            if place == place.parent:
                return False
            place = place.parent

    @property
    def is_same_repository(self) -> bool:
        """Whether `.git` is still the folder that was opened."""
        status, opened = self._disk.status(GIT), _status_of(self._git)
        return status is not None and opened is not None and os.path.samestat(opened, status)

    def note(self) -> None:
        """Note that the store is open.

        Raises:
            Refusal: If the folder cannot be opened.
        """
        if self.is_same_repository:
            return
        with ExitStack() as opened, reported(GIT):
            # If one of them has just been moved away, we go on knowing the former ones.
            git = beneath.open_file(self._disk.root, GIT, os.O_RDONLY)
            opened.callback(os.close, git)
            folder = os.open(self._disk.root, os.O_RDONLY)
            opened.callback(os.close, folder)
            self._repository.put_own(_DEVICE, str(os.fstat(folder).st_dev).encode())
            self.close()
            self._git, self._folder = git, folder
            opened.pop_all()

    def close(self) -> None:
        """Close the descriptors."""
        for descriptor in (self._git, self._folder):
            if descriptor is not None:
                os.close(descriptor)
        self._git = self._folder = None


def _status_of(descriptor: int | None) -> os.stat_result | None:
    """The status of what is open; None if nothing is, or if it was closed meanwhile."""
    with suppress(OSError):
        return None if descriptor is None else os.fstat(descriptor)
    return None

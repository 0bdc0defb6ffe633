"""Who owns an index: we serve, overwrite and delete only what this user's program wrote here.

The folder of an index contains a mark, a file with a random number. A record in the user's state
folder, outside of every project, holds the mark's inode and ctime, which no clone, archive or copy
can reproduce, and the state of every file of the index when its last writer ended. So a folder is

- empty: an index may be made in it;
- ours: its mark has the recorded inode and ctime;
- a copy of ours: the mark's number is recorded, but the file is another one, since the project was
  copied, restored or synchronised;
- foreign in all other cases, and then left alone.

The record also shows whether anything was changed while no process wrote the index (`stamps`).
"""

import contextlib
import json
import os
import secrets
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from vector_index_mcp.engine.store.entries import is_table, prepare_folder
from vector_index_mcp.errors import ForeignIndexError, Problem, StorageError
from vector_index_mcp.files.users import is_of_another_user
from vector_index_mcp.indexing.opening.locks import unusable_state
from vector_index_mcp.indexing.opening.marks import (
    MARK,
    NUMBER,
    RECORDS,
    number_in,
    place_in,
    place_of,
    replace,
    text_in,
)
from vector_index_mcp.indexing.stamps import HINT, Stamp, digest_of, files_below, stamps_in

LOCK = "index.lock"
_RECORD_KEPT_SECONDS = 180 * 24 * 3600  # if the folder is gone, since its disk may be unplugged
_LARGEST_RECORD_BYTES = 20_000_000  # 200 bytes a file of the index
# Hashing takes 0.7 s for a gigabyte, and a service has 4 s to end. If files are not hashed, a later
# copy of the index has to be rebuilt, but its vectors are still in the embedding cache.
_MOST_HASHED_BYTES = 1_000_000_000


class Standing(StrEnum):
    """Who owns the index in a folder."""

    EMPTY = "empty"
    OURS = "ours"
    COPY = "a copy of ours"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True)
class Known:
    """The record of an index."""

    number: str
    """The number in the index's mark."""
    folder: Path | None
    """Where the index lay when it was last written; None if the record is damaged."""
    owner: str
    """The owner of the index; empty if the record does not name it."""
    is_folder_made: bool
    """Whether this program made the folder for the index."""


class Records:
    """The records of indexes in this user's state folder."""

    def __init__(self, state_folder: Path) -> None:
        self._folder = state_folder / RECORDS

    def standing(self, folder: Path) -> Standing:
        """Find out who owns the index in `folder`. Follows no link and changes nothing.

        Raises:
            OSError: If the folder cannot be read.
            StorageError: If the records cannot be read.
        """
        try:
            names = _names_in(folder) if _is_folder(folder) else None
        except FileNotFoundError:
            return Standing.EMPTY
        except PermissionError:
            if not is_of_another_user(folder):
                raise
            return Standing.FOREIGN
        if names is None:
            return Standing.FOREIGN
        found = self._record_of(folder)
        if found is not None and place_of(folder / MARK) == place_in(found[1]):
            return Standing.OURS
        if is_of_another_user(folder):  # who could read whatever is written into it
            return Standing.FOREIGN
        if found is not None:
            return Standing.COPY
        is_taken = any(_is_reserved(name) or name.endswith(".lance") for name in names)
        return Standing.FOREIGN if is_taken else Standing.EMPTY

    def claim(self, folder: Path) -> "Claim":
        """Claim the index in `folder`, which is ours or a copy of ours.

        Raises:
            ForeignIndexError: If it is neither.
        """
        found = self._record_of(folder)
        if found is None:
            raise foreign(folder)
        number, record = found
        files, is_closed = stamps_in(record), bool(record.get("closed"))
        claim = Claim(self, folder, number, files, _owner_in(record), is_closed=is_closed)
        claim.is_folder_made = _is_made_in(record)
        return claim

    def _record_of(self, folder: Path) -> tuple[str, dict[str, Any]] | None:
        """The number and the record of the index in `folder`; None if there is no record.

        If the mark is damaged, the record with this folder's path is taken, without its mark. So an
        index of ours whose mark or record is damaged counts as a copy of ours.
        """
        if place_of(folder / MARK) is None:
            return None
        number = number_in(folder)
        if number is not None and (record := self._read(number)) is not None:
            return number, record
        for path in self._paths():
            record = self._read(path.stem)
            if record is not None and record.get("folder") == str(folder):
                return path.stem, record | {"mark": None}
        return None

    def all(self) -> Iterator[Known]:
        """All indexes with a record.

        Raises:
            StorageError: If the records cannot be read.
        """
        for path in sorted(self._paths()):
            if NUMBER.fullmatch(path.stem) and (record := self._read(path.stem)) is not None:
                folder = Path(str(record.get("folder") or ""))
                is_damaged = not folder.is_absolute()
                place = None if is_damaged else folder
                yield Known(path.stem, place, _owner_in(record), _is_made_in(record))

    def of(self, folder: Path) -> Known | None:
        """The record of the index in `folder`; None if it is not ours."""
        if (found := self._record_of(folder)) is None:
            return None
        return Known(found[0], folder, _owner_in(found[1]), _is_made_in(found[1]))

    def forget(self, number: str) -> None:
        """Drop the record of an index that was removed."""
        with contextlib.suppress(FileNotFoundError):
            (self._folder / f"{number}.json").unlink()

    def make(self, folder: Path, home: Path | None = None) -> "Claim":
        """Make `folder` the place of an index of ours, empty until somebody fills it.

        Args:
            folder: The index's folder.
            home: The project's folder, which is not made.

        Raises:
            ForeignIndexError: If the folder contains something that is not ours.
            StorageError: If the folder or its record cannot be written.
        """
        if self.standing(folder) is Standing.FOREIGN:
            raise foreign(folder)
        # We may have made the folder before, for an index that was removed or never finished.
        before = (each.is_folder_made for each in self.all() if each.folder == folder)
        is_made = any(before) or not os.path.lexists(folder)
        prepare_folder(folder, {MARK, LOCK}, home)
        claim = Claim(self, folder, secrets.token_hex(16), {}, "", is_closed=False)
        claim.is_folder_made = is_made
        claim.renew_mark()
        return claim

    def forget_unused(self) -> None:
        """Drop the records of folders that have been gone for half a year."""
        oldest = time.time() - _RECORD_KEPT_SECONDS
        for path in self._paths():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    folder = (self._read(path.stem) or {}).get("folder")
                    if not isinstance(folder, str) or not os.path.lexists(folder):
                        path.unlink()

    def _paths(self) -> list[Path]:
        """The files of all records.

        Raises:
            StorageError: If their folder cannot be read: that is not to be without records.
        """
        try:
            return [path for path in self._folder.iterdir() if path.suffix == ".json"]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise unusable_state(self._folder, "read", error) from error

    def _read(self, number: str) -> dict[str, Any] | None:
        """The record with this number: empty if it is damaged, None if there is none.

        Raises:
            StorageError: If no record can be read.
        """
        try:
            record = json.loads(text_in(self._folder / f"{number}.json", _LARGEST_RECORD_BYTES))
        except FileNotFoundError:
            return None
        except OSError:
            self._paths()  # raises unless this record alone is at fault
            return {}
        except (ValueError, RecursionError):
            return {}
        return record if isinstance(record, dict) else {}

    def write(self, number: str, record: dict[str, Any]) -> None:
        """Replace a record atomically; only the user can read it.

        Raises:
            StorageError: If it cannot be written.
        """
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace(self._folder / f"{number}.json", json.dumps(record))
        except OSError as error:
            raise unusable_state(self._folder, "written", error) from error


class Claim:
    """The right of this process to the index in one folder, and the record of that index."""

    def __init__(
        self,
        records: Records,
        folder: Path,
        number: str,
        files: dict[str, Stamp],
        owner: str,
        *,
        is_closed: bool,
    ) -> None:
        self.folder = folder
        self.is_folder_made = False
        """Whether this program made the folder for the index."""
        self._records = records
        self._number = number
        self._files = files
        self._owner = owner
        self._is_closed = is_closed
        self._place = place_of(folder / MARK)

    @property
    def holds(self) -> bool:
        """Whether the folder and the mark in it are still those that were claimed."""
        try:
            return _is_folder(self.folder) and place_of(self.folder / MARK) == self._place
        except OSError:
            return False

    def renew_mark(self) -> None:
        """Put a new mark into the folder, so that it is no copy of another index any more.

        Raises:
            StorageError: If the mark or the record cannot be written.
        """
        self._number, self._place = secrets.token_hex(16), None
        self._note()  # before the mark: a mark without a record would be foreign
        try:
            replace(self.folder / MARK, f"{self._number}\n")
        except OSError as error:
            raise StorageError(
                f"the index folder {self.folder} cannot be written ({error.strerror})",
                Problem.INDEX_UNWRITABLE,
            ) from error
        self._place = place_of(self.folder / MARK)
        self._note()

    def is_intact(self, *, is_copy: bool = False) -> bool:
        """Whether every file of the index is as its last writer left it.

        If that writer was killed, files that the record does not know are taken for its own. In a
        copy they are not, since anybody may have written them.
        """
        may_be_newer = not (self._is_closed or is_copy)
        found: set[str] = set()
        for name, path, status in files_below(self.folder):
            if not stat.S_ISREG(status.st_mode):
                return False
            known = self._files.get(name)
            if known is None and not may_be_newer:
                return False
            is_hint = may_be_newer and name.endswith(HINT)
            if known is not None and not is_hint and not known.is_like(path, status):
                return False
            found.add(name)
        return may_be_newer or found == self._files.keys()

    def open(self, owner: str) -> None:
        """Record that the index is being written from now on, and its owner."""
        self._is_closed, self._owner = False, owner
        self._note()

    def close(self) -> None:
        """Record the state of every file, because this process writes no more."""
        if not self.holds:
            return
        files: dict[str, Stamp] = {}
        left = _MOST_HASHED_BYTES
        for name, path, status in files_below(self.folder):
            known = self._files.get(name)
            stamp = status.st_size, status.st_mtime_ns, status.st_ctime_ns
            digest = known.digest if known and known.is_like(path, status) else ""
            if not digest and left > 0:
                left -= status.st_size
                digest = digest_of(path)
            files[name] = Stamp(*stamp, digest)
        self._files, self._is_closed = files, True
        self._note()

    def _note(self) -> None:
        files = {
            name: [file.size, file.mtime_ns, file.ctime_ns, file.digest]
            for name, file in self._files.items()
        }
        record = {
            "folder": str(self.folder),
            "owner": self._owner,
            "mark": list(self._place or ()),
            "closed": self._is_closed,
            "made": self.is_folder_made,
            "files": files,
        }
        self._records.write(self._number, record)


def _owner_in(record: dict[str, Any]) -> str:
    owner = record.get("owner")
    return owner if isinstance(owner, str) else ""


def _is_made_in(record: dict[str, Any]) -> bool:
    return record.get("made") is True


def foreign(folder: Path) -> ForeignIndexError:
    """The error for a folder that contains something foreign."""
    return ForeignIndexError(
        f"the folder {folder} holds something that this program did not write for you on this "
        "machine, so nothing in it is read or changed",
        Problem.INDEX_FOREIGN,
    )


def is_led_through_link(root: Path, folder: Path) -> bool:
    """Whether `folder`, or a folder between it and `root`, is a link."""
    between = folder.relative_to(root).parts
    return any(root.joinpath(*between[:n]).is_symlink() for n in range(1, len(between) + 1))


def why_left_alone(home: Path, folder: Path) -> str:
    """Say why an index cannot lie in a project's folder or one below, and what would help."""
    if folder == home:  # each commit would be a change to index
        return f"{folder} is the project itself; name a folder in it that is the index's own"
    if is_led_through_link(home, folder):
        why = "is a link"
    elif os.path.lexists(folder) and is_of_another_user(folder):
        return f"{folder} belongs to another user, so it is left alone"
    else:
        why = "was not written by this program for you on this machine"
    return f"{folder} {why}, so it is left alone; delete it to have the index there"


def _is_reserved(name: str) -> bool:
    return name in {MARK, LOCK} or is_table(name)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)


def _names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]

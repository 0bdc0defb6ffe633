"""Configuration files of other programs: read, backed up, and replaced atomically."""

import itertools
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vector_index_mcp.clients.edits import EditError
from vector_index_mcp.clients.target import Target, load, load_backup, system_errors
from vector_index_mcp.errors import ConfigFileError
from vector_index_mcp.files.beneath import Folder, opened

Edit = Callable[[str], str]
_BOM = "\ufeff"
_PERMISSIONS = 0o777  # no set-user-ID: a new file must not run as its owner
_MOST_BACKUPS = 100  # that are looked through; a cloned project may bring any number
_LONGEST_STEM_CHARS = 100  # of a name that is made longer
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a file."""

    target: Target
    before: bytes | None
    """None if there is no such file."""
    after: bytes | None
    """None if the file goes away."""
    restores: str | None = None
    """The name of the backup that `after` was read from."""
    place: Path | None = None
    """With the file go the folders around it that are empty then, as far as they lie below this."""

    @property
    def path(self) -> Path:
        """The file, as its client names it."""
        return self.target.path


def decoded(path: Path, data: bytes | None) -> str:
    """A file's text, without its byte order mark.

    Raises:
        ConfigFileError: If it is not UTF-8.
    """
    try:
        return (data or b"").decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigFileError(
            f"{path}, line {line}: it is not UTF-8; save it in that encoding"
        ) from error


def read(path: Path, data: bytes | None, reader: Callable[[str], _T]) -> _T:
    """What `reader` makes of the file's text.

    Raises:
        ConfigFileError: If it cannot read it; names the file, the line and what to do.
    """
    text = decoded(path, data)
    try:
        return reader(text)
    except EditError as error:
        where = f"{path}, line {error.line}" if error.line else str(path)
        raise ConfigFileError(f"{where}: {error}; correct that and run this again") from error


def edited(path: Path, data: bytes | None, edit: Edit) -> bytes:
    """The file's bytes after `edit`, with its byte order mark.

    Raises:
        ConfigFileError: If the text cannot be read or edited.
    """
    bom = _BOM if (data or b"").startswith(_BOM.encode()) else ""
    try:
        return (bom + read(path, data, edit)).encode()
    except UnicodeEncodeError as error:
        raise ConfigFileError(
            f"{path} cannot hold {error.object[error.start : error.end]!a}, a part of a path that "
            "is not UTF-8; rename that folder or file"
        ) from error


def undoing(target: Target, data: bytes, add: Edit, remove: Edit) -> Change:
    """The change that takes out of a file what `add` has put in.

    If nobody has changed the file since, it becomes byte for byte what it was: the backup, or no
    file.

    Raises:
        ConfigFileError: If the text cannot be read or edited.
    """
    after = edited(target.path, data, remove)
    for backup in _backups(target):
        with suppress(ConfigFileError):
            older = load_backup(target, backup)
            if older is not None and edited(target.path, older, add) == data:
                return Change(target, data, older, restores=backup)
    is_all_ours = edited(target.path, None, add) == data
    return Change(target, data, None if is_all_ours else after)


def apply(change: Change) -> Path | None:
    """Make the change; returns the backup that was made, if one was needed.

    If the path is a link, its target changes and the link stays. Mode and owner stay.

    Raises:
        ConfigFileError: If it cannot be written, or has changed since it was read.
    """
    target = change.target
    if load(target) != change.before:
        raise ConfigFileError(f"{change.path} has changed meanwhile; run this again")
    is_made = change.after is not None
    with system_errors(change.path, "written"), target.folder(is_made=is_made) as folder:
        like = None if change.before is None else _writable(target, folder)
        backup = None
        if change.after is None:
            folder.remove(target.real.name)
        else:
            if change.before is not None and like is not None and change.restores is None:
                backup = _back_up(target, change.before, like)
            _replace(folder, target.real.name, change.after, like)
        if change.restores is not None:
            with target.folder_of_backups() as backups:
                backups.remove(change.restores)
    if change.after is None and change.place is not None:
        _remove_empty_folders(change.path, change.place)
    return backup


def _remove_empty_folders(file: Path, place: Path) -> None:
    """Remove the folders between `place` and `file`, from below, up to one that is not empty.

    A link among them stays, and so does what it leads to.
    """
    folders = file.relative_to(place).parts[:-1]
    with suppress(OSError):
        while folders:
            *above, name = folders
            with opened(place, "/".join(above)) as folder:
                folder.remove_folder(name)
            folders = (*above,)


def _writable(target: Target, folder: Folder) -> os.stat_result:
    """The state of a file, if it may be written."""
    name = target.real.name
    status = folder.status(name)
    # The folder's mode alone would let us replace it; but somebody made it read-only on purpose.
    if not (folder.may_write(name) and status.st_mode & (stat.S_IWUSR | stat.S_IWGRP)):
        raise ConfigFileError(f"{target.path} is read-only; make it writable, or edit it by hand")
    return status


def _back_up(target: Target, data: bytes, like: os.stat_result) -> Path:
    """Keep `data` under a name that is free."""
    newest = next(iter(_backups(target)), None)
    with target.folder_of_backups() as folder:
        for number in itertools.count(_number(target, newest) + 1 if newest else 1):
            name = f"{target.name}.bak" + (f".{number}" if number > 1 else "")
            with suppress(FileExistsError):
                _create(folder, name, data, like)
                return target.path.with_name(name)
    raise AssertionError  # numbers do not end


def _replace(folder: Folder, name: str, data: bytes, like: os.stat_result | None) -> None:
    """Replace the file `name` atomically; what has that name now is removed without being opened.

    So nothing is written through a link, and a hard link to the old file keeps the old text.
    """
    new = f"{name[:_LONGEST_STEM_CHARS]}.{secrets.token_hex(4)}.tmp"
    _create(folder, new, data, like)
    try:
        folder.replace(new, name)
    except OSError:
        folder.remove(new)
        raise


def _create(folder: Folder, name: str, data: bytes, like: os.stat_result | None) -> None:
    """Make a new file with the mode and the owner of another; no file is left if that fails."""
    descriptor = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        with open(descriptor, "wb") as file:  # noqa: PTH123 - from a descriptor
            if like is not None:
                _make_like(descriptor, like)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
    except OSError:
        folder.remove(name)
        raise


def _make_like(descriptor: int, status: os.stat_result) -> None:
    if sys.platform == "win32":
        return
    with suppress(PermissionError):  # the file of another user in a shared folder
        os.fchown(descriptor, status.st_uid, status.st_gid)
    os.fchmod(descriptor, status.st_mode & _PERMISSIONS)


def _backups(target: Target) -> list[str]:
    """The file's backups, called `NAME.bak`, `NAME.bak.2` and so on; the newest first."""
    try:
        with target.folder_of_backups() as folder:
            names = folder.names()
    except FileNotFoundError:
        return []
    numbered = [(number, name) for name in names if (number := _number(target, name))]
    return [name for _, name in sorted(numbered, reverse=True)][:_MOST_BACKUPS]


def _number(target: Target, backup: str) -> int:
    """The number of a backup; 0 if it is none. Case is ignored, as some file systems do."""
    if not backup.lower().startswith(target.name.lower()):
        return 0
    match = re.fullmatch(r"\.bak(?:\.(\d{1,18}))?", backup[len(target.name) :], re.IGNORECASE)
    return int(match[1] or 1) if match else 0

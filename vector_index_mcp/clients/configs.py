"""Reads, backs up and atomically replaces configuration files of other programs."""

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
_PERMISSIONS = 0o777  # without set-user-ID: a new file must not run as its owner
_MOST_BACKUPS = 100  # at most this many are read; a cloned project may contain any number
_LONGEST_NAME_CHARS = 100  # a name is cut to this before a suffix is added
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a file."""

    target: Target
    """The file."""
    before: bytes | None
    """The present content; None if there is no such file."""
    after: bytes | None
    """The new content; None to remove the file."""
    restores: str | None = None
    """The name of the backup that `after` was read from; None if it is from none."""
    place: Path | None = None
    """If the file is removed, so are the folders below this one that are then empty."""

    @property
    def path(self) -> Path:
        """The file, as its client names it."""
        return self.target.path


def decoded(path: Path, data: bytes | None) -> str:
    """Return a file's text without its byte order mark.

    Raises:
        ConfigFileError: If it is not UTF-8.
    """
    try:
        return (data or b"").decode().removeprefix(_BOM)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigFileError(
            f"{path}, line {line}: the text is not UTF-8; save the file in that encoding"
        ) from error


def read(path: Path, data: bytes | None, reader: Callable[[str], _T]) -> _T:
    """Return what `reader` returns for the file's text.

    Raises:
        ConfigFileError: If `reader` fails; names the file, the line and what to do.
    """
    text = decoded(path, data)
    try:
        return reader(text)
    except EditError as error:
        where = f"{path}, line {error.line}" if error.line else str(path)
        raise ConfigFileError(f"{where}: {error}; correct that and run this again") from error


def edited(path: Path, data: bytes | None, edit: Edit) -> bytes:
    """Return the file's bytes after `edit`; a byte order mark stays.

    Raises:
        ConfigFileError: If the text cannot be read or edited.
    """
    bom = _BOM if (data or b"").startswith(_BOM.encode()) else ""
    try:
        return (bom + read(path, data, edit)).encode()
    except UnicodeEncodeError as error:
        raise ConfigFileError(
            f"{path} cannot contain {error.object[error.start : error.end]!a}, a part of a path "
            "that is not UTF-8; rename that folder or file"
        ) from error


def undoing(target: Target, data: bytes, add: Edit, remove: Edit) -> Change:
    """Return the change that undoes `add` in a file.

    If nobody has edited the file since, it becomes byte for byte what it was before: a backup is
    restored, or the file is removed.

    Args:
        target: The file.
        data: Its present content.
        add: The edit to undo.
        remove: The edit to make if the earlier content is unknown.

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
    """Make the change; return the path of the backup, or None if none was needed.

    If the path is a link, its target changes and the link stays. Mode and owner stay.

    Raises:
        ConfigFileError: If the file cannot be written, or has changed since it was read.
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
    """Remove the empty folders between `place` and `file`, the innermost first.

    A link among the folders stays, as does the folder that it leads to.
    """
    folders = file.relative_to(place).parts[:-1]
    with suppress(OSError):
        while folders:
            *above, name = folders
            with opened(place, "/".join(above)) as folder:
                folder.remove_folder(name)
            folders = (*above,)


def _writable(target: Target, folder: Folder) -> os.stat_result:
    """Return the status of a file.

    Raises:
        ConfigFileError: If the file is read-only.
    """
    name = target.real.name
    status = folder.status(name)
    # We could replace it, since its folder is writable; but somebody made it read-only on purpose.
    if not (folder.may_write(name) and status.st_mode & (stat.S_IWUSR | stat.S_IWGRP)):
        raise ConfigFileError(f"{target.path} is read-only; make it writable, or edit it by hand")
    return status


def _back_up(target: Target, data: bytes, like: os.stat_result) -> Path:
    """Write `data` to a backup with the next free name; return its path."""
    newest = next(iter(_backups(target)), None)
    with target.folder_of_backups() as folder:
        for number in itertools.count(_number(target, newest) + 1 if newest else 1):
            name = f"{target.name}.bak" + (f".{number}" if number > 1 else "")
            with suppress(FileExistsError):
                _create(folder, name, data, like)
                return target.path.with_name(name)
    raise AssertionError  # numbers do not end


def _replace(folder: Folder, name: str, data: bytes, like: os.stat_result | None) -> None:
    """Replace the file `name` atomically, without opening the old one.

    So nothing is written through a link, and a hard link to the old file keeps the old text.
    """
    new = f"{name[:_LONGEST_NAME_CHARS]}.{secrets.token_hex(4)}.tmp"
    _create(folder, new, data, like)
    try:
        folder.replace(new, name)
    except OSError:
        folder.remove(new)
        raise


def _create(folder: Folder, name: str, data: bytes, like: os.stat_result | None) -> None:
    """Create a file with the mode and owner of `like`; if that fails, no file is left."""
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
    """Return the names of the file's backups, `NAME.bak`, `NAME.bak.2` and so on; newest first."""
    try:
        with target.folder_of_backups() as folder:
            names = folder.names()
    except FileNotFoundError:
        return []
    numbered = [(number, name) for name in names if (number := _number(target, name))]
    return [name for _, name in sorted(numbered, reverse=True)][:_MOST_BACKUPS]


def _number(target: Target, backup: str) -> int:
    """Return the number of a backup, or 0 if the name is not that of a backup.

    Case is ignored, as some file systems do.
    """
    if not backup.lower().startswith(target.name.lower()):
        return 0
    match = re.fullmatch(r"\.bak(?:\.(\d{1,18}))?", backup[len(target.name) :], re.IGNORECASE)
    return int(match[1] or 1) if match else 0

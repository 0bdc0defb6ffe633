"""Files that belong to somebody else: read, backed up, replaced at one blow."""

import glob
import os
import re
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from vector_index_mcp.clients.edits import EditError
from vector_index_mcp.errors import ConfigFileError

Edit = Callable[[str], str]
_BOM = "\ufeff"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to become of a file."""

    path: Path
    before: bytes | None
    """None if there is no such file."""
    after: bytes | None
    """None if the file goes away."""
    restores: Path | None = None
    """The backup that `after` was read from."""


def load(path: Path) -> bytes | None:
    """What a file holds; None if there is no such file.

    Raises:
        ConfigFileError: If it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be read: {error.strerror}; mend that and run this again"
        ) from error


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
        ConfigFileError: If it can make nothing of it; names the file, the line and what to do.
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
            f"{path} cannot hold {error.object[error.start : error.end]!a}, a part of a name that "
            "is not UTF-8; rename what is called so"
        ) from error


def undoing(path: Path, data: bytes, add: Edit, remove: Edit) -> Change:
    """What takes away from a file what `add` has added.

    If nobody has changed it since, it becomes what it was to the byte: the backup, or no file.

    Raises:
        ConfigFileError: If the text cannot be read or edited.
    """
    after = edited(path, data, remove)
    for backup in _backups(path):
        with suppress(ConfigFileError):
            older = load(backup)
            if edited(backup, older, add) == data:
                return Change(path, data, older, restores=backup)
    is_all_ours = edited(path, None, add) == data
    return Change(path, data, None if is_all_ours else after)


def apply(change: Change) -> Path | None:
    """Make the change; returns the backup that was made, if one was needed.

    Links are followed: what they lead to changes, they stay. Mode and owner stay.

    Raises:
        ConfigFileError: If it cannot be written, or has changed since it was read.
    """
    target = change.path.resolve()
    try:
        if load(target) != change.before:
            raise ConfigFileError(f"{change.path} has changed meanwhile; run this again")
        _check_writable(change.path, target)
        backup = None
        if change.after is None:
            target.unlink()
        else:
            if change.before is not None and change.restores is None:
                backup = _next_backup(change.path)
                _write(backup, change.before, like=target)
            target.parent.mkdir(parents=True, exist_ok=True)
            _write(target, change.after, like=target)
        if change.restores is not None:
            change.restores.unlink()
    except OSError as error:
        raise ConfigFileError(f"{change.path} cannot be written: {error.strerror}") from error
    return backup


def _check_writable(path: Path, target: Path) -> None:
    # Replacing a file asks nobody: the folder's mode would do. But who made it read-only meant it.
    if target.exists() and not (
        os.access(target, os.W_OK) and target.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP)
    ):
        raise ConfigFileError(f"{path} is read-only; make it writable, or edit it by hand")


def _write(path: Path, data: bytes, *, like: Path) -> None:
    """Let `path` hold `data`, all or nothing; its mode and owner are those of `like`, if it is."""
    new = path.with_name(f"{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with new.open("xb") as file:
            if like.exists():
                status = like.stat()
                if hasattr(os, "chown"):
                    with suppress(PermissionError):  # the file of another user in a shared folder
                        os.chown(new, status.st_uid, status.st_gid)
                new.chmod(stat.S_IMODE(status.st_mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)


def _backups(path: Path) -> list[Path]:
    """The file's backups, called `NAME.bak`, `NAME.bak.2` and so on; the newest first."""
    found = path.parent.glob(f"{glob.escape(path.name)}.bak*")
    numbered = [(number, backup) for backup in found if (number := _number(path, backup))]
    return [backup for _, backup in sorted(numbered, reverse=True)]


def _next_backup(path: Path) -> Path:
    newest = next(iter(_backups(path)), None)
    number = _number(path, newest) + 1 if newest else 1
    return path.with_name(f"{path.name}.bak" + (f".{number}" if number > 1 else ""))


def _number(path: Path, backup: Path) -> int:
    match = re.fullmatch(r"\.bak(?:\.(\d+))?", backup.name.removeprefix(path.name))
    return int(match[1] or 1) if match else 0

"""The mark in an index's folder, a file with a random number; and how small files are read."""

import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Any

from vector_index_mcp.files.plain import content_of
from vector_index_mcp.files.users import is_of_another_user

MARK = "index.mark"
RECORDS = "indexes"
"""The folder of all records, in the state folder."""
NUMBER = re.compile(r"[0-9a-f]{32}")
_LONGEST_MARK_BYTES = 100

_Place = tuple[int, int]  # (inode, ctime_ns) of a file


def place_of(path: Path) -> _Place | None:
    """The inode and ctime of the file at `path`; None if there is no regular file."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return (status.st_ino, status.st_ctime_ns) if stat.S_ISREG(status.st_mode) else None


def place_in(record: dict[str, Any]) -> _Place | None:
    """The inode and ctime of the mark, as an index's record has them; None if it has none."""
    match record.get("mark"):
        case [int(inode), int(ctime_ns)]:
            return inode, ctime_ns
    return None


def number_in(folder: Path) -> str | None:
    """The number in the mark of `folder`; None if there is no sound mark."""
    try:
        data = content_of(folder / MARK, _LONGEST_MARK_BYTES, follows_links=False)
    except OSError:
        return None
    text = data.decode("ascii", "replace").strip()
    return text if NUMBER.fullmatch(text) else None


def has_record(folder: Path, state_folder: Path) -> bool:
    """Whether the index in `folder` is ours or a copy of ours, by its mark alone.

    `ownership` knows more, but it loads LanceDB.
    """
    try:
        if folder.is_symlink() or is_of_another_user(folder):
            return False
        number = number_in(folder)
        return number is not None and (state_folder / RECORDS / f"{number}.json").is_file()
    except (OSError, ValueError):
        return False


def text_in(path: Path, most_bytes: int) -> str:
    """The beginning of a file, so that nobody waits for a pipe, or reads a device for ever.

    Raises:
        OSError: If it is no file, or cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as file:  # noqa: PTH123 - from a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a file", str(path))
        return file.read(most_bytes).decode("utf-8", "replace")


def replace(path: Path, text: str) -> None:
    """Replace a file atomically by a new one. Follows no link."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    descriptor = os.open(part, flags, 0o600)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - from a descriptor
            file.write(text)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise

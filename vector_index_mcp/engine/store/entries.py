"""What lies in the folder of a local index: our tables, which consist of plain files and folders.

LanceDB writes through a link, into whatever it leads to, and waits for ever for somebody who writes
into a pipe. So each table is looked at before LanceDB touches it.
"""

import contextlib
import os
import re
import shutil
import stat
from pathlib import Path

from vector_index_mcp.errors import DamagedIndexError, Problem

TABLE = re.compile(
    r"(?:(?:chunks|files)(?:_(?P<generation>[0-9]{1,15}))?|manifest)(?P<ending>\.lance)?"
)
_HINT = "latest_version_hint.json"  # the only file that LanceDB overwrites


def is_table(name: str) -> bool:
    """Return whether an entry in an index's folder has the name of a table of ours."""
    match = TABLE.fullmatch(name)
    return match is not None and match["ending"] is not None


def check_plain(folder: Path) -> None:
    """Check that the tables in `folder` consist of files and folders; nothing there is fine.

    Raises:
        DamagedIndexError: If there is a link, a pipe or the like.
    """
    for entry in _entries(folder):
        if not entry.is_file(follow_symlinks=False):
            raise _not_plain(entry.path)


class Written:
    """The files of the tables in a folder, as they were at the last look.

    LanceDB replaces and removes files, but changes none that it has written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, tuple[int, int]] = {}

    def look(self) -> None:
        """Compare them with the last look. No process may be writing them.

        Raises:
            DamagedIndexError: If somebody has changed one.
        """
        found: dict[str, tuple[int, int]] = {}
        for entry in _entries(self._folder):
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(status.st_mode):
                raise _not_plain(entry.path)
            if entry.name == _HINT:
                continue
            found[entry.path] = now = status.st_size, status.st_mtime_ns
            if self._known.get(entry.path, now) != now:
                raise DamagedIndexError(
                    f"another program has changed {entry.path}", Problem.INDEX_DAMAGED
                )
        self._known = found


def remove_tables(folder: Path) -> None:
    """Remove our tables from `folder`; nothing else in it, and nothing through a link."""
    for table in filter(lambda entry: is_table(entry.name), folder.glob("*")):
        if table.is_symlink() or not table.is_dir():
            table.unlink(missing_ok=True)
        else:
            shutil.rmtree(table, ignore_errors=True)


def size_of(folder: Path) -> int:
    """Return the bytes of all files below `folder`."""
    total = 0
    for place, _, names in os.walk(folder):  # unlike rglob, it ignores folders that vanish
        for name in names:
            with contextlib.suppress(OSError):  # a commit removed it meanwhile
                total += Path(place, name).stat().st_size
    return total


def _entries(folder: Path) -> "list[os.DirEntry[str]]":
    """Return everything below the tables in `folder` that is no folder."""
    found: list[os.DirEntry[str]] = []
    pending = [str(folder)]
    while pending:
        here = pending.pop()
        is_top = here == str(folder)
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if is_top and not is_table(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        found.append(entry)
        except (FileNotFoundError, NotADirectoryError):  # removed meanwhile
            continue
    return found


def _not_plain(path: str) -> DamagedIndexError:
    return DamagedIndexError(
        f"{path} is no plain file or folder, so it is neither read nor written",
        Problem.INDEX_DAMAGED,
    )

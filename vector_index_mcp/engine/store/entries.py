"""What lies in the folder of a local index: our tables, which consist of plain files and folders.

LanceDB writes through a link, into whatever it leads to, and waits for ever for somebody who writes
into a pipe. So each table is looked at before LanceDB touches it.
"""

import contextlib
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from vector_index_mcp.errors import DamagedIndexError, Problem, StorageError
from vector_index_mcp.objects import within

TABLE = re.compile(
    r"(?:(?:chunks|files)(?:_(?P<generation>[0-9]{1,15}))?|manifest)(?P<ending>\.lance)?"
)
HINT = "latest_version_hint.json"
"""The only file that LanceDB overwrites."""
_REMOVED = (FileNotFoundError, NotADirectoryError)  # between two steps of a walk


def is_table(name: str) -> bool:
    """Return whether an entry in an index's folder has the name of a table of ours."""
    match = TABLE.fullmatch(name)
    return match is not None and match["ending"] is not None


def prepare_folder(folder: Path, own_names: Collection[str] = (), home: Path | None = None) -> None:
    """Make the folder of a local index, hidden from git and closed to other users.

    Args:
        folder: The folder.
        own_names: The names of our files in it, beside the tables.
        home: A folder above it that is not made, such as a project: it may have just been deleted.

    Raises:
        StoreError: If the folder cannot be made or written.
    """
    try:
        is_inside = home is not None and home in folder.parents
        for above in reversed(folder.parents) if is_inside else []:
            if home in above.parents:
                above.mkdir(exist_ok=True)
        folder.mkdir(mode=0o700, parents=not is_inside, exist_ok=True)  # it holds private texts
        # If the folder contains other things, its owner decides what git ignores there.
        if all(is_table(entry.name) or entry.name in own_names for entry in folder.iterdir()):
            # Never over an existing file: it may be a link to another one.
            with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x") as file:
                file.write("*\n")
            with contextlib.suppress(PermissionError):  # FAT knows no modes
                folder.chmod(0o700)
    except OSError as error:
        raise StorageError(
            f"the index folder {folder} cannot be written ({error.strerror})",
            Problem.INDEX_UNWRITABLE,
        ) from error


def check_plain(folder: Path) -> None:
    """Check that the tables in `folder` consist of files and folders; nothing there is fine.

    Raises:
        DamagedIndexError: If there is a link, a pipe or the like.
    """
    for entry in files_below(folder):
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
        for entry in files_below(self._folder):
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(status.st_mode):
                raise _not_plain(entry.path)
            if entry.name == HINT:
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
    for place, _, names in within.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # a commit removed it meanwhile
                total += Path(place, name).lstat().st_size
    return total


def files_below(
    folder: Path, passed_over: type[OSError] | tuple[type[OSError], ...] = _REMOVED
) -> "Iterator[os.DirEntry[str]]":
    """Yield everything below the tables in `folder` that is no folder.

    Args:
        folder: The folder of an index; nothing there is fine.
        passed_over: The errors for which a folder inside is left out; others are raised.
    """
    pending = [each for each in _entries(folder, passed_over) if is_table(each[0].name)]
    while pending:
        entry, is_folder = pending.pop()
        if is_folder:
            pending += _entries(entry, passed_over)
        else:
            yield entry


def _entries(
    folder: "os.PathLike[str]", passed_over: type[OSError] | tuple[type[OSError], ...]
) -> "list[tuple[os.DirEntry[str], bool]]":
    """Return what lies in a folder, each with whether it is a folder, too."""
    try:
        with os.scandir(folder) as entries:
            return [(entry, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except passed_over:
        return []


def _not_plain(path: str) -> DamagedIndexError:
    return DamagedIndexError(
        f"{path} is no plain file or folder, so it is neither read nor written",
        Problem.INDEX_DAMAGED,
    )

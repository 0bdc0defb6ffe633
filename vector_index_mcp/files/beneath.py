"""Opens files and folders below a root folder without following any link.

A path that was checked a moment ago may lead elsewhere now, because somebody may have replaced a
folder in it by a link. So each folder of the path is opened from the one above it. This also
reaches paths that are too long for the system. Windows cannot open files relative to a folder;
there, the whole path is checked before it is opened.
"""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_CAN_STEP = os.open in os.supports_dir_fd and os.scandir in os.supports_fd
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = getattr(os, "O_DIRECTORY", 0) | _NO_LINK | os.O_RDONLY
# With O_PATH, a folder on the way need not be readable.
_STEP = _FOLDER | getattr(os, "O_PATH", 0)
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # links are not followed


def tells_absence(error: OSError) -> bool:
    """Return whether an error of these functions means that nothing is there.

    After any other error the file may still exist: the right to look is missing, no descriptor is
    left, or the file system is out of reach.
    """
    return error.errno in _ABSENT


def open_file(root: Path, key: str, flags: int) -> int:
    """Open the file `key` below `root` with `flags`, and return its descriptor.

    Raises:
        NotADirectoryError: If a folder in the path is a link, or not a folder.
        OSError: If there is no such file, if it is a link itself, or if it cannot be opened.
    """
    flags |= _NO_LINK
    folder, name = _parted(key)
    if not _CAN_STEP:
        return os.open(_checked(root, folder) / name, flags)
    at = _step_down(root, folder)
    try:
        return os.open(name, flags, dir_fd=at)
    finally:
        os.close(at)


def status(root: Path, key: str) -> os.stat_result:
    """Return the status of the file or folder `key` below `root`; for a link, the link's own.

    Raises:
        OSError: See `open_file`.
    """
    folder, name = _parted(key)
    if not _CAN_STEP:
        return (_checked(root, folder) / name).lstat()
    at = _step_down(root, folder)
    try:
        return os.stat(name or ".", dir_fd=at, follow_symlinks=False)
    finally:
        os.close(at)


@contextmanager
def entries(root: Path, folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """List `folder` below `root`; in this context each entry can be asked for its status.

    Raises:
        OSError: See `open_file`.
    """
    above, name = _parted(folder)
    if not _CAN_STEP:
        with os.scandir(_checked(root, folder)) as found:
            yield found
        return
    at = _step_down(root, above)
    try:
        here = os.open(name or ".", _FOLDER, dir_fd=at)
    finally:
        os.close(at)
    try:
        with os.scandir(here) as found:
            yield found
    finally:
        os.close(here)


@dataclass(frozen=True, slots=True)
class Folder:
    """An open folder: the methods act on entries of this very folder and follow no link.

    The methods raise OSError, as the functions of `os` do.
    """

    path: Path
    at: int | None
    """The folder's descriptor; None where the system cannot use one (Windows)."""

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """Open an entry that is not a link, and return its descriptor."""
        return os.open(self._way(name), flags | _NO_LINK, mode, dir_fd=self.at)

    def status(self, name: str) -> os.stat_result:
        """Return the status of an entry; for a link, the link's own."""
        return os.stat(self._way(name), dir_fd=self.at, follow_symlinks=False)

    def may_write(self, name: str) -> bool:
        """Return whether we have the right to write to an entry."""
        return os.access(self._way(name), os.W_OK, dir_fd=self.at)

    def replace(self, old: str, new: str) -> None:
        """Rename an entry; an entry that has the new name already is replaced."""
        os.replace(self._way(old), self._way(new), src_dir_fd=self.at, dst_dir_fd=self.at)

    def move(self, name: str, to: "Folder", new: str) -> None:
        """Move an entry into another folder; an entry that has the new name there is replaced."""
        os.replace(self._way(name), to._way(new), src_dir_fd=self.at, dst_dir_fd=to.at)

    def link(self, name: str, to: "Folder", new: str) -> None:
        """Give a file a second name, in another folder."""
        os.link(
            self._way(name),
            to._way(new),
            src_dir_fd=self.at,
            dst_dir_fd=to.at,
            follow_symlinks=False,
        )

    def make(self, name: str) -> None:
        """Make a folder."""
        os.mkdir(self._way(name), dir_fd=self.at)

    def remove_folder(self, name: str) -> None:
        """Remove an empty folder."""
        os.rmdir(self._way(name), dir_fd=self.at)

    @contextmanager
    def below(self, name: str) -> "Iterator[Folder]":
        """Open a folder in this one for the time of the context."""
        if self.at is None:
            yield Folder(_checked(self.path, name), None)
            return
        at = os.open(name, _STEP, dir_fd=self.at)
        try:
            yield Folder(self.path / name, at)
        finally:
            os.close(at)

    @property
    def mount(self) -> tuple[int, str]:
        """The device and, on Linux, the id of the mount that the folder is part of."""
        if self.at is None:
            return self.path.stat().st_dev, ""
        # On Linux the device is not enough: a folder of the same device may be mounted again.
        info = ""
        with suppress(OSError):  # not Linux
            info = Path(f"/proc/self/fdinfo/{self.at}").read_text(encoding="ascii")
        found = re.search(r"^mnt_id:\s*(\d+)$", info, re.MULTILINE)
        return os.fstat(self.at).st_dev, found[1] if found else ""

    def sync(self) -> None:
        """Sync the list of entries to the disk, so that it survives a crash of the machine."""
        if self.at is None:
            return
        readable = os.open(".", _FOLDER, dir_fd=self.at)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)

    def remove(self, name: str) -> None:
        """Remove an entry; for a link, the link itself."""
        os.unlink(self._way(name), dir_fd=self.at)

    def names(self) -> list[str]:
        """Return the names of its entries, in no order."""
        readable = None if self.at is None else os.open(".", _FOLDER, dir_fd=self.at)
        try:
            with os.scandir(self.path if readable is None else readable) as found:
                return [entry.name for entry in found]
        finally:
            if readable is not None:
                os.close(readable)

    def _way(self, name: str) -> str:
        return name if self.at is not None else str(self.path / name)


@contextmanager
def opened(root: Path, folder: str, *, is_made: bool = False) -> Iterator[Folder]:
    """Open `folder` below `root` for the time of the context; create it first if `is_made`.

    Raises:
        OSError: See `open_file`.
    """
    if ".." in folder.split("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if not _CAN_STEP:
        path = _checked(root, folder)
        if is_made:
            path.mkdir(parents=True, exist_ok=True)
        yield Folder(path, None)
        return
    at = _step_down(root, folder, is_made=is_made)
    try:
        yield Folder(root / folder, at)
    finally:
        os.close(at)


def _parted(key: str) -> tuple[str, str]:
    """Split a key into folder and name; `..` in it is refused."""
    if ".." in key.split("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
    folder, _, name = key.rpartition("/")
    return folder, name


def _step_down(root: Path, folder: str, *, is_made: bool = False) -> int:
    """Return a descriptor relative to which entries of `folder` can be opened."""
    at = os.open(root, os.O_RDONLY | getattr(os, "O_PATH", 0))  # the root itself may be a link
    for name in folder.split("/") if folder else ():
        try:
            if is_made:
                with suppress(FileExistsError):
                    os.mkdir(name, dir_fd=at)
            below = os.open(name, _STEP, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _checked(root: Path, folder: str) -> Path:
    path = root / folder
    if not path.resolve().is_relative_to(root.resolve()):
        raise NotADirectoryError(errno.ENOTDIR, "a link leads out of the project", str(path))
    return path

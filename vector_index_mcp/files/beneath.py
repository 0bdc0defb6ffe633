"""Opens what lies below a folder, and nothing else: no link is followed anywhere on the way.

A path that was checked a moment ago may lead elsewhere now: any folder on the way may have been
replaced by a link. So the way is gone step by step, from one open folder to the next, which also
leads to where a path is too long for the system. On Windows, which knows no such steps, the path is
looked at as a whole before it is opened.
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
# With O_PATH a folder need not be readable to be passed through.
_STEP = _FOLDER | getattr(os, "O_PATH", 0)
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})  # links are not followed


def tells_absence(error: OSError) -> bool:
    """Whether an error of these functions says that nothing is there.

    Any other says nothing of the file, which may be there as it was: no right to look, no
    descriptor left, a file system that is out of reach.
    """
    return error.errno in _ABSENT


def open_file(root: Path, key: str, flags: int) -> int:
    """A descriptor of the file `key` below `root`, open with `flags`.

    Raises:
        NotADirectoryError: If something on the way is not a folder (any more), but a link.
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
    """The state of the file or folder `key` below `root`; of a link, its own.

    Raises:
        OSError: As above, if there is none.
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
    """What lies in `folder` below `root`; each entry can be asked for its state meanwhile.

    Raises:
        OSError: As above.
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
    """A folder that is held open: what happens to its entries happens there, and to no link.

    The methods raise OSError, as the functions of `os` that they are named after.
    """

    path: Path
    at: int | None
    """Its descriptor; None where entries cannot be reached by one."""

    def open(self, name: str, flags: int, mode: int = 0o666) -> int:
        """A descriptor of an entry that is no link."""
        return os.open(self._way(name), flags | _NO_LINK, mode, dir_fd=self.at)

    def status(self, name: str) -> os.stat_result:
        """The state of an entry; of a link, its own."""
        return os.stat(self._way(name), dir_fd=self.at, follow_symlinks=False)

    def may_write(self, name: str) -> bool:
        """Whether we have the right to write to an entry."""
        return os.access(self._way(name), os.W_OK, dir_fd=self.at)

    def replace(self, old: str, new: str) -> None:
        """Give an entry the name of another, which goes away if it is there."""
        os.replace(self._way(old), self._way(new), src_dir_fd=self.at, dst_dir_fd=self.at)

    def move(self, name: str, to: "Folder", new: str) -> None:
        """Put an entry into another folder, in the place of what has that name there."""
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
        """A folder in this one, held open."""
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
        """Of which mount it is a part, as far as the system tells."""
        if self.at is None:
            return self.path.stat().st_dev, ""
        told = ""
        with suppress(OSError):  # no Linux; there, a folder can be mounted twice from one device
            told = Path(f"/proc/self/fdinfo/{self.at}").read_text(encoding="ascii")
        found = re.search(r"^mnt_id:\s*(\d+)$", told, re.MULTILINE)
        return os.fstat(self.at).st_dev, found[1] if found else ""

    def sync(self) -> None:
        """Have the disk keep which entries there are, whatever happens to the machine."""
        if self.at is None:
            return
        readable = os.open(".", _FOLDER, dir_fd=self.at)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)

    def remove(self, name: str) -> None:
        """Remove an entry; of a link, the link."""
        os.unlink(self._way(name), dir_fd=self.at)

    def names(self) -> list[str]:
        """The names of its entries, in no order."""
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
    """The folder `folder` below `root`, made if it is not there and `is_made`.

    Raises:
        OSError: As above.
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
    """The folder and the name; there is no way up."""
    if ".." in key.split("/"):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), key)
    folder, _, name = key.rpartition("/")
    return folder, name


def _step_down(root: Path, folder: str, *, is_made: bool = False) -> int:
    """A descriptor by which entries of `folder` can be opened."""
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

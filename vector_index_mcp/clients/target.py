"""Which file a client's path leads to, and how to open it so that nobody can swap it meanwhile.

A project may have been cloned from anywhere, and any name in it may be a link. So links are
resolved once, and shown; the file is then opened from the project's folder downwards without
following any link, and a link that appears meanwhile is an error. The user's own files may be links
to any place.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.errors import ConfigFileError
from vector_index_mcp.files import beneath

_MOST_BYTES_IN_A_PROJECT = 1_000_000  # a hundred times what people write by hand
_MOST_BYTES = 20_000_000  # some clients keep their history beside their configuration
_GIT_FOLDER = ".git"
# Opening a pipe would wait for its other end, and a terminal could become our controlling terminal.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True, slots=True)
class Target:
    """A file that is to be read and changed."""

    path: Path
    """As its client names it."""
    real: Path
    """What that leads to."""
    backups: Path
    """The folder that `path` lies in, where backups go; its links are resolved, too."""
    project: Path | None = None
    """The folder that none of these leaves; None for a file of the user's own."""

    @property
    def name(self) -> str:
        """What backups are named after."""
        return self.path.name

    @property
    def is_link(self) -> bool:
        """Whether a link is on the way to the file."""
        return self.real != self.path

    @contextmanager
    def folder(self, *, is_made: bool = False) -> Iterator[beneath.Folder]:
        """The folder of the file, held open.

        Raises:
            OSError: If there is none and it is not to be made, or if it cannot be opened.
        """
        if is_made and self.project is None:
            self.real.parent.mkdir(parents=True, exist_ok=True)
        with self._opened(self.real.parent, is_made=is_made) as folder:
            yield folder

    @contextmanager
    def folder_of_backups(self) -> Iterator[beneath.Folder]:
        """The folder of the backups, held open.

        Raises:
            OSError: As above.
        """
        with self._opened(self.backups) as folder:
            yield folder

    @contextmanager
    def _opened(self, path: Path, *, is_made: bool = False) -> Iterator[beneath.Folder]:
        root = self.project or path
        below = path.relative_to(root)
        key = below.as_posix() if below.parts else ""
        with beneath.opened(root, key, is_made=is_made and self.project is not None) as folder:
            yield folder


def target_of(path: Path, project: Path | None = None) -> Target:
    """What `path` leads to.

    Args:
        path: The file, as a client names it.
        project: The folder it belongs to, absolute and resolved; None if it is the user's own.

    Raises:
        ConfigFileError: If it leads out of its project, or to a file of git's or of another kind.
    """
    with system_errors(path, "read"):  # a link may go away meanwhile
        # os.path has an answer even for links that lead in a circle.
        real, folder = Path(os.path.realpath(path)), Path(os.path.realpath(path.parent))
    target = Target(path, real, folder, project)
    if project is not None:
        _check_stays(target, project)
    return target


def _check_stays(target: Target, project: Path) -> None:
    path, real = target.path, target.real
    if not (real.is_relative_to(project) and target.backups.is_relative_to(project)):
        raise ConfigFileError(
            f"{path} is a link to {real}, outside of the project, and is left alone; "
            "let it be a file of the project, or change what it leads to by hand"
        )
    if _GIT_FOLDER in {part.lower() for part in real.relative_to(project).parts}:
        raise ConfigFileError(
            f"{path} is a link to {real}, which is git's, and is left alone; "
            "let it be a file of its own"
        )
    if real.suffix.lower() != path.suffix.lower():
        raise ConfigFileError(
            f"{path} is a link to {real}, a file of another kind, and is left alone; "
            "let it be a file of its own"
        )


def load(target: Target) -> bytes | None:
    """What a file holds; None if there is no such file.

    Raises:
        ConfigFileError: If it cannot be read, is too large, or is no plain file.
    """
    with system_errors(target.path, "read"):
        try:
            with target.folder() as folder:
                return read(folder, target.real.name, _most_bytes(target), target.path)
        except FileNotFoundError:
            return None


def load_backup(target: Target, name: str) -> bytes | None:
    """What a backup of it holds; None if it is gone or cannot be read."""
    try:
        with target.folder_of_backups() as folder:
            return read(folder, name, _most_bytes(target), target.backups / name)
    except (OSError, ConfigFileError):
        return None


def read(folder: beneath.Folder, name: str, most_bytes: int, path: Path) -> bytes:
    """What a plain file holds; errors name it `path`.

    Raises:
        ConfigFileError: If it is no plain file, or larger than `most_bytes`.
        OSError: If it cannot be read.
    """
    # Before it is opened: some devices act when they are opened.
    _check_is_plain(folder.status(name), path)
    with open(folder.open(name, _READING), "rb") as file:  # noqa: PTH123 - from a descriptor
        _check_is_plain(os.fstat(file.fileno()), path)
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ConfigFileError(
            f"{path} is larger than {most_bytes / 1e6:.0f} MB and is left alone; edit it by hand"
        )
    return data


@contextmanager
def system_errors(path: Path, done: str) -> Iterator[None]:
    """Turns errors of the system into one that names the file.

    Raises:
        ConfigFileError: In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be {done}: {error.strerror}; correct that and run this again"
        ) from error


def _most_bytes(target: Target) -> int:
    return _MOST_BYTES if target.project is None else _MOST_BYTES_IN_A_PROJECT


def _check_is_plain(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigFileError(f"{path} cannot be read: it is no plain file; remove it")

"""Finds the file that a client's path leads to, and opens it so that nobody can swap it meanwhile.

A project may come from anywhere, and any name in it may be a link. So we resolve links once and
show the result. Then we open the file from the project's folder downwards without following links;
a link that has appeared meanwhile is an error. The user's own files may be links to any place.
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
# Without these, opening a pipe would wait for its other end, and opening a terminal could make it
# our controlling terminal.
_READING = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True, slots=True)
class Target:
    """A file to read and change."""

    path: Path
    """The path that the client uses."""
    real: Path
    """The same path with all links resolved."""
    backups: Path
    """The folder of `path`, with links resolved; backups go there."""
    project: Path | None = None
    """The folder that contains all of these; None for a file of the user's own."""

    @property
    def name(self) -> str:
        """The file's name, which the names of backups begin with."""
        return self.path.name

    @property
    def is_link(self) -> bool:
        """Whether the path is a link or goes through one."""
        return self.real != self.path

    @contextmanager
    def folder(self, *, is_made: bool = False) -> Iterator[beneath.Folder]:
        """Open the folder of the file while the context lasts.

        Args:
            is_made: Create the folder if it does not exist.

        Raises:
            OSError: If the folder does not exist and is not created, or cannot be opened.
        """
        if is_made and self.project is None:
            self.real.parent.mkdir(parents=True, exist_ok=True)
        with self._opened(self.real.parent, is_made=is_made) as folder:
            yield folder

    @contextmanager
    def folder_of_backups(self) -> Iterator[beneath.Folder]:
        """Open the folder of the backups while the context lasts.

        Raises:
            OSError: If the folder cannot be opened.
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
    """Return the file that `path` leads to.

    Args:
        path: The path that the client uses.
        project: The project that the file belongs to, absolute and with links resolved; None if
            the file is the user's own.

    Raises:
        ConfigFileError: If the path leads out of its project, into git's folder, or to a file with
            another extension.
    """
    with system_errors(path, "read"):  # a link may go away meanwhile
        # os.path.realpath returns a path even for links that lead in a circle.
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
            "replace the link by a file, or edit the file that it leads to by hand"
        )
    if _GIT_FOLDER in {part.lower() for part in real.relative_to(project).parts}:
        raise ConfigFileError(
            f"{path} is a link to {real}, which belongs to git, and is left alone; "
            "replace the link by a file"
        )
    if real.suffix.lower() != path.suffix.lower():
        raise ConfigFileError(
            f"{path} is a link to {real}, a file of another kind, and is left alone; "
            "replace the link by a file"
        )


def load(target: Target) -> bytes | None:
    """Return the content of a file; None if there is no such file.

    Raises:
        ConfigFileError: If the file cannot be read, is too large, or is not a regular file.
    """
    with system_errors(target.path, "read"):
        try:
            with target.folder() as folder:
                return read(folder, target.real.name, _most_bytes(target), target.path)
        except FileNotFoundError:
            return None


def load_backup(target: Target, name: str) -> bytes | None:
    """Return the content of a backup; None if it is gone or cannot be read."""
    try:
        with target.folder_of_backups() as folder:
            return read(folder, name, _most_bytes(target), target.backups / name)
    except (OSError, ConfigFileError):
        return None


def read(folder: beneath.Folder, name: str, most_bytes: int, path: Path) -> bytes:
    """Return the content of a regular file; error messages name it `path`.

    Raises:
        ConfigFileError: If it is not a regular file, or is larger than `most_bytes`.
        OSError: If it cannot be read.
    """
    # This check comes before opening, since opening alone makes some devices act.
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
    """Turn an OSError into an error that names the file.

    Args:
        path: The file.
        done: What could not be done with it: "read" or "written".

    Raises:
        ConfigFileError: In place of an OSError.
    """
    try:
        yield
    except OSError as error:
        raise ConfigFileError(
            f"{path} cannot be {done}: {error.strerror or error}; correct that and run this again"
        ) from error


def _most_bytes(target: Target) -> int:
    return _MOST_BYTES if target.project is None else _MOST_BYTES_IN_A_PROJECT


def _check_is_plain(status: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigFileError(f"{path} cannot be read: it is not a regular file; remove it")

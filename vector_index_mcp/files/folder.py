"""A folder that is indexed: its name, its place, which files belong to it and how they are read.

An index names each file by a key: the folder's name, a slash, and the file's path in the folder.
The single folder of a codebase has no name, so there a key is the path alone.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from vector_index_mcp.errors import ProjectError

_UNUSABLE_NAMES = frozenset({".", ".."})
# The system generates the contents of these folders when they are read, without end.
_MADE_BY_THE_SYSTEM = {("/", "proc"), ("/", "sys")}
_LARGEST_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Which files of a folder are indexed, in addition to its own ignore files."""

    patterns: tuple[str, ...] = ()
    """Exclusions in .gitignore syntax."""
    mask: str = ""
    """A glob that files must match; empty for all files."""
    excluded_folders: tuple[str, ...] = ()
    """The paths of folders that are never entered."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How the files of a folder are read."""

    max_file_bytes: int = _LARGEST_FILE_BYTES
    """Larger files are skipped."""
    masks_credentials: bool = True
    """Whether asterisks replace credentials in texts, and files that hold keys are skipped."""
    skips_minified: bool = True
    """Whether files with minified or generated text, in very long lines, are skipped."""
    converts: bool = False
    """Whether HTML, notebooks, PDF and Word are converted to Markdown."""

    @property
    def version(self) -> str:
        """A text that differs whenever the same file would be read as another text."""
        unusual = (
            (" unmasked", not self.masks_credentials),
            (" minified", not self.skips_minified),
            (" converted-1", self.converts),
        )
        return f"bytes={self.max_file_bytes}" + "".join(word for word, holds in unusual if holds)


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder that is indexed."""

    path: Path
    """Absolute and resolved."""
    name: str = ""
    """Without a slash; empty for the only folder of an index."""
    selection: Selection = field(default=Selection())
    reading: Reading = field(default=Reading())

    @property
    def top(self) -> str:
        """The key of the folder itself."""
        return self.name

    def key_of(self, path: str) -> str:
        """Return the key of `path`, which is relative to the folder; empty for the folder."""
        if not self.name:
            return path
        return f"{self.name}/{path}" if path else self.name

    def path_of(self, key: str) -> str:
        """Return the path of `key`, relative to the folder."""
        return key[len(self.name) + 1 :] if self.name else key

    def holds(self, key: str) -> bool:
        """Return whether `key` is the folder's own, or that of a path in it."""
        return not self.name or key == self.name or key.startswith(f"{self.name}/")

    def place_of(self, key: str) -> Path:
        """Return the absolute path of the file `key`."""
        return self.path / self.path_of(key)


class Folders:
    """The folders of one index, which may come, go and be renamed."""

    def __init__(self, folders: Iterable[Folder]) -> None:
        """Begin with some folders.

        Raises:
            ProjectError: If a name cannot be used, or two folders have the same name.
        """
        self._by_name: dict[str, Folder] = {}
        for folder in folders:
            self.add(folder)

    def __iter__(self) -> Iterator[Folder]:
        return iter([*self._by_name.values()])

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def by_name(self) -> dict[str, Folder]:
        """The folders as they are now."""
        return {**self._by_name}

    def of(self, key: str) -> Folder | None:
        """Return the folder of a key; None if there is no such folder (any more)."""
        nameless = self._by_name.get("")
        return nameless or self._by_name.get(key.partition("/")[0])

    def named(self, name: str) -> Folder:
        """Return the folder with this name.

        Raises:
            ProjectError: If there is no such folder.
        """
        if name not in self._by_name:
            raise ProjectError(f"there is no folder {name!r}; there are {', '.join(self._by_name)}")
        return self._by_name[name]

    def add(self, folder: Folder) -> None:
        """Add a folder.

        Raises:
            ProjectError: If its name cannot be used, or another folder has it.
        """
        name = folder.name
        if "/" in name or name in _UNUSABLE_NAMES or not name.isprintable():
            raise ProjectError(f"{name!r} cannot be the name of a folder; use letters and digits")
        if name in self._by_name or (self._by_name and "" in {name, *self._by_name}):
            raise ProjectError(f"the name {name!r} of a folder is taken; give each its own")
        self._by_name[name] = folder

    def remove(self, name: str) -> Folder:
        """Remove a folder and return it.

        Raises:
            ProjectError: If there is no folder with this name.
        """
        folder = self.named(name)
        del self._by_name[name]
        return folder

    def rename(self, name: str, new: str) -> None:
        """Rename a folder.

        Raises:
            ProjectError: If there is no folder with this name, or the new name cannot be used.
        """
        folder = self.remove(name)
        try:
            self.add(replace(folder, name=new))
        except ProjectError:
            self._by_name[name] = folder
            raise


def absence_of(folder: Folder) -> ProjectError | None:
    """Return the error to report if `folder` itself is out of reach; None if it can be listed.

    If it is out of reach, a file that is not found in it must not be taken for deleted.
    """
    if not os.path.isdir(folder.path):
        return out_of_reach(folder, "is gone")
    if not os.access(folder.path, os.R_OK | os.X_OK):
        return out_of_reach(folder, f"cannot be read ({os.strerror(errno.EACCES)})")
    return None


def out_of_reach(folder: Folder, why: str) -> ProjectError:
    """Return the error to report if `folder` itself is out of reach; `why` is a predicate."""
    kind = "project folder" if not folder.name else f"folder {folder.name!r} at"
    return ProjectError(
        f"the {kind} {folder.path} {why}; the index is kept and goes on when the folder is back"
    )


def is_broad(folder: Path) -> bool:
    """Return whether `folder`, a resolved path, is too broad to be indexed; see `breadth_of`."""
    return breadth_of(folder) != ""


def breadth_of(folder: Path) -> str:
    """Return why a resolved path is too broad to be indexed, as a predicate; empty if it is not."""
    if folder.parts[:2] in _MADE_BY_THE_SYSTEM:
        return "is the system's own"
    if folder == Path(folder.anchor):
        return "is a whole drive"
    try:
        home = Path.home().resolve()
    except (OSError, RuntimeError):
        home = folder.parent
    if folder == home:
        return "is your home folder"
    return "holds your home folder" if home.is_relative_to(folder) else ""

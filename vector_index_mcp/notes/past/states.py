"""Reads a store as it was at a commit, and a project as it was then or is now.

`Past` is a `Disk` whose files are those of a commit, so that the code that reads a store from the
disk reads it from a commit, too.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vector_index_mcp.notes.store.byhand import ByHand
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.store.history import Tree, contents, is_ours
from vector_index_mcp.notes.store.large import large_ones
from vector_index_mcp.notes.store.line_ends import LineEnds
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.texts.projects import Project, Projects

_FILE, _FOLDER = stat.S_IFREG | 0o444, stat.S_IFDIR | 0o555


class Past(Disk):
    """The files of a commit, read only."""

    def __init__(self, repository: Repository, commit: str) -> None:
        """List the files of the commit.

        Args:
            repository: The repository with the commit.
            commit: The commit's id; empty for the time before the first commit.

        Raises:
            Refusal: If the commit cannot be read.
        """
        super().__init__(Path(os.devnull))  # below this, no file can be written
        self._repository = repository
        tree = tree_of(repository, commit)
        self._names = {path: tree.id_of(path) for path in tree.paths() if is_ours(path)}
        self._contents: dict[str, bytes] = {}
        self._below: dict[str, dict[str, int]] = defaultdict(dict)
        for path in self._names:
            self._enter(path)

    def _enter(self, path: str) -> None:
        mode, is_known = _FILE, False
        while path and not is_known:
            above, _, name = path.rpartition("/")
            is_known = above in self._below
            self._below[above][name] = mode
            path, mode = above, _FOLDER

    def fetch(self, folder: str) -> None:
        """Read all files below a folder at once, which is faster than one by one.

        Raises:
            Refusal: If a file cannot be read.
        """
        names = {path: self._names[path] for path in self.files(folder)}
        large = large_ones(self._repository, list(names.values()))
        for path in [path for path, name in names.items() if name in large]:
            del self._names[path]  # as on the disk, nobody reads it
        wanted = {*names.values()} - large.keys() - self._contents.keys()
        self._contents |= contents(self._repository, sorted(wanted))

    def read(self, path: str) -> bytes | None:
        """See `Disk`."""
        name = self._names.get(path)
        if name is None:
            return None
        if name not in self._contents:
            self._contents |= contents(self._repository, [name])
        return self._contents[name]

    def entries(self, folder: str) -> list[tuple[str, os.stat_result]]:
        """See `Disk`."""
        return sorted((name, _status(mode)) for name, mode in self._below.get(folder, {}).items())

    def status(self, path: str) -> os.stat_result | None:
        """See `Disk`."""
        if path in self._names:
            return _status(_FILE)
        return _status(_FOLDER) if path in self._below or not path else None

    def files(self, folder: str) -> Iterator[str]:
        """See `Disk`."""
        return (path for path in self._names if not folder or path.startswith(f"{folder}/"))


def tree_of(repository: Repository, commit: str) -> Tree:
    """Return the files of the commit with this id; no files if the id is empty.

    Raises:
        Refusal: If the commit cannot be read.
    """
    tree = Tree(repository)
    tree.follow(commit)
    return tree


def _status(mode: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, 0, 0, 0, 0, 0, 0))


@dataclass(frozen=True, slots=True)
class State:
    """A project at some moment."""

    project: Project | None
    """None if there was no such project."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Contents by path below the project's folder."""


def state_then(past: Past, project: str, folder: str = "") -> State:
    """Return a project as it was.

    Args:
        past: The store at that time.
        project: The project's id.
        folder: The project's folder, used if `index.json` cannot be parsed; may be empty.

    Raises:
        Refusal: If the project cannot be read.
    """
    projects = Projects(past)
    if projects.problem and folder:
        found: Project | None = Project(project, folder)
    else:
        found = projects.find(project)
    if found is None:
        return State(None)
    past.fetch(found.folder)
    files = {path: past.read(path) or b"" for path in past.files(found.folder)}
    return State(found, _within(found, files))


def state_now(disk: Disk, tree: Tree, by_hand: ByHand, project: str) -> State:
    """Return a project as git would keep it now, without files that the history ignores.

    Args:
        disk: The store's files.
        tree: The files of the last commit.
        by_hand: Finds the files that differ from the last commit.
        project: The project's id.

    Raises:
        Refusal: If the project cannot be read.
    """
    found = Projects(disk).find(project)
    if found is None:
        return State(None)
    below = f"{found.folder}/"
    edited = (path for path in by_hand.edited(tree) if path.startswith(below))
    large = {path for path, is_committed in by_hand.large.items() if is_committed}
    paths = {*tree.below(found.folder), *edited} - large
    read = ((path, disk.read(path)) for path in sorted(paths))
    files = {path: data for path, data in read if data is not None}
    return State(found, _within(found, LineEnds(disk).kept(tree, files)))


def _within(project: Project, files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {path.removeprefix(f"{project.folder}/"): data for path, data in files.items()}

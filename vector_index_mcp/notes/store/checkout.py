"""Asks git which files are not checked out, and which have conflicts."""

import os
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field

from vector_index_mcp.files.state import State, state_of
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.steps import folders_of
from vector_index_mcp.processes import git

INDEX_OF_GIT = f"{GIT}/index"
_SKIPPED, _UNMERGED = b"S ", b"M "


@dataclass(frozen=True, slots=True)
class _Index:
    """What git's index says."""

    left_out: frozenset[str] | None = frozenset()
    """None if git cannot read it."""
    unmerged: frozenset[str] = frozenset()


@dataclass(slots=True)
class Checkout:
    """Knows what git has checked out. It caches what the index says."""

    disk: Disk
    _read: tuple[State, _Index] | None = field(default=None)
    """The state of the index when it was read, and what it said."""

    def left_out(self, repository: Repository) -> frozenset[str] | None:
        """Return the files that a sparse checkout leaves out (`skip-worktree` in the index).

        The result is None if git cannot read the index: then any file may be left out.

        Raises:
            Refusal: If git is not installed, or does not end in time.
        """
        return self._index(repository).left_out

    def conflicts(self, repository: Repository) -> dict[str, str]:
        """Return the files whose conflict somebody is resolving, each with a sentence about it.

        A merge leaves such files, and so do `git merge --squash` and `git stash pop`, which leave
        no other trace.

        Raises:
            Refusal: If git is not installed, or does not end in time.
        """
        return {
            path: f"{path} has a conflict in {self.disk.root}, so the file stays as it is; resolve "
            f"it there, and `git add {shlex.quote(path)}`"
            for path in self._index(repository).unmerged
        }

    def _index(self, repository: Repository) -> _Index:
        status = self.disk.status(INDEX_OF_GIT)
        if status is None:
            return _Index()
        stamp = state_of(status)
        if self._read is None or self._read[0] != stamp:
            self._read = stamp, _read(self.disk, repository)
        return self._read[1]

    def check_can_be_written(self, tree: Tree, paths: Iterable[str]) -> None:
        """Check that no submodule has the files or folders, and no sparse checkout leaves them out.

        Otherwise nobody can see what is replaced.

        Raises:
            Refusal: If one is in a submodule, or it or its folder is left out.
        """
        for path in paths:
            if submodule := submodule_of(tree, path):
                raise Refusal(
                    Code.GIT_ERROR,
                    f"{submodule} is a git submodule: its files belong to another repository, so "
                    "nothing was changed; write to another project, or have git replace the "
                    "submodule by a plain folder",
                    path=path,
                )
            if self.disk.status(path) is None and (place := self._place_left_out(tree, path)):
                raise Refusal(
                    Code.GIT_ERROR,
                    f"the sparse checkout in {self.disk.root} leaves out {place}, so that nobody "
                    "can see what a change would replace; nothing was changed; run "
                    f"`git sparse-checkout add {shlex.quote(place)}` there",
                    path=path,
                )

    def _place_left_out(self, tree: Tree, path: str) -> str:
        """Return the folder of a missing file that is left out; empty if it is not."""
        missing = {path: [path]} if tree.id_of(path) else {}
        for folder in [*folders_of(path), path][1:]:  # without the folder of all projects
            if not self.disk.is_folder(folder) and (below := tree.below(folder)):
                missing[folder] = below
        # git is asked only if a file of the history is missing.
        skipped = self.left_out(tree.repository) if missing else None
        left_out = [place for place, files in missing.items() if (skipped or set()) >= {*files}]
        return min(left_out, key=len, default="")


def _read(disk: Disk, repository: Repository) -> _Index:
    result = repository.run("ls-files", "-t", "-z", environment=_environment(disk))
    if result.status:
        return _Index(left_out=None)
    lines = result.output.split(b"\0")
    return _Index(_tagged(lines, _SKIPPED), _tagged(lines, _UNMERGED))


def _tagged(lines: Iterable[bytes], tag: bytes) -> frozenset[str]:
    return frozenset(os.fsdecode(line.removeprefix(tag)) for line in lines if line.startswith(tag))


def submodule_of(tree: Tree, path: str) -> str:
    """Return the submodule that a path is or lies in; empty if there is none."""
    places = (*folders_of(path), path)
    return next((place for place in places if tree.is_submodule(place)), "")


def _environment(disk: Disk) -> dict[str, str]:
    return {**git.without_settings(), "GIT_INDEX_FILE": str(disk.root / INDEX_OF_GIT)}

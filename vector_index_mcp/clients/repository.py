"""The git repository that a project lies in, as clients name it that keep settings by project."""

from contextlib import suppress
from pathlib import Path

_GIT = ".git"
_WORKTREES = "worktrees"
_LINK = "gitdir: "
_MOST_CHARS = 10_000  # of a file that holds one path


def root_of(project: Path) -> Path:
    """The folder of the repository around `project`, that of a worktree's main one; else `project`.

    No git is run, and a worktree is believed only if its repository knows it as well.
    """
    for folder in (project, *project.parents):
        git = folder / _GIT
        if git.is_dir():
            return folder
        if git.is_file():
            return _main_of(folder)
    return project


def _main_of(folder: Path) -> Path:
    with suppress(OSError, ValueError):
        own = folder / _said(folder / _GIT).removeprefix(_LINK)  # of this worktree, in the main one
        known = Path(_said(own / "gitdir"))
        is_worktree = own.parent.name == _WORKTREES and own.parent.parent.name == _GIT
        if is_worktree and (own / known).resolve() == (folder / _GIT).resolve():
            return own.parent.parent.parent.resolve()
    return folder


def _said(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(_MOST_CHARS).strip()

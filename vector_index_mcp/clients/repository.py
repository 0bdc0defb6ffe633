"""Finds the git repository that a project lies in: some clients keep settings by repository."""

from contextlib import suppress
from pathlib import Path

from vector_index_mcp.files.plain import content_of

_GIT = ".git"
_WORKTREES = "worktrees"
_LINK = "gitdir: "
_MOST_BYTES = 10_000  # of a file that contains one path


def root_of(project: Path) -> Path:
    """Return the folder of the repository around `project`; `project` itself if there is none.

    For a worktree, this is the folder of its main repository, but only if that repository lists the
    worktree. No git is run.
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
        # The folder that the main repository keeps for this worktree.
        own = folder / _text_of(folder / _GIT).removeprefix(_LINK)
        known = Path(_text_of(own / "gitdir"))
        is_worktree = own.parent.name == _WORKTREES and own.parent.parent.name == _GIT
        if is_worktree and (own / known).resolve() == (folder / _GIT).resolve():
            return own.parent.parent.parent.resolve()
    return folder


def _text_of(path: Path) -> str:
    return content_of(path, _MOST_BYTES).decode().strip()

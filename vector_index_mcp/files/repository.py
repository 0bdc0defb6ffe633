"""Where a git repository keeps what concerns its files.

`os.path` where `pathlib` would raise: a repository may name any path at all.
"""

import functools
import os
import subprocess
from pathlib import Path

_GIT_TIMEOUT_SECONDS = 5
_LONGEST_POINTER_BYTES = 10_000


def top_of(folder: Path) -> Path | None:
    """The top of the repository that `folder` lies in, if any."""
    every = (folder, *folder.parents)
    return next((above for above in every if os.path.exists(above / ".git")), None)


def is_top(folder: Path) -> bool:
    """Whether `folder` is the top of a repository that git would use."""
    return os.path.lexists(folder / ".git") and os.path.isfile(_git_folder(folder) / "HEAD")


def index_of(top: Path) -> Path:
    """The index of the repository: of a worktree, its own."""
    return _git_folder(top) / "index"


def exclude_of(top: Path) -> Path:
    """The repository's file `info/exclude`: of a worktree, the main repository's."""
    folder = _git_folder(top)
    common = _pointer(folder / "commondir").strip()
    return folder / common / "info" / "exclude"


@functools.cache
def excludes_file(folder: Path) -> Path | None:
    """The user's own excludes file, if any; asked of git once, since that starts a process."""
    try:
        answer = subprocess.run(
            ["git", "config", "--type=path", "--get", "core.excludesFile"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return _usual_excludes()
    if answer.returncode != 0:  # not set
        return _usual_excludes()
    name = os.fsdecode(answer.stdout.removesuffix(b"\n"))
    return folder / name if name else None


def text_of(path: Path, most_bytes: int) -> str:
    """The text of a file; empty if there is none, or if it is longer than `most_bytes`."""
    try:
        if not path.is_file() or path.stat().st_size > most_bytes:
            return ""
        return path.read_bytes().decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _usual_excludes() -> Path | None:
    configured = os.environ.get("XDG_CONFIG_HOME")
    try:
        home = Path(configured) if configured else Path.home() / ".config"
    except RuntimeError:  # nobody knows the home
        return None
    return home / "git" / "ignore"


def _git_folder(top: Path) -> Path:
    """The folder `.git`, or the one that the file of this name points to."""
    dot_git = top / ".git"
    if os.path.isdir(dot_git):
        return dot_git
    return top / _pointer(dot_git).partition("gitdir:")[2].strip()


def _pointer(path: Path) -> str:
    """The text of a small file that names a folder; empty if there is none."""
    return text_of(path, _LONGEST_POINTER_BYTES)

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
    return _common_folder(_git_folder(top)) / "info" / "exclude"


def git_files_of(top: Path) -> list[Path]:
    """Where git keeps what decides which files of the repository are seen, but its ignore files."""
    folder = _git_folder(top)
    names = ("HEAD", "commondir", "config.worktree")
    return [
        *(folder / name for name in names),
        index_of(top),
        exclude_of(top),
        _common_folder(folder) / "config",
    ]


def settings_of(folder: Path) -> list[Path]:
    """The files that git takes its settings from in `folder`, there or not."""
    top = top_of(folder)
    local = [] if top is None else [_git_folder(top) / "config.worktree"]
    if top is not None:
        local.append(_common_folder(_git_folder(top)) / "config")
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    users = [Path(named)] if named else [_home() / ".gitconfig", _config_home() / "git/config"]
    return [*users, *local]


def excludes_file(folder: Path) -> Path | None:
    """The user's own excludes file, if any.

    Asked of git, since settings include others, but only when they have changed: that starts a
    process.
    """
    return _excludes_file(folder, tuple(map(_state_of, settings_of(folder))))


def forget_settings() -> None:
    """Ask git again: a file may have changed that its settings include."""
    _excludes_file.cache_clear()


def _state_of(path: Path) -> tuple[str, int, int, int]:
    try:
        status = path.stat()
    except (OSError, ValueError):
        return (str(path), 0, 0, 0)
    return (str(path), status.st_size, status.st_mtime_ns, status.st_ino)


@functools.lru_cache(maxsize=16)
def _excludes_file(folder: Path, state: tuple[tuple[str, int, int, int], ...]) -> Path | None:
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
        return _config_home() / "git" / "ignore"
    if answer.returncode != 0:  # not set
        return _config_home() / "git" / "ignore"
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


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) if configured else _home() / ".config"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # nobody knows
        return Path("/")


def _git_folder(top: Path) -> Path:
    """The folder `.git`, or the one that the file of this name points to."""
    dot_git = top / ".git"
    if os.path.isdir(dot_git):
        return dot_git
    return top / _pointer(dot_git).partition("gitdir:")[2].strip()


def _common_folder(git_folder: Path) -> Path:
    """Where a worktree shares what it has in common with others; otherwise the same."""
    return git_folder / _pointer(git_folder / "commondir").strip()


def _pointer(path: Path) -> str:
    """The text of a small file that names a folder; empty if there is none."""
    return text_of(path, _LONGEST_POINTER_BYTES)

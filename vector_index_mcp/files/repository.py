"""Finds the files of a git repository that decide which of its files are ignored or tracked.

A repository may name any path. `os.path` is used where `pathlib` would raise for some of them.
"""

import contextlib
import functools
import logging
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from vector_index_mcp.files.plain import content_of
from vector_index_mcp.files.state import State, state_of
from vector_index_mcp.files.users import may_decide

_log = logging.getLogger(__name__)

_GIT_TIMEOUT_SECONDS = 5
_OF_SETTINGS = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"})
_NONE_IS_SET = 1  # the status of `git config`; others mean that it could not read the settings
_LONGEST_POINTER_BYTES = 10_000
# As git wants it (`validate_headref` in path.c); otherwise the rules of the repository above hold.
_HEAD = re.compile(r"ref:\s{0,9}refs/|[0-9a-f]{40}")
_EXCLUDES_FILE, _IGNORES_CASE = "core.excludesFile", "core.ignorecase"
_TYPES = {_EXCLUDES_FILE: "path", _IGNORES_CASE: "bool"}
_last_settings: dict[tuple[Path, str], str | None] = {}  # git's last answer, by folder and setting
_faults: dict[tuple[Path, str], str] = {}  # why it has never answered


def top_of(folder: Path) -> Path | None:
    """Return the top of the repository that `folder` lies in; None if it lies in none.

    A `.git` that is no repository to git counts if there is no other one: what its owner wants to
    be ignored is not indexed because a mount or a file of git's is missing.
    """
    first = None
    for above in _marked(folder):
        if is_top(above):
            return above
        first = first or above
    return first


def marked_above(folder: Path) -> list[Path]:
    """Return the folders with a `.git`, from `folder` upwards to the first one that is a top."""
    found: list[Path] = []
    for above in _marked(folder):
        found.append(above)
        if is_top(above):
            break
    return found


def _marked(folder: Path) -> Iterator[Path]:
    """Yield the folders with a `.git`, from `folder` upwards.

    Git refuses the repository of a stranger. It is passed over here, since it must neither hide
    files nor switch off the rules of a repository around it.
    """
    for above in (folder, *folder.parents):
        if os.path.exists(above / ".git") and may_decide((above, above / ".git"), folder):
            yield above


def is_top(folder: Path) -> bool:
    """Return whether `folder` is the top of a repository that git would use."""
    if not os.path.lexists(folder / ".git"):
        return False
    inside = _git_folder(folder)
    common = _common_folder(inside)
    has_head = _HEAD.match(_pointer(inside / "HEAD")) is not None
    return has_head and all(os.path.isdir(common / name) for name in ("objects", "refs"))


def index_of(top: Path) -> Path:
    """Return the path of the repository's index; a worktree has its own."""
    return _git_folder(top) / "index"


def exclude_of(top: Path) -> Path:
    """Return the path of `info/exclude`; a worktree uses the main repository's."""
    return _common_folder(_git_folder(top)) / "info" / "exclude"


def git_files_of(top: Path) -> list[Path]:
    """Return git's own files that decide which files are ignored or tracked."""
    folder = _git_folder(top)
    names = ("HEAD", "commondir", "config.worktree")
    return [
        *(folder / name for name in names),
        index_of(top),
        exclude_of(top),
        _common_folder(folder) / "config",
    ]


def settings_of(folder: Path) -> list[Path]:
    """Return the files that git reads its settings from in `folder`, existing or not."""
    top = top_of(folder)
    local = [] if top is None else [_git_folder(top) / "config.worktree"]
    if top is not None:
        local.append(_common_folder(_git_folder(top)) / "config")
    return [*_users_settings(), *local]


def _users_settings() -> list[Path]:
    named = os.environ.get("GIT_CONFIG_GLOBAL")
    return [Path(named)] if named else [_home() / ".gitconfig", _config_home() / "git/config"]


def state_of_users_settings() -> tuple[object, ...]:
    """Return a value that changes with the files of the user's settings, but not with others."""
    variables = sorted((name, os.environ.get(name)) for name in _OF_SETTINGS)
    return (*variables, *map(_state_of, _users_settings()))


def users_attributes(named: str) -> list[Path]:
    """Return the files outside of a repository that give attributes to its files, existing or not.

    Args:
        named: The setting `core.attributesFile`; empty if it is not set.
    """
    users = path_of_setting(named) if named else _config_home() / "git" / "attributes"
    return [users, *_attributes_of_the_system()]


def path_of_setting(named: str) -> Path:
    """Return a path that a setting names, which may begin with `~`."""
    try:
        return Path(named).expanduser()
    except RuntimeError:  # a user whose home folder is unknown
        return Path(named)


@functools.cache
def _attributes_of_the_system() -> tuple[Path, ...]:
    # Where they lie was decided when git was built; only newer versions tell (`git var`).
    places = {Path("/etc/gitattributes")}
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            ["git", "--exec-path"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
        program = Path(os.fsdecode(told.stdout.removesuffix(b"\n")))
        places.update(above / "etc" / "gitattributes" for above in [*program.parents][1:2])
    return tuple(sorted(places))


class Told(NamedTuple):
    """What git tells of its settings."""

    excludes_file: Path | None
    """The user's own excludes file; None if there is none."""
    ignores_case: bool
    """Whether the case of letters does not count in paths, as on most macOS and Windows."""
    fault: str
    """Why git has never told one of these; empty if it has."""


def told(folder: Path) -> Told:
    """Return what git tells of its settings in `folder`, as far as they decide what is ignored."""
    state = tuple(map(_state_of, settings_of(folder)))
    named, folds_case = (_setting(folder, name, state) for name in (_EXCLUDES_FILE, _IGNORES_CASE))
    excludes = folder / named if named else None
    if named is None:
        excludes = _config_home() / "git" / "ignore"
    fault = next((_faults[folder, name] for name in _TYPES if (folder, name) in _faults), "")
    return Told(excludes, folds_case == "true", fault)


def _setting(folder: Path, name: str, state: tuple[tuple[str, State], ...]) -> str | None:
    """Return one of git's settings that decide what is ignored; None if it is not set.

    Only git knows them, because settings may include other files. Asking starts a process, so git
    is asked again only when the settings have changed, or when it could not answer, as while
    somebody edits them: its last answer holds meanwhile, since without the user's excludes file we
    would read what git ignores. Each is asked for alone, so that a bad value spoils no other one.
    """
    place = folder, name
    try:
        found = _asked_setting(folder, name, state)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("git does not say what it ignores in %s: %s", folder, error)
        if place not in _last_settings:
            _faults[place] = str(error)
        return _last_settings.get(place)
    _faults.pop(place, None)
    _last_settings[place] = found
    return found


def forget_settings() -> None:
    """Ask git again next time: a file that its settings include may have changed."""
    _asked_setting.cache_clear()


def _state_of(path: Path) -> tuple[str, State]:
    try:
        return str(path), state_of(path.stat())
    except (OSError, ValueError):
        return str(path), (0, 0, 0, 0)


@functools.lru_cache(maxsize=32)
def _asked_setting(folder: Path, name: str, state: tuple[tuple[str, State], ...]) -> str | None:
    """Ask git for a setting; `state` is what it depends on.

    Raises:
        OSError: If git cannot be started any more.
        subprocess.SubprocessError: If it does not answer in time, or cannot read the setting.
    """
    try:
        answer = subprocess.run(
            ["git", "config", "-z", f"--type={_TYPES[name]}", "--get", name],
            cwd=folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT_SECONDS,
            check=False,
        )
    except FileNotFoundError:  # it is not installed, or the folder is gone
        if _last_settings.get((folder, name)):
            raise
        return None
    if answer.returncode == _NONE_IS_SET:
        return None
    if answer.returncode != 0:
        words = answer.stderr.decode("utf-8", "replace").strip()
        raise subprocess.SubprocessError(words or f"its exit status is {answer.returncode}")
    return os.fsdecode(answer.stdout).removesuffix("\0")


def _environment() -> dict[str, str]:
    """Return our variables; of git's, only those that say where the user's settings lie.

    A git hook that starts this program sets others, such as GIT_DIR, that name its repository.
    """
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _OF_SETTINGS
    }


def text_of(path: Path, most_bytes: int) -> str:
    """Return the text of a file; empty if there is none or it is longer than `most_bytes`."""
    try:
        return content_of(path, most_bytes).decode("utf-8-sig", "surrogateescape")
    except (OSError, ValueError):
        return ""


def _config_home() -> Path:
    configured = os.environ.get("XDG_CONFIG_HOME")
    return Path(configured) if configured else _home() / ".config"


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # the home folder is unknown
        return Path("/")


def _git_folder(top: Path) -> Path:
    """Return the folder `.git`, or the folder that a file of this name points to."""
    dot_git = top / ".git"
    if os.path.isdir(dot_git):
        return dot_git
    return top / _pointer(dot_git).partition("gitdir:")[2].strip()


def _common_folder(git_folder: Path) -> Path:
    """Return the folder that a worktree shares with others; otherwise `git_folder` itself."""
    return git_folder / _pointer(git_folder / "commondir").strip()


def _pointer(path: Path) -> str:
    """Return the text of a small file that names a folder; empty if there is none."""
    return text_of(path, _LONGEST_POINTER_BYTES)

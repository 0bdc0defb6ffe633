"""Runs the git program so that it never prompts and uses no other repository.

If this program is started from a git hook, the hook sets variables that name a repository.
"""

import logging
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_log = logging.getLogger(__name__)

_SECONDS = 10.0
_FETCH_SECONDS = 60.0
_DEPTH = 1_000  # commits; a job may be this far behind
_STATES_CHARS = 3  # "XY " before each path, see `git help status`

_OF_A_REPOSITORY = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE GIT_CONFIG "
    "GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_SHALLOW_FILE "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_GRAFT_FILE GIT_REPLACE_REF_BASE GIT_ATTR_SOURCE "
    "GIT_IMPLICIT_WORK_TREE".split()
)
# Git asks at a terminal or by a program, ssh by another one, git's credential manager in a window.
_ASKS_NOBODY = {
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
}
_NO_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
}


def environment() -> dict[str, str]:
    """Return our variables without those that name a repository; the user's git settings apply."""
    ours = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    # CI jobs and editors hand out tokens by this variable, and ask nobody. An empty one keeps git
    # from `core.askPass` and SSH_ASKPASS, which do ask.
    return {"GIT_ASKPASS": "", **ours, **_ASKS_NOBODY}


def without_settings() -> dict[str, str]:
    """Return our variables without any of git's; only the repository's own settings apply."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**ours, **_ASKS_NOBODY, **_NO_SETTINGS}


def revision_of(folder: Path) -> str:
    """Return the commit of a folder; empty if it is in no repository, or there is no git.

    Only the repository's own settings apply, and git runs no program for this.
    """
    return _said(folder, "rev-parse", "HEAD", variables=without_settings())


def commit_of(folder: Path) -> str:
    """Return the commit of a folder, with the user's settings of git; empty if it is unknown."""
    return _said(folder, "rev-parse", "--verify", "--quiet", "HEAD")


def branch_of(folder: Path) -> str:
    """Return the branch that a folder is on; empty if it is on none, or in no repository."""
    return _said(folder, "symbolic-ref", "--short", "--quiet", "HEAD")


def default_branch_of(folder: Path) -> str:
    """Return the default branch of the remote `origin`; empty if it is unknown."""
    named = _said(folder, "symbolic-ref", "--short", "--quiet", "refs/remotes/origin/HEAD")
    return named.removeprefix("origin/")


def changed_files(folder: Path) -> list[str]:
    """The files in a folder that differ from its last commit, new ones included; relative paths.

    Files that git ignores do not count. Empty if git cannot tell.
    """
    inside = _run(folder, "rev-parse", "--show-prefix")[1].removesuffix("\n")
    options = ("--porcelain", "-z", "--no-renames", "--untracked-files=all")
    _, said = _run(folder, "-c", "core.fsmonitor=false", "status", *options, "--", ".")
    paths = (entry[_STATES_CHARS:] for entry in said.split("\0") if entry)
    return [path.removeprefix(inside) for path in paths]


def lies_before(folder: Path, commit: str, other: str) -> bool:
    """Return whether `commit` is `other` or an ancestor of it; fetch `other` if it is missing.

    A job's checkout does not contain later commits. False if this cannot be found out, because
    `other` was removed from its branch or the remote cannot be reached.
    """
    if not commit or not other:
        return False
    status, _ = _run(folder, "cat-file", "-e", f"{other}^{{commit}}")
    if status != 0:
        _fetch(folder, other)
    return _run(folder, "merge-base", "--is-ancestor", commit, other) == (0, "")


def _fetch(folder: Path, commit: str) -> None:
    """Fetch a commit from the remote `origin`; no branch and no file changes."""
    # Only for a shallow clone: a depth would cut off the history of a complete one.
    is_shallow = _said(folder, "rev-parse", "--is-shallow-repository") == "true"
    depth = (f"--depth={_DEPTH}",) if is_shallow else ()
    arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", *depth, "origin", commit)
    _run(folder, *arguments, seconds=_FETCH_SECONDS)


def _said(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    status, output = _run(folder, *arguments, variables=variables)
    return output.strip() if status == 0 else ""


def _run(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    seconds: float = _SECONDS,
) -> tuple[int | None, str]:
    """Run git; return its exit status and output, or None and "" if it cannot be run in time.

    Args:
        folder: The folder to run it in.
        arguments: Its arguments.
        variables: Its environment; None for `environment()`.
        seconds: How long it may take.
    """
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            env=environment() if variables is None else variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            start_new_session=True,  # ssh finds no terminal to ask at
        )
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("git could not be run in %s: %s", folder, error)
        return None, ""
    return done.returncode, os.fsdecode(done.stdout)

"""The environment of the git program: it asks nobody, and is led to no other repository.

A hook of git, from which we may have been started, sets variables that would.
"""

import logging
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_log = logging.getLogger(__name__)

_SECONDS = 10.0
_FETCH_SECONDS = 60.0
_DEPTH = 1_000  # commits: so far behind a job may be

_OF_A_REPOSITORY = frozenset(
    "GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_COMMON_DIR GIT_PREFIX GIT_NAMESPACE GIT_CONFIG "
    "GIT_CONFIG_PARAMETERS GIT_CONFIG_COUNT GIT_OBJECT_DIRECTORY GIT_SHALLOW_FILE "
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_GRAFT_FILE GIT_REPLACE_REF_BASE".split()
)
_ASKS_NOBODY = {"GIT_TERMINAL_PROMPT": "0"}
_NO_SETTINGS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
}


def environment() -> dict[str, str]:
    """Ours, without what leads to another repository; the user's own settings of git count."""
    ours = {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}
    return {**ours, **_ASKS_NOBODY}


def without_settings() -> dict[str, str]:
    """Ours, without anything about git: only the settings of the repository itself count."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**ours, **_ASKS_NOBODY, **_NO_SETTINGS}


def revision_of(folder: Path) -> str:
    """The commit that a folder is at; empty if it is in no repository, or there is no git.

    Also of a repository of another user: only its own settings count, and nothing of it is run.
    """
    return _said(folder, "rev-parse", "HEAD", variables=without_settings())


def commit_of(folder: Path) -> str:
    """The commit that a folder is at, asked as the user would; empty if nobody knows."""
    return _said(folder, "rev-parse", "--verify", "--quiet", "HEAD")


def branch_of(folder: Path) -> str:
    """The branch that a folder is on; empty if it is on none, or in no repository."""
    return _said(folder, "symbolic-ref", "--short", "--quiet", "HEAD")


def default_branch_of(folder: Path) -> str:
    """The branch that others start from, by what was cloned; empty if nobody knows."""
    named = _said(folder, "symbolic-ref", "--short", "--quiet", "refs/remotes/origin/HEAD")
    return named.removeprefix("origin/")


def lies_before(folder: Path, commit: str, other: str) -> bool:
    """Whether a commit is another one or lies before it, which is fetched if it is not here.

    What a job has checked out knows no later commit. False if that cannot be told: then the other
    one was removed from its branch, or nobody can be asked.
    """
    if not commit or not other:
        return False
    status, _ = _run(folder, "cat-file", "-e", f"{other}^{{commit}}")
    if status != 0:
        _fetch(folder, other)
    return _run(folder, "merge-base", "--is-ancestor", commit, other) == (0, "")


def _fetch(folder: Path, commit: str) -> None:
    """Get a commit from where the repository was cloned; no branch and no file changes."""
    # Of a whole repository a depth would cut off the history.
    is_shallow = _said(folder, "rev-parse", "--is-shallow-repository") == "true"
    depth = (f"--depth={_DEPTH}",) if is_shallow else ()
    arguments = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", *depth, "origin", commit)
    _run(folder, *arguments, seconds=_FETCH_SECONDS)


def _said(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    status, said = _run(folder, *arguments, variables=variables)
    return said if status == 0 else ""


def _run(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    seconds: float = _SECONDS,
) -> tuple[int | None, str]:
    """The status of git and what it says; None if there is no git, or it takes too long.

    Args:
        folder: Where it is asked.
        arguments: Of the program.
        variables: Its environment; the user's if there are none.
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
        )
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("git cannot be asked about %s: %s", folder, error)
        return None, ""
    return done.returncode, done.stdout.decode("utf-8", "replace").strip()

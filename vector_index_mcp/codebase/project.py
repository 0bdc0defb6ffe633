"""Finds the folder of a project."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from vector_index_mcp.errors import ProjectError
from vector_index_mcp.files.folder import breadth_of, is_broad
from vector_index_mcp.files.users import may_decide
from vector_index_mcp.indexing.opening.marks import has_record

_MARKS = (
    ".git",
    ".hg",
    ".svn",
    "pyproject.toml",
    "setup.py",
    "package.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "Gemfile",
    "composer.json",
    "mix.exs",
    "CMakeLists.txt",
)
"""Names that mark the top folder of a project: of a repository, or of the build's configuration."""
USUAL_INDEX = ".lancedb"
"""The folder in a project where its index lies unless a setting says otherwise."""


def indexed_above(folder: Path, configured: str, state_folder: Path) -> Path | None:
    """The nearest folder that has an index: `folder` itself or one above; None if there is none.

    An index that is not ours does not count: others may have put it into a folder that all share.

    Args:
        folder: A resolved path.
        configured: The setting for the index's place.
        state_folder: Where the records of our indexes lie.
    """
    if lies_elsewhere(configured):  # so no folder shows that it has one
        return None
    every = _at_or_above(folder)
    return next((f for f in every if has_record(f / configured, state_folder)), None)


def lies_elsewhere(configured: str) -> bool:
    """Whether a setting for the index's place names one that is in no project."""
    return "://" in configured or Path(configured).expanduser().is_absolute()


def enclosing(folder: Path, configured: str, state_folder: Path) -> Path | None:
    """The project around a folder: the nearest one with an index, else with one of `_MARKS`.

    None if there is no such project. Marks of strangers do not count.

    Args:
        folder: A resolved path.
        configured: The setting for the index's place.
        state_folder: Where the records of our indexes lie.
    """
    looks_like_one = (f for f in _at_or_above(folder) if _is_marked(f, folder))
    return indexed_above(folder, configured, state_folder) or next(looks_like_one, None)


def _is_marked(above: Path, folder: Path) -> bool:
    found = (mark for name in _MARKS if (mark := above / name).exists())
    return any(may_decide((above, mark), folder) for mark in found)


def repository_around(folder: Path) -> Path | None:
    """The top folder of the repository that a folder lies in; None if it lies in none."""
    return next((f for f in _at_or_above(folder) if (f / ".git").exists()), None)


def _at_or_above(folder: Path) -> Iterator[Path]:
    yield folder
    yield from (above for above in folder.parents if not is_broad(above))


def resolve_project(path: str, *, allow_broad: bool = False) -> Path:
    """The absolute path of the project at `path`, links resolved.

    Args:
        path: The path as the user wrote it.
        allow_broad: Whether a drive's root or a home folder is allowed.

    Raises:
        ProjectError: If it is no readable folder, or a drive's root or a home folder.
    """
    return _checked(path, *_resolved(path), allow_broad=allow_broad)


def _resolved(path: str) -> tuple[Path, bool]:
    """The absolute path that a user means, links resolved, and whether something is there.

    Raises:
        ProjectError: If it cannot be the path of anything.
    """
    try:
        folder = Path(path).expanduser().resolve()
        return folder, os.path.exists(folder)
    except (OSError, RuntimeError, ValueError) as error:
        raise ProjectError(
            f"{path!r} is not a usable path ({error}); give the path of a project's folder"
        ) from error


def _checked(path: str, folder: Path, exists: bool, *, allow_broad: bool) -> Path:
    if not exists:
        raise ProjectError(f"{path} {_absence(folder)}; give the path of a project's folder")
    if not folder.is_dir():
        raise ProjectError(f"{path} is a file; give the path of the folder it lies in")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise ProjectError(f"{folder} cannot be read; give yourself permission to list it")
    if not allow_broad and (breadth := breadth_of(folder)):
        raise ProjectError(
            f"{folder} {breadth}; give the path of one project in it, "
            "or set VECTOR_INDEX_ALLOW_BROAD_PATH=true if you mean it"
        )
    return folder


def _absence(folder: Path) -> str:
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError as error:
        return f"cannot be looked at ({error.strerror})"
    return "was not there a moment ago"


def resolve_projects(paths: Sequence[str], *, allow_broad: bool = False) -> list[Path]:
    """The absolute paths of several projects, each once, links resolved.

    One that does not exist now is among them, since it must not keep the others from being
    searched; it may be on a drive that comes back.

    Args:
        paths: The paths as the user wrote them.
        allow_broad: See `resolve_project`.

    Raises:
        ProjectError: If one cannot be a project, or none exists.
    """
    found = [(path, *_resolved(path)) for path in paths]
    is_any_there = any(exists for _, _, exists in found)
    for path, folder, exists in found:
        if exists or not is_any_there:
            _checked(path, folder, exists, allow_broad=allow_broad)
    return [*dict.fromkeys(folder for _, folder, _ in found)]

"""Finds files that git keeps in another form, such as encrypted ones (git-crypt) and those of LFS.

A filter is a program, which is never run here. If the user's settings say that the filter is
required, git itself would rather fail than keep a file without it.
"""

from collections.abc import Collection

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.checkout import attributes
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.processes import git

_FILTER = "filter"
_NO_NAMES = frozenset({"set", "unset", "unspecified", ""})


def filtered(disk: Disk, tree: Tree, paths: Collection[str]) -> set[str]:
    """Return those of the files that git keeps only through a filter.

    Raises:
        Refusal: If git is not installed, or does not end in time.
    """
    told = attributes(disk, tree, (_FILTER,), paths)
    names = {path: name for (path, _), name in told.items() if name not in _NO_NAMES}
    required = {name for name in set(names.values()) if _is_required(disk, tree, name)}
    return {path for path, name in names.items() if name in required}


def _is_required(disk: Disk, tree: Tree, name: str) -> bool:
    run, data = tree.repository.run, disk.read(f"{GIT}/config") or b""
    asked = ("--type=bool", "--get", f"{_FILTER}.{name}.required")
    own = run("config", "--file", "-", "--no-includes", *asked, given=data)
    users = run("config", *asked, environment=git.environment())
    return b"true" in (own.output.strip(), users.output.strip())


def about_filtered(path: str) -> str:
    """Return a sentence about such a file, for people and agents."""
    return (
        f"git keeps {path} through a filter, such as that of git-crypt or LFS, which is not run "
        "here, so the file stays as it is; change and commit it with git"
    )


def check_unfiltered(disk: Disk, tree: Tree, paths: Collection[str]) -> None:
    """Check that git keeps the files as they are.

    Raises:
        Refusal: If git keeps one only through a filter.
    """
    for path in sorted(filtered(disk, tree, paths)):
        raise Refusal(Code.GIT_ERROR, about_filtered(path), path=path)

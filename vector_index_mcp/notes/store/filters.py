"""Finds files that git keeps in another form, such as encrypted ones (git-crypt) and those of LFS.

A filter is a program, which is never run here. If the user's settings say that the filter is
required, git itself would rather fail than keep a file without it.
"""

from collections.abc import Collection, Iterable

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.checkout import attributes
from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.notes.store.steps import folders_of
from vector_index_mcp.processes import git

_ATTRIBUTES, _FILTER = ".gitattributes", "filter"
_NO_NAMES = frozenset({"set", "unset", "unspecified", ""})


def filtered(disk: Disk, tree: Tree, paths: Collection[str]) -> set[str]:
    """Return those of the files that git keeps only through a filter.

    Raises:
        Refusal: If git is not installed, or does not end in time.
    """
    if not paths or not _may_be_filtered(disk, tree, paths):
        return set()
    told = attributes(disk, tree.repository, (_FILTER,), sorted(paths))
    names = {path: name for (path, _), name in told.items() if name not in _NO_NAMES}
    required = {name for name in set(names.values()) if _is_required(disk, tree, name)}
    return {path for path, name in names.items() if name in required}


def _may_be_filtered(disk: Disk, tree: Tree, paths: Iterable[str]) -> bool:
    """Return whether a file of attributes names a filter: if none does, git need not be asked."""
    folders = {f"{folder}/" for path in paths for folder in folders_of(path)}
    for file in (f"{folder}{_ATTRIBUTES}" for folder in ("", *folders)):
        try:
            data = disk.read(file)
        except Refusal:  # git decides whether it counts
            return True
        if data is None and tree.id_of(file):  # it is not checked out, and counts all the same
            return True
        if data is not None and _FILTER.encode() in data:
            return True
    return False


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

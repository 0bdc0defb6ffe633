"""Where a store's files lie, and which folders may hold a store."""

import json

from vector_index_mcp.files.folder import is_broad
from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import GIT, WORK, Disk

_MAY_STAND_ALONE = frozenset({"README.md", "LICENSE", "LICENSE.md", "activity.log"})
_OF_A_PROJECT = ("main.md", "knowledge", "TODO")
_OF_A_BARE_REPOSITORY = frozenset({"HEAD", "objects", "refs"})


def check(disk: Disk) -> None:
    """Check that a folder holds notes or nothing; it need not exist.

    Raises:
        Refusal: If it holds other files, or must not be used.
    """
    root = disk.root
    if is_broad(root):
        raise Refusal(
            Code.INVALID_PATH,
            f"{root} is a whole drive, a home folder or a system folder; name a separate "
            "folder for the notes",
        )
    if disk.is_file(GIT):
        raise Refusal(
            Code.INVALID_PATH,
            f"{root} belongs to another git repository, as its work tree or submodule ({GIT} "
            "is a file), and the notes need their own; name another folder, or a clone",
        )
    shown = [name for name, _ in disk.entries("") if not name.startswith(".")]
    if set(shown) >= _OF_A_BARE_REPOSITORY:
        raise Refusal(
            Code.INVALID_PATH,
            f"{root} is a bare git repository, and the notes need their files; name a clone of it",
        )
    if not set(shown) <= _MAY_STAND_ALONE and not _is_store(disk, shown):
        raise Refusal(
            Code.INVALID_PATH,
            f"{root} holds other files than notes; name an empty folder, or one with notes",
        )


def _is_store(disk: Disk, names: list[str]) -> bool:
    # A store that we have opened before may hold anything else as well.
    if set(names) <= {INDEX, PROJECTS, *_MAY_STAND_ALONE} or disk.is_folder(WORK):
        return True
    if any(_is_project(disk, name) for name, _ in disk.entries(PROJECTS)):
        return True
    try:
        found = json.loads(disk.read_text(INDEX) or "null")
    except (ValueError, RecursionError, Refusal):
        return False
    return isinstance(found, dict) and isinstance(found.get("projects"), dict)


def _is_project(disk: Disk, name: str) -> bool:
    """Return whether `projects/<name>` is a project of ours, and not another program's folder."""
    return any(disk.status(f"{PROJECTS}/{name}/{part}") is not None for part in _OF_A_PROJECT)

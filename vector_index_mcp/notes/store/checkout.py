"""Finds files that git has not checked out: nobody has deleted them."""

import os

from vector_index_mcp.notes.store.disk import GIT, Disk
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.processes import git

INDEX_OF_GIT = f"{GIT}/index"
_SKIPPED = b"S "


def left_out(disk: Disk, repository: Repository) -> frozenset[str] | None:
    """Return the files that a sparse checkout leaves out (`skip-worktree` in git's index).

    The result is None if git cannot read the index: then any file may be left out.

    Raises:
        Refusal: If git is not installed, or does not end in time.
    """
    environment = {
        **git.without_settings(),
        "GIT_INDEX_FILE": str(disk.root / INDEX_OF_GIT),
    }
    result = repository.run("ls-files", "-t", "-z", environment=environment)
    if result.status:
        return None
    lines = result.output.split(b"\0")
    return frozenset(
        os.fsdecode(line.removeprefix(_SKIPPED)) for line in lines if line.startswith(_SKIPPED)
    )

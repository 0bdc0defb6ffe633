"""Reads the branches and snapshots of a published index from a store."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from vector_index_mcp.errors import StorageError
from vector_index_mcp.indexing.mirroring import layout, limits
from vector_index_mcp.indexing.mirroring.layout import Snapshot
from vector_index_mcp.objects.store import Objects, at_once
from vector_index_mcp.processes import git

USUAL_BRANCHES = ("main", "master")
_TRIES = 3  # in case a branch gets another snapshot while its former one is read


def branches_of(home: Path | None, branch: str = "") -> list[str]:
    """Return the branches whose published index may serve a project, the best first.

    Args:
        home: The project's folder; None if it has none.
        branch: The one that is wanted; empty for the one that the project is on.
    """
    named = branch or (git.branch_of(home) if home else "")
    default = git.default_branch_of(home) if home else ""
    return [*dict.fromkeys(filter(None, (named, default, *USUAL_BRANCHES)))]


async def named_by(objects: Objects, branch: str) -> str | None:
    """The name of the snapshot that a branch has; None if it has none.

    Raises:
        StorageError: If the store refuses or is silent, or the branch's document is invalid.
    """
    content = await objects.get(layout.branch_at(branch), limits.LARGEST_BRANCH_BYTES)
    return None if content is None else layout.loaded_branch(content.data)


async def snapshot_named(objects: Objects, name: str) -> Snapshot | None:
    """The snapshot with this name; None if there is none.

    Raises:
        StorageError: If the store refuses or is silent, or the snapshot's document is invalid.
    """
    content = await objects.get(layout.snapshot_at(name), limits.LARGEST_SNAPSHOT_BYTES)
    return None if content is None else Snapshot.loaded(content.data)


async def snapshot_of(objects: Objects, branch: str) -> tuple[str, Snapshot] | None:
    """The snapshot that a branch has, with its name; None if it has none.

    Raises:
        StorageError: If the store refuses or is silent, or a document is invalid.
    """
    for _ in range(_TRIES):
        name = await named_by(objects, branch)
        if name is None:
            return None
        snapshot = await snapshot_named(objects, name)
        if snapshot is not None:
            return name, snapshot
    raise StorageError(f"the snapshot of branch {branch} is not there any more")


async def first_snapshot_of(objects: Objects, branches: Sequence[str]) -> Snapshot | None:
    """The snapshot of the first of `branches` that has one; None if none has. Reads all at once.

    Raises:
        StorageError: If the store refuses or is silent, or a document is invalid.
    """
    names: dict[str, str | None] = {}

    async def ask(branch: str) -> None:
        names[branch] = await named_by(objects, branch)

    await at_once(partial(ask, branch) for branch in branches)
    for branch in branches:
        if names[branch] is not None and (found := await snapshot_of(objects, branch)):
            return found[1]
    return None

"""The command `publish`: updates an index and uploads it to where a team fetches it from."""

import json
import shlex
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio.to_thread

from vector_index_mcp.background.endpoint import endpoint_of
from vector_index_mcp.codebase.service import Codebase
from vector_index_mcp.console import progress
from vector_index_mcp.console.awaiting import awaited
from vector_index_mcp.console.terminal import write
from vector_index_mcp.console.typed import resolved
from vector_index_mcp.engine.store import Index
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import (
    BusyError,
    SettingsError,
    StorageError,
    StoreError,
    counted,
    listed,
)
from vector_index_mcp.files.folder import Folder
from vector_index_mcp.files.ignore import Ignore
from vector_index_mcp.foreign import visible, visible_values
from vector_index_mcp.indexing import following
from vector_index_mcp.indexing.mirroring.cleaning import clean
from vector_index_mcp.indexing.mirroring.publishing import Published, State, ahead_of, publish
from vector_index_mcp.indexing.mirroring.reading import USUAL_BRANCHES
from vector_index_mcp.indexing.role import Role
from vector_index_mcp.indexing.vectors.given import share_vectors
from vector_index_mcp.indexing.vectors.team import TeamPlace
from vector_index_mcp.objects.opening import opened
from vector_index_mcp.objects.store import Objects
from vector_index_mcp.processes import git
from vector_index_mcp.serving.folders import team_place
from vector_index_mcp.serving.loading import load_codebase
from vector_index_mcp.serving.names import CODEBASE
from vector_index_mcp.settings import Settings, store_of

_MOST_NAMED = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options of the command."""

    uri: str
    """Where to publish."""
    branch: str
    """The branch that the index belongs to; empty: the one that is checked out."""
    keep_hours: float
    """How long replaced objects stay."""
    as_json: bool
    """Whether to print the result as JSON."""


def run(project: Path, settings: Settings, wanted: Wanted) -> int:
    """Publish the index of a project and print what was done; returns the exit status.

    Raises:
        SettingsError: If the branch of the index is unknown, or a setting is wrong.
        StoreError: If the index cannot be published.
        EmbeddingError: If its chunks cannot be embedded.
    """
    if not is_local(settings.lancedb_uri):
        raise SettingsError(
            f"the index lies at {settings.lancedb_uri}, where other machines can read it already; "
            "only an index on this machine can be published: unset VECTOR_INDEX_LANCEDB_URI"
        )
    uri, state = _store_of(wanted.uri), _state_of(project, wanted.branch)
    published = awaited(partial(_publish, project, settings, uri, state, wanted.keep_hours))
    if wanted.as_json:
        write(json.dumps(visible_values(asdict(published)), indent=2))
    else:
        for line in _lines(published):
            write(visible(line))
    return 0


def _store_of(given: str) -> str:
    is_folder = "://" not in given
    try:
        return store_of(str(resolved(given)) if is_folder else given)
    except ValueError as error:  # its message repeats no part of the URI, which may be a password
        raise SettingsError(f"the place to publish to: {error}") from None


def _state_of(project: Path, branch: str) -> State:
    if not branch.isprintable():  # as is the case if it has bytes that are not UTF-8
        raise SettingsError(
            f"the branch {branch!a} has characters that cannot be printed; give another --branch"
        )
    commit = git.commit_of(project)
    branch = branch or git.branch_of(project)
    if not branch and commit:
        raise SettingsError(
            f"no branch is checked out in {project}; give the branch with --branch NAME"
        )
    bases = (git.default_branch_of(project), *USUAL_BRANCHES)
    return State(branch or USUAL_BRANCHES[0], commit, tuple(filter(None, bases)))


async def _publish(
    project: Path, settings: Settings, uri: str, state: State, keep_hours: float
) -> Published:
    objects, is_ancestor = opened(uri), partial(git.lies_before, project)
    if published := await ahead_of(objects, state, is_ancestor):
        return published
    # Begin with what is published already: only what differs is then indexed and uploaded.
    seeded = settings.model_copy(update={"shared_index": uri})
    codebase = await anyio.to_thread.run_sync(
        partial(load_codebase, project, seeded, branch=state.branch)
    )
    await anyio.to_thread.run_sync(_check_is_not_indexed, uri, codebase.project)
    changed = await anyio.to_thread.run_sync(git.changed_files, project) if state.commit else []
    try:
        async with codebase.running(Role.VISITOR):
            await _complete(codebase)
            async with codebase.index.tidied() as live:
                published = await publish(objects, live, state, is_ancestor)
                changed = [path for path in changed if live.ledger.get(path) is not None]
                await _share(live.index, team_place(settings), published)
    except* BusyError:
        raise _busy(project) from None
    if changed:
        named = listed(changed, _MOST_NAMED)
        _note(published, f"files that differ from the commit are published as they are: {named}")
    await _clean(objects, keep_hours, published)
    return published


def _busy(project: Path) -> BusyError:
    if endpoint_of(CODEBASE, project).keeper is None:
        return BusyError(
            f"another process writes the index of {project}; publish when it has ended"
        )
    return BusyError(
        f"the background service of {project} keeps the index, and only one process can; end it "
        f"with `vector-index-mcp stop {shlex.quote(str(project))}`, and publish then"
    )


def _check_is_not_indexed(uri: str, project: Folder) -> None:
    """Check that the next index will not contain what is published now.

    Raises:
        SettingsError: If the place is a folder of the project that is not ignored.
    """
    place = Path(uri).resolve()
    if "://" in uri or not place.is_relative_to(project.path):
        return
    below = place.relative_to(project.path)
    if not below.parts or not Ignore(project).is_ignored(below.as_posix(), is_folder=True):
        raise SettingsError(
            f"the place to publish to, {place}, lies in the project and would be indexed with it; "
            "name a folder elsewhere, or have git ignore this one"
        )


async def _complete(codebase: Codebase) -> None:
    """Bring the text and the vectors of the index up to date.

    Raises:
        ModelNotFoundError: If there is no embedding model.
        StoreError: If the index cannot be written, or the files cannot be read.
    """
    index = codebase.index
    with progress.shown() as bar:
        await following.follow_fetch(bar, index)
        indexing = await index.trigger(force_reindex=False)
        await following.follow_text(bar, indexing)
        await following.follow_vectors(bar, index)
    if indexing.error:
        raise StoreError(indexing.error)
    index.progress.check_vectors()


async def _share(index: Index, place: TeamPlace | None, published: Published) -> None:
    """Write the vectors to the team's store, if there is one.

    A failure is only noted, since the index is published by now.
    """
    if place is None:
        return
    try:
        published.vectors_shared = (await share_vectors(index, place)).written
    except StoreError as error:
        _note(published, f"the team's vectors were not written: {error}")


async def _clean(objects: Objects, keep_hours: float, published: Published) -> None:
    """Remove objects that nobody needs any more; a failure is only noted."""
    try:
        removed = await clean(objects, keep_hours)
        published.removed, published.removed_bytes = removed.count, removed.size
    except StorageError as error:
        _note(published, f"old objects were not removed: {error}")


def _note(published: Published, problem: str) -> None:
    published.problems.append(problem)
    write(visible(problem), sys.stderr)


def _lines(published: Published) -> list[str]:
    at = f" at {published.commit[:12]}" if published.commit else ""
    if published.behind:
        return [
            f"branch {published.branch}: {published.behind[:12]} is published, which is later "
            f"than{at[3:]}; nothing was changed"
        ]
    lines = [
        f"branch {published.branch}{at}: {counted(published.files, 'file')}, "
        f"{counted(published.chunks, 'chunk')}, {_megabytes(published.size)}",
        f"uploaded {counted(published.uploaded, 'object')}, {_megabytes(published.uploaded_bytes)}"
        if published.uploaded
        else "nothing had to be uploaded",
    ]
    if published.vectors_shared:
        lines.append(f"gave {counted(published.vectors_shared, 'vector')} to the team's store")
    if published.removed:
        lines.append(
            f"removed {counted(published.removed, 'old object')}, "
            f"{_megabytes(published.removed_bytes)}"
        )
    return lines


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"

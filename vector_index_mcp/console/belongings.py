"""Finds what this program has written for its user, and decides what may be removed.

An index is ours if it has our mark and we have a record of it (`indexing.opening.ownership`). In
our own folders, a file is ours if it has a name that we give; a folder is ours if it and everything
in it have such names. Names decide, since a setting may have chosen a folder that holds other
things too.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from vector_index_mcp.background import contact, greeting
from vector_index_mcp.background.endpoint import Endpoint, endpoint_of
from vector_index_mcp.codebase.project import USUAL_INDEX
from vector_index_mcp.codebase.remedies import REMEDIES
from vector_index_mcp.console.removing import (
    remove_files,
    remove_records,
    remove_tree,
    remove_with_locks,
)
from vector_index_mcp.console.services import all_in_order
from vector_index_mcp.engine.store.reach import is_local
from vector_index_mcp.errors import ForeignIndexError
from vector_index_mcp.files.removal import (
    Left,
    is_folder,
    left_by,
    remove_file_at,
    remove_if_empty,
    size_of,
)
from vector_index_mcp.files.secrets import masked
from vector_index_mcp.indexing.opening.local import PLACES, Opener, may_exist
from vector_index_mcp.indexing.opening.locks import LOCKS
from vector_index_mcp.indexing.opening.marks import RECORDS
from vector_index_mcp.indexing.opening.owners import INSTALLATION, OWNERS
from vector_index_mcp.indexing.opening.ownership import Records, Standing
from vector_index_mcp.indexing.opening.removal import (
    fault_of,
    others_in,
    remove_index,
    size_of_index,
)
from vector_index_mcp.indexing.opening.writers import WRITER
from vector_index_mcp.indexing.place import Place
from vector_index_mcp.page.handover import folders_for
from vector_index_mcp.serving.folders import (
    MAKING,
    NOTES_STATE,
    TABLES,
    TEAM,
    cache_folder,
    state_folder,
)
from vector_index_mcp.serving.names import CODEBASE
from vector_index_mcp.settings import Settings

Remove = Callable[[], list[Left]]
"""Removes something; returns what could not be removed."""

_ASK_SECONDS = 3.0
_HASH = r"[0-9a-f]{16}"
_OF_A_SERVICE = re.compile(rf"({_HASH})\.(?:sock|lock|json|log|log\.1|[0-9]+)")
_HASHED, _LOCK = re.compile(_HASH), re.compile(rf"{_HASH}\.lock(?:{re.escape(WRITER)})?")
_OWNER = re.compile(rf"{_HASH}\.json(?:\.[0-9a-f]{{8}})?")
_THIS_INSTALLATION = re.compile(rf"{INSTALLATION}(?:\.[0-9a-f]{{8}})?")
_RECORD = re.compile(r"[0-9a-f]{32}\.json(?:\.[0-9a-f]{8})?")
_BEING_MADE, _MAKERS_LOCK = (
    re.compile(rf"{_HASH}(?:\.[0-9]+\.part)?"),
    re.compile(rf"{_HASH}\.lock"),
)
_OF_A_DATASET = re.compile(r"[0-9a-f]{24}(?:\.[0-9]+\.part)?")
_PACK = re.compile(rf"{_HASH}{_HASH}\.pack(?:\.{_HASH})?")
_VECTORS = re.compile(r"embeddings-[0-9]+\.sqlite3(?:-wal|-shm|-journal|\.lock)?")
_LINK_TO_PAGE = re.compile(rf"vector-index-mcp-{_HASH}-{_HASH}\.html")
_OWN_NAME = "vector-index-mcp"  # the name of our folders, unless a setting chooses others
_FOREIGN = "this program creates nothing of that name"
_LINK = "it is a link, and none is followed"
_NOT_OF_AN_INDEX = "it is not part of the index beside it"


@dataclass(frozen=True, slots=True)
class Thing:
    """One file or folder of ours, or several of a kind, that can be removed together."""

    path: Path
    description: str
    remove: Remove
    size: int = 0


@dataclass(slots=True)
class Belongings:
    """What there is to remove, and what is left alone."""

    services: list[Endpoint] = field(default_factory=list)
    """The running services that use it."""
    things: list[Thing] = field(default_factory=list)
    """What to remove, in the order of removal."""
    left: list[Left] = field(default_factory=list)
    """What is left alone, and why."""
    folders: list[Path] = field(default_factory=list)
    """The folders to remove once they are empty; the innermost first."""

    def tidy(self) -> None:
        """Remove the folders that are empty now."""
        for folder in self.folders:
            remove_if_empty(folder)


def of_project(project: Path, settings: Settings) -> Belongings:
    """Find the indexes of one project, wherever they lie. Changes nothing."""
    found = Belongings(services=_running([endpoint_of(CODEBASE, project)]))
    state = state_folder()
    records = Records(state)
    for folder in _folders_of(project, settings.lancedb_uri, records, found):
        known = records.of(folder)
        owner = known.owner if known is not None else str(project)
        is_inside = folder.is_relative_to(project)
        if folder == project / USUAL_INDEX:
            owner = str(project)  # it lies in the project's own place, whatever its record says
        if not owner and not is_inside:
            found.left.append(Left(str(folder), "no record says which project's index it is"))
        elif owner in {"", str(project)} or not may_exist(owner):
            _add_index(found, folder, f"index of {project}", records, state)
        elif is_inside and records.standing(folder) is Standing.COPY:
            _add_index(found, folder, f"index of {project}, copied", records, state)
        else:
            found.left.append(Left(str(folder), f"it is the index of {owner}"))
    return found


def _folders_of(project: Path, uri: str, records: Records, found: Belongings) -> Sequence[Path]:
    """Return the folders that may hold an index of a project."""
    opener = Opener(Place.in_project(project, uri), "", state_folder(), REMEDIES)
    folders = [opener.substitute, project / USUAL_INDEX]
    configured = opener.uri
    if not is_local(configured):
        why = "the index does not lie on this machine; remove its tables there"
        found.left.append(Left(masked(configured)[0], why))
    else:
        try:
            opener.locate()
            folders.append(Path(opener.uri))
            is_foreign = bool(opener.displaced)
        except ForeignIndexError:
            is_foreign = True
        if is_foreign and Path(configured) not in folders:
            folders.append(Path(configured))
    folders += [k.folder for k in records.all() if k.folder and k.owner == str(project)]
    return [*dict.fromkeys(folders)]


def _add_index(
    found: Belongings, folder: Path, description: str, records: Records, state: Path
) -> None:
    """Add the index in `folder`, if there is one, to what is removed or left alone."""
    try:
        fault = fault_of(folder, records)
        is_ours = records.of(folder) is not None
    except OSError as error:
        found.left.append(left_by(folder, error))
        return
    if fault:
        found.left.append(Left(str(folder), fault))
        return
    # A removal that was interrupted leaves a record without the index's mark.
    is_begun = any(known.folder == folder for known in records.all())
    if is_ours or (is_begun and not others_in(folder)):
        remove = partial(remove_index, folder, records, state)
        found.things.append(Thing(folder, description, remove, size_of_index(folder)))
        found.left += [Left(str(folder / name), _NOT_OF_AN_INDEX) for name in others_in(folder)]


def of_user(settings: Settings) -> Belongings:
    """Find all that this program has written for its user. Changes nothing."""
    found = Belongings(services=_running(all_in_order()))
    state, cache = state_folder(), cache_folder(settings)
    records = Records(state)
    own = [folder for folder in (state, cache) if _is_plain(folder, found)]
    for folder, owner in _owners(records).items():
        if not any(map(folder.is_relative_to, (state, cache))):
            description = f"index of {owner}" if owner else "index"
            _add_index(found, folder, description, records, state)
    if cache in own:
        _add_cache(found, cache, records, state)
    if state in own:
        _add_state(found, state, records)
    runtime = endpoint_of(CODEBASE, Path()).folder
    _add_runtime(found, runtime)
    return found


def _owners(records: Records) -> dict[Path, str]:
    """The owner of the index in each folder that exists.

    Each index that was made in a folder has a record, also those that were removed by hand.
    """
    owners: dict[Path, str] = {}
    for known in records.all():
        folder = known.folder
        if folder is not None and folder not in owners and os.path.lexists(folder):
            owners[folder] = (records.of(folder) or known).owner
    return owners


def _running(endpoints: Sequence[Endpoint]) -> list[Endpoint]:
    return [
        each
        for each in endpoints
        if each.keeper is not None or contact.ask(each, greeting.REPORT, _ASK_SECONDS)
    ]


def _is_plain(folder: Path, found: Belongings) -> bool:
    """Whether one of our folders exists and is no link; a link is noted as left alone."""
    if folder.is_symlink():
        found.left.append(Left(str(folder), _LINK))
    return folder.is_dir() and not folder.is_symlink()


# -- our own folders -------------------------------------------------------------------------


def _add_cache(found: Belongings, cache: Path, records: Records, state: Path) -> None:
    for path in _named(cache, _VECTORS):
        found.things.append(_file(path, "embedding cache"))
    locks = set(_named(cache / MAKING, _MAKERS_LOCK))
    found.things += [_file(path, "lock of a dataset in the making") for path in sorted(locks)]
    for path in _trees(cache / MAKING, _BEING_MADE, found, others_in, locks):
        found.things.append(_tree(path, "texts of a dataset that was not finished", records, state))
    for path in _trees(cache / TABLES, _HASHED, found, _no_tables_in):
        found.things.append(_tree(path, "tables made of datasets", records, state))
    for path in _trees(cache / TEAM, _HASHED, found, _no_packs_in):
        found.things.append(_tree(path, "vectors of your team", records, state))
    found.folders += [cache / MAKING, cache / TABLES, cache / TEAM]
    if cache.name == _OWN_NAME:  # a folder that a setting has chosen is not ours to remove
        known = {*found.folders, *(thing.path for thing in found.things)}
        _leave_others(found, cache, known)
        found.folders.append(cache)


def _add_state(found: Belongings, state: Path, records: Records) -> None:
    owners = _owners(records)
    for path in _trees(state / PLACES, _HASHED, found, others_in):
        owner = owners.get(path) or "a project"
        found.things.append(_tree(path, f"index of {owner}", records, state))
    for path in _trees(state / NOTES_STATE, _HASHED, found, _nothing_in):
        description = "index of notes, and settings of git for them"
        found.things.append(_tree(path, description, records, state))
    if paths := [*_named(state / RECORDS, _RECORD, found)]:
        remove = partial(remove_records, paths, records)
        description = f"records of {len(paths)} indexes" if len(paths) > 1 else "record of an index"
        found.things.append(_all(state / RECORDS, description, paths, remove))
    if paths := [*_named(state / LOCKS, _LOCK, found)]:
        remove = partial(remove_with_locks, state / LOCKS, paths)
        found.things.append(_all(state / LOCKS, "locks of indexes", paths, remove))
    names = [path for path in _entries(state) if _THIS_INSTALLATION.fullmatch(path.name)]
    if paths := [*_named(state / OWNERS, _OWNER, found), *names]:
        description = "names of this installation, and of projects with an index elsewhere"
        found.things.append(_all(state / OWNERS, description, paths, partial(remove_files, paths)))
    found.folders += [state / name for name in (PLACES, NOTES_STATE, RECORDS, LOCKS, OWNERS)]
    _leave_others(found, state, {*found.folders, *names})
    found.folders.append(state)


def _add_runtime(found: Belongings, runtime: Path) -> None:
    paths = [*_named(runtime, _OF_A_SERVICE)]
    links = [path for folder in folders_for(runtime) for path in _named(folder, _LINK_TO_PAGE)]
    if paths or links:
        remove = partial(_remove_runtime, runtime, links)
        description = "sockets, locks, records and logs of services"
        found.things.append(_all(runtime, description, [*paths, *links], remove))
    if runtime.name.startswith(_OWN_NAME):
        _leave_others(found, runtime, {*paths, *links})
        found.folders.append(runtime)


def _leave_others(found: Belongings, folder: Path, ours: set[Path]) -> None:
    found.left += [Left(str(path), _FOREIGN) for path in _entries(folder) if path not in ours]


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _named(
    folder: Path, pattern: re.Pattern[str], found: Belongings | None = None
) -> Iterator[Path]:
    """Yield the files of a folder that have names of ours; note all others in `found`, if given."""
    if folder.is_symlink():
        if found is not None:
            found.left.append(Left(str(folder), _LINK))
        return
    for path in _entries(folder):
        if pattern.fullmatch(path.name) and not is_folder(path):
            yield path
        elif found is not None:
            found.left.append(Left(str(path), _FOREIGN))


def _trees(
    folder: Path,
    pattern: re.Pattern[str],
    found: Belongings,
    others_of: Callable[[Path], list[str]],
    files: Collection[Path] = (),
) -> Iterator[Path]:
    """Yield the folders inside `folder` that are ours, as is everything in them.

    Args:
        folder: The folder to look into.
        pattern: Matches the names that we give such folders.
        found: Gets what is left alone.
        others_of: Returns the names inside such a folder that are not ours.
        files: Files of ours that lie beside such folders, and are not left alone.
    """
    if folder.is_symlink():
        found.left.append(Left(str(folder), _LINK))
        return
    for path in _entries(folder):
        is_named = pattern.fullmatch(path.name) is not None and is_folder(path)
        others = [path / name for name in others_of(path)] if is_named else [path]
        if is_named and not others:
            yield path
        elif path not in files:
            found.left += [Left(str(other), _FOREIGN) for other in others]


def _no_tables_in(folder: Path) -> list[str]:
    return [path.name for path in _entries(folder) if not _OF_A_DATASET.fullmatch(path.name)]


def _no_packs_in(folder: Path) -> list[str]:
    return [path.name for path in _entries(folder) if not _PACK.fullmatch(path.name)]


def _nothing_in(_: Path) -> list[str]:
    return []


def _file(path: Path, description: str) -> Thing:
    return Thing(path, description, partial(remove_file_at, path), size_of(path))


def _all(folder: Path, description: str, paths: Sequence[Path], remove: Remove) -> Thing:
    return Thing(folder, description, remove, sum(map(size_of, paths)))


def _tree(path: Path, description: str, records: Records, state: Path) -> Thing:
    return Thing(path, description, partial(remove_tree, path, records, state), size_of(path))


def _remove_runtime(runtime: Path, links: Sequence[Path]) -> list[Left]:
    """Remove the files of services that have ended."""
    return remove_files(links) + remove_with_locks(runtime, _named(runtime, _OF_A_SERVICE))

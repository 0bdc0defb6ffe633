"""Restores a project as it was at some moment, in one change, which can itself be undone.

Nothing is lost: the writer first commits edits made by hand to the files that are replaced.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from vector_index_mcp.errors import SettingsError, UnknownError
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.past.history import entries_of
from vector_index_mcp.notes.past.pieces import ALL, TODO, Piece
from vector_index_mcp.notes.past.states import Past, State, state_now, state_then, tree_of
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import ByHand
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.history import Tree
from vector_index_mcp.notes.store.writer import Plan, Writer
from vector_index_mcp.notes.texts.projects import Project, Projects

_LIST = "`vector-index-mcp notes list` shows what there is, and `notes log` what there was"
_REPAIR = "`vector-index-mcp notes doctor --repair`"


class Fate(StrEnum):
    """What happens to a file; the values are shown to people."""

    COMES_BACK = "comes back"
    CHANGES = "changes"
    GOES_AWAY = "goes away"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to restore."""

    project: str
    piece: Piece
    commit: str
    """The commit that has the wanted state."""


@dataclass(frozen=True, slots=True)
class Restoring:
    """The change that restores something."""

    project: Project
    """The project with the folder that it will have, or has now if it goes away."""
    fates: tuple[tuple[str, Fate], ...]
    """Path in the project's folder, and fate, of each file that differs from the wanted state."""
    comes: bool
    """Whether the project is deleted now, and comes back."""
    goes: bool
    """Whether the project did not exist then, and goes away."""
    puts: Mapping[str, bytes] = field(compare=False)
    drops: tuple[str, ...] = field(compare=False)

    @property
    def is_needed(self) -> bool:
        """Whether anything differs from the wanted state."""
        return bool(self.puts or self.drops)


def before_deletion(store: Store, head: str, project: str, piece: Piece) -> str:
    """Return the last commit that has a project, or a piece of it, which is deleted now.

    Raises:
        Refusal: If the history cannot be read.
        SettingsError: If it is there now.
        UnknownError: If it never was there.
    """
    now = state_now(store.disk, tree_of(store.repository, head), ByHand(store.disk), project)
    if piece.among(now.files):
        what = f"project {project}" if piece == ALL else f"{piece.words} of project {project}"
        raise SettingsError(
            f"{what} is not deleted; say with --to of which time it is wanted, as "
            f"`vector-index-mcp notes log {project}` shows"
        )
    for entry in entries_of(store, head, project, piece):
        for commit in filter(None, (entry.commit, entry.parent)):
            if piece.among(state_then(Past(store.repository, commit), project).files):
                return commit
    what = "" if piece == ALL else f"{piece.words} in "
    raise UnknownError(f"there never was {what}project {project}; {_LIST}")


def restoring(disk: Disk, tree: Tree, by_hand: ByHand, past: Past, wanted: Wanted) -> Restoring:
    """Return the change that restores something.

    Args:
        disk: The store's files.
        tree: The files of the last commit.
        by_hand: Finds the files that differ from the last commit.
        past: The store as it was.
        wanted: What to restore.

    Raises:
        Refusal: If that is not possible, for example because another project would change.
        SettingsError: If the `index.json` of that time cannot be parsed.
        UnknownError: If the project or piece exists neither now nor then.
    """
    projects = Projects(disk)
    if projects.problem:
        raise Refusal(Code.INVALID_CONTENT, f"{projects.problem}, or run {_REPAIR}")
    now = state_now(disk, tree, by_hand, wanted.project)
    then = _then(past, wanted, now)
    _check_known(wanted, now, then)
    project = now.project or _place(disk, projects, then)
    _check_alone(projects, project)
    held = wanted.piece.holds
    new = {path: data for path, data in then.files.items() if held(path)}
    old = {path: data for path, data in now.files.items() if held(path)}
    old |= _ignored(disk, project, new.keys() - old.keys())
    goes = then.project is None and wanted.piece == ALL
    comes = now.project is None
    if comes and not new:  # git keeps no empty folder, so it would be a project without one
        raise UnknownError(
            f"project {wanted.project} held nothing then; "
            f"`vector-index-mcp notes log {wanted.project}` shows when it held something"
        )
    puts = {f"{project.folder}/{path}": data for path, data in new.items() if old.get(path) != data}
    if comes:
        puts |= projects.with_entry(project)
    if goes:
        puts |= projects.without_project(project.id)
    drops = tuple(_drops(disk, project, old.keys() - new.keys(), new, goes))
    for path in drops:
        _check_readable(disk, path)
    return Restoring(project, tuple(_fates(old, new)), comes, goes, puts, drops)


def plan_of(shown: Restoring, writer: Writer, past: Past, wanted: Wanted, about: str) -> Plan:
    """Return the plan of a change that a person has seen and approved. The writer calls this.

    Args:
        shown: The change that the person has seen.
        writer: The store's writer.
        past: The store as it was.
        wanted: What to restore.
        about: The moment, for the commit's message.

    Raises:
        Refusal: If the change would be a different one by now.
    """
    found = restoring(writer.disk, writer.tree, writer.by_hand, past, wanted)
    if found != shown:
        raise Refusal(
            Code.INVALID_INPUT,
            f"project {wanted.project} has changed since the preview; run the command again",
        )
    what = "" if wanted.piece == ALL else f"{wanted.piece.words} "
    message = f"Update knowledge for {wanted.project}: Restored {what}as of {about}"
    return Plan(Change(found.puts, found.drops), message, is_exact=True)


def _then(past: Past, wanted: Wanted, now: State) -> State:
    then = state_then(past, wanted.project, now.project.folder if now.project else "")
    if now.project is None and then.project is None and Projects(past).problem:
        raise SettingsError(f"{INDEX} of that moment cannot be understood; choose another --to")
    return then


def _check_known(wanted: Wanted, now: State, then: State) -> None:
    if now.project is None and then.project is None:
        raise UnknownError(
            f"there is no project {wanted.project} now, and there was none then; "
            f"`vector-index-mcp notes log {wanted.project}` shows when there was one"
        )
    if wanted.piece != ALL and not any(map(wanted.piece.among, (now.files, then.files))):
        raise UnknownError(
            f"project {wanted.project} has no {wanted.piece.words} now, and had none then; "
            f"`vector-index-mcp notes log {wanted.project}` shows what there was"
        )


def _place(disk: Disk, projects: Projects, then: State) -> Project:
    """Return a restored project with its old folder, or a new one if the old one is taken."""
    assert then.project is not None
    first = then.project.folder.removeprefix(f"{PROJECTS}/")
    name, number = first, 0
    while name in projects.entries.values() or not _is_free(disk, f"{PROJECTS}/{name}"):
        number += 1
        name = f"{first}-{number}"
    return Project(then.project.id, f"{PROJECTS}/{name}")


def _is_free(disk: Disk, folder: str) -> bool:
    """Return whether the folder is missing, or contains only empty folders, as git leaves them."""
    if disk.is_folder(folder):
        return not any(disk.files(folder))
    return disk.status(folder) is None


def _check_alone(projects: Projects, project: Project) -> None:
    name = project.folder.removeprefix(f"{PROJECTS}/")
    others = [key for key, folder in projects.entries.items() if folder == name]
    if set(others) - {project.id}:
        raise Refusal(
            Code.INVALID_PROJECT_ID,
            f"the projects {' and '.join(others)} have the same folder, so that one cannot be "
            f"restored without the other; correct {INDEX}",
        )


def _ignored(disk: Disk, project: Project, paths: Collection[str]) -> dict[str, bytes]:
    """Return ignored files that exist at `paths`: restored files would replace them."""
    found = {path: disk.read(f"{project.folder}/{path}") for path in sorted(paths)}
    return {path: data for path, data in found.items() if data is not None}


def _check_readable(disk: Disk, place: str) -> None:
    """Check that the files to remove can be committed before.

    Raises:
        Refusal: If a file cannot be read, or is too large.
    """
    for path in disk.files(place) if disk.is_folder(place) else [place]:
        disk.read(path)


def _fates(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> list[tuple[str, Fate]]:
    found = []
    for path in sorted({*old, *new}):
        if path not in old:
            found.append((path, Fate.COMES_BACK))
        elif path not in new:
            found.append((path, Fate.GOES_AWAY))
        elif old[path] != new[path]:
            found.append((path, Fate.CHANGES))
    return found


def _drops(
    disk: Disk, project: Project, gone: Collection[str], kept: Collection[str], goes: bool
) -> list[str]:
    """Return the files and folders to remove so that the files `gone` are gone.

    A to-do list is a folder: if the empty folder stayed, there would be an empty list.
    """
    if goes:
        return [project.folder] if disk.is_folder(project.folder) else []
    needed = {_list_of(path) for path in kept}
    found = {path if (place := _list_of(path)) in needed else place for path in gone}
    return [f"{project.folder}/{path}" for path in sorted(found)]


def _list_of(path: str) -> str:
    """Return the folder of the to-do list that a file belongs to; the file itself if none does."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == TODO and len(parts) > 2 else path

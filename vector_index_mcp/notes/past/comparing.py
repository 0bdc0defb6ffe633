"""Compares a project at two moments: by default before and after its last change."""

from collections.abc import Mapping
from dataclasses import dataclass

from vector_index_mcp.errors import UnknownError
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.past import history
from vector_index_mcp.notes.past.history import Entry
from vector_index_mcp.notes.past.pieces import ALL, Piece
from vector_index_mcp.notes.past.states import Past, State, state_now, state_then, tree_of
from vector_index_mcp.notes.store.byhand import ByHand
from vector_index_mcp.notes.texts.projects import Projects


@dataclass(frozen=True, slots=True)
class Comparison:
    """The files of a project at two moments: contents by path below the project's folder."""

    old: Mapping[str, bytes]
    new: Mapping[str, bytes]
    entry: Entry | None = None
    """The commit between the two, if it is a single one."""
    is_edit: bool = False
    """Whether the difference is an edit that is not committed yet."""


def last_change(store: Store, project: str, piece: Piece, until: str) -> Comparison:
    """Compare a project before and after its last change.

    Args:
        store: The store.
        project: The project's id; the project may be deleted.
        piece: The part of the project to compare.
        until: The moment up to which changes count, as a person wrote it; empty for now.

    Raises:
        Refusal: If the store cannot be read.
        SettingsError: If the moment cannot be understood.
        UnknownError: If the history has no such project or piece.
    """
    head = history.head_of(store)
    if until:
        head = history.past_commit(store, head, project, until)
    else:
        old, new = _at(store, project, head).files, _now(store, project, head).files
        if _held(old, piece) != _held(new, piece):
            return Comparison(_held(old, piece), _held(new, piece), is_edit=True)
    entry = known_entries(store, head, project, piece)[0]
    before, after = (_at(store, project, c).files for c in (entry.parent, entry.commit))
    return Comparison(_held(before, piece), _held(after, piece), entry)


def between(store: Store, project: str, piece: Piece, since: str, until: str) -> Comparison:
    """Compare a project at two moments.

    Args:
        store: The store.
        project: The project's id; the project may be deleted.
        piece: The part of the project to compare.
        since: The first moment, as a person wrote it; it may be before the first commit.
        until: The second moment; empty for now.

    Raises:
        Refusal: If the store cannot be read.
        SettingsError: If a moment cannot be understood.
        UnknownError: If the history has no such project or piece.
    """
    head = history.head_of(store)
    old = _at(store, project, history.commit_at(store, head, project, since)).files
    if until:
        new = _at(store, project, history.past_commit(store, head, project, until)).files
    else:
        new = _now(store, project, head).files
    if not piece.among({*old, *new}):
        known_entries(store, head, project, piece)
    return Comparison(_held(old, piece), _held(new, piece))


def known_entries(store: Store, head: str, project: str, piece: Piece) -> list[Entry]:
    """Return the commits up to `head` that have changed a piece, newest first; at least one.

    Raises:
        Refusal: If they cannot be read.
        UnknownError: If there is no such commit.
    """
    found = history.entries_of(store, head, project, piece)
    if not found:
        what = f"project {project}" if piece == ALL else f"{piece.words} of project {project}"
        raise UnknownError(
            f"the history knows nothing of {what}; `vector-index-mcp notes log` lists all changes"
        )
    return found


def _at(store: Store, project: str, commit: str) -> State:
    past = Past(store.repository, commit)
    now = Projects(store.disk)
    found = now.find(project) if not now.problem else None
    return state_then(past, project, found.folder if found else "")


def _now(store: Store, project: str, head: str) -> State:
    return state_now(store.disk, tree_of(store.repository, head), ByHand(store.disk), project)


def _held(files: Mapping[str, bytes], piece: Piece) -> dict[str, bytes]:
    return {path: data for path, data in files.items() if piece.holds(path)}

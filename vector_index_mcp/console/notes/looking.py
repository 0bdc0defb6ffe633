"""The commands that only read: list, show, log, diff, status. None of them uses a service.

On a machine without notes they report that, and create nothing.
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from typing import TypeAlias

from vector_index_mcp.console.notes import reports
from vector_index_mcp.console.notes.desk import Desk
from vector_index_mcp.console.terminal import write
from vector_index_mcp.errors import UnknownError
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes import overview, store_calls
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.layout import PROJECTS
from vector_index_mcp.notes.past import comparing, history
from vector_index_mcp.notes.past.pieces import ALL, MAIN_TEXT, Piece, piece_of
from vector_index_mcp.notes.past.states import Past
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts import todos
from vector_index_mcp.notes.texts.projects import Project, Projects

Command: TypeAlias = Callable[[argparse.Namespace, Desk, Store], int]
_LISTED = "`vector-index-mcp notes list` lists the projects"


def say(text: str) -> None:
    """Print `text`, which brings its own line feeds."""
    write(text, end="")


def warn(words: str) -> None:
    """Print a line on standard error."""
    write(f"vector-index-mcp: {visible(words)}", sys.stderr)


def status_without_notes(desk: Desk, store: Store) -> int | None:
    """Say that there are no notes, and return the exit status; None if there are some."""
    if overview.has_notes(store.disk):
        return None
    if desk.trouble():
        return 1  # a warning has said so
    write(f"{overview.NOTHING} ({visible(str(desk.home))})")
    return 0


# -- what there is ---------------------------------------------------------------------------


def _list(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    if not line.words and (exit_status := status_without_notes(desk, store)) is not None:
        return exit_status
    projects = Projects(store.disk)
    if projects.problem:
        warn(f"{projects.problem}, or run `vector-index-mcp notes doctor --repair`")
    project = existing(store.disk, line.words[0]) if line.words else None
    gone = [each for each in projects.without_folder() if project in {None, each}]
    for each in gone:
        warn(store_calls.about_no_folder(each))
    if project in gone:
        return 1
    times = overview.Times(store, project.folder if project else PROJECTS)
    if times.problem:
        warn(f"the times of the last changes are unknown: {times.problem}")
    if project is None:
        say(reports.of_projects(overview.rows(store, times), desk.colours))
    else:
        contents = overview.contents_of(store, project, times)
        say(reports.of_contents(project.id, contents, desk.colours))
    return 0


def _show(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    name, piece = line.words[0], piece_of(line.words[1:])
    disk: Disk = store.disk
    when = ""
    if line.at:
        commit = history.past_commit(store, history.head_of(store), name, line.at)
        disk = Past(store.repository, commit)
        when = " then"
    project = existing(disk, name, when)
    if piece.todo in todos.numbers(disk, project.todos):
        say(reports.of_todo(todos.one(disk, project.todos, piece.todo), desk.colours))
    else:
        piece = MAIN_TEXT if piece == ALL else piece
        say(reports.readable(_text_of(disk, project, piece, when)))
    return 0


def existing(disk: Disk, project: str, when: str = "") -> Project:
    """Return the project with the id `project`.

    Args:
        disk: The store, as it is or as it was.
        project: The id.
        when: Words for the error message if the store is a past one; otherwise empty.

    Raises:
        UnknownError: If there is no such project.
    """
    found = Projects(disk).find(project)
    if found is None:
        gone = f"; `vector-index-mcp notes log {project}` shows whether there was one"
        raise UnknownError(
            f"there {'was' if when else 'is'} no project {project}{when}; {_LISTED}{gone}"
        )
    return found


def _text_of(disk: Disk, project: Project, piece: Piece, when: str) -> str:
    data = None if piece.todo else disk.read(f"{project.folder}/{piece.path}")
    if data is None:
        raise UnknownError(
            f"project {project.id} {'had' if when else 'has'} no {piece.words}{when}; "
            f"`vector-index-mcp notes list {project.id}` lists what it has, "
            f"`vector-index-mcp notes log {project.id}` what it had"
        )
    return data.decode("utf-8", "replace")


# -- what happened ---------------------------------------------------------------------------


def _log(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    if not line.words and (exit_status := status_without_notes(desk, store)) is not None:
        return exit_status
    head = history.head_of(store)
    project = line.words[0] if line.words else ""
    if project:
        found = comparing.known_entries(store, head, project, piece_of(line.words[1:]))
    else:
        found = history.entries(store, head)
    say(reports.of_entries(found[: line.count], project, desk.colours))
    if len(found) > line.count:
        say(f"{len(found) - line.count} more: `-n {len(found)}` shows them\n")
    return 0


def _diff(line: argparse.Namespace, desk: Desk, store: Store) -> int:
    project, piece = line.words[0], piece_of(line.words[1:])
    if line.since:
        found = comparing.between(store, project, piece, line.since, line.until)
    else:
        found = comparing.last_change(store, project, piece, line.until)
    say(reports.of_comparison(found, project, desk.colours))
    return 0


# -- how it is -------------------------------------------------------------------------------


def _status(line: argparse.Namespace, _: Desk, store: Store) -> int:
    found = overview.status(store)
    if line.json:
        write(json.dumps({"success": True, **found}, indent=2))
    else:
        say(reports.of_status(found))
    return 0


COMMANDS: Mapping[str, Command] = {
    "list": _list,
    "show": _show,
    "log": _log,
    "diff": _diff,
    "status": _status,
}
"""The functions that run the commands, by name."""

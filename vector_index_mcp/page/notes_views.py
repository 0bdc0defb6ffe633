"""Prepares projects, main texts, documents and to-do lists of the notes for the page.

Contents may have any length, and names may have any characters. So the length of what is shown is
limited, and names are encoded as keys for addresses.
"""

import posixpath
from collections.abc import Callable
from typing import Any

from vector_index_mcp.errors import UnknownError
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.layout import PROJECTS
from vector_index_mcp.notes.merging import conflicts
from vector_index_mcp.notes.past import history
from vector_index_mcp.notes.quoting import quoted, unquoted
from vector_index_mcp.notes.refusal import Refusal
from vector_index_mcp.notes.texts import parts, todos
from vector_index_mcp.notes.texts.parts import Parts
from vector_index_mcp.notes.texts.projects import Project, Projects, existing
from vector_index_mcp.notes.texts.reading import ReadDocument, revision_of
from vector_index_mcp.notes.texts.slugs import filename
from vector_index_mcp.notes.texts.todos import Task, Todo
from vector_index_mcp.page import markup

Shown = dict[str, Any]

_MOST_LISTED = 1_000
_MOST_KEYWORDS = 50
_MOST_TEXT_CHARS = 1_000_000
_MOST_TASK_CHARS = 10_000  # the most of a task that is shown as plain text
_LONGEST_CHARS = 300
_LONGEST_KEY_CHARS = 4_000  # a longer key would make addresses too long
_WIKI = "[["


# -- names -----------------------------------------------------------------------------------


def cut(text: str, most: int = _LONGEST_CHARS) -> str:
    """Return `text`, or its beginning if it has more than `most` characters."""
    return text if len(text) <= most else f"{text[:most]}…"


def key_of(name: str) -> str:
    """Return `name` encoded for addresses; empty if it is too long for one."""
    key = quoted(name)
    return key if len(key) <= _LONGEST_KEY_CHARS else ""


def name_of(key: str) -> str:
    """Return the name that `key` encodes.

    Raises:
        UnknownError: If it is not a valid key.
    """
    try:
        return unquoted(key)
    except ValueError as error:
        raise UnknownError("This address is not valid; choose a project from the list.") from error


def address_of(project: str, kind: str = "", which: str = "") -> str:
    """Return the address of a project on the page, or of the part of it with a kind and a key."""
    place = f"project/{key_of(project)}"
    return f"{place}/{kind}/{which}" if kind else place


def head_of(store: Store) -> str:
    """Return the last commit of a store that its service has opened; empty if there is none.

    Raises:
        Refusal: If git cannot find it.
    """
    repository = store.repository
    return repository.commit_of(repository.branch()) if repository.exists else ""


# -- projects --------------------------------------------------------------------------------


def projects(store: Store) -> Shown:
    """Return all projects with their counts and last changes.

    Raises:
        Refusal: If the projects cannot be listed.
    """
    known = Projects(store.disk)
    listed = sorted(known.all(), key=lambda project: project.id.lower())
    newest: dict[str, int] = {}
    for path, when in _changes(store, PROJECTS).items():
        folder = "/".join(path.split("/", 2)[:2])
        newest[folder] = max(newest.get(folder, 0), when)
    return {
        "total": len(listed),
        "problem": cut(known.problem, _MOST_LISTED),
        "projects": [
            _row(store, each) | {"changed": newest.get(each.folder, 0)}
            for each in listed[:_MOST_LISTED]
        ],
    }


def _row(store: Store, project: Project) -> Shown:
    row: Shown = {"name": cut(project.id), "key": key_of(project.id), "documents": 0, "open": 0}
    try:
        row["documents"] = len(store.shelf.names(project))
        lists = todos.lists(store.disk, project.todos)
        row["open"] = sum(len(todo.tasks) - todo.completed_count for todo in lists)
    except Refusal as refusal:
        row["problem"] = cut(str(refusal))
    return row


def project(store: Store, name: str) -> Shown:
    """Return a project: its main text, its documents and its to-do lists.

    Raises:
        Refusal: If there is no such project, or it cannot be listed.
    """
    found = existing(store.disk, name)
    changes = _changes(store, found.folder)
    names = store.shelf.names(found)
    numbers = todos.numbers(store.disk, found.todos)
    left = _MOST_LISTED
    lists: list[Shown] = []
    for number in numbers:
        if left <= 0:
            break
        todo = todos.one(store.disk, found.todos, number)
        lists.append(_head(todo) | {"tasks": [_task(task) for task in todo.tasks[:left]]})
        left -= 1 + len(todo.tasks)
    return {
        "name": cut(name),
        "key": key_of(name),
        "main": _main(store, found) | {"changed": changes.get(found.main, 0)},
        "documents": [
            _line(store, found, each) | {"changed": changes.get(found.document(each), 0)}
            for each in names[:_MOST_LISTED]
        ],
        "total_documents": len(names),
        "todos": lists,
        "total_todos": len(numbers),
    }


def _changes(store: Store, folder: str) -> dict[str, int]:
    """Return when files were last changed; nothing if the history cannot be read."""
    try:
        return history.last_changes(store, head_of(store), folder)
    except Refusal:
        return {}


def _main(store: Store, project: Project) -> Shown:
    try:
        text = store.disk.read_text(project.main)
    except Refusal as refusal:
        return {"exists": True, "problem": str(refusal), "nodes": [], "chapters": []}
    if text is None:
        return {"exists": False, "nodes": [], "chapters": []}
    target = _target(store, project, "")
    return _text(parts.split(text), target, 1) | {
        "exists": True,
        "revision": revision_of(text.encode()),
    }


def _line(store: Store, project: Project, name: str) -> Shown:
    """Return a document for a list."""
    head: Shown = {"file": cut(name), "key": key_of(name)}
    try:
        read = store.shelf.listed(project, name)
    except Refusal as refusal:
        return head | {"title": cut(name), "keywords": [], "problem": cut(str(refusal))}
    has_conflict = bool(conflicts(read.document.text))
    return head | _metadata(read) | {"conflict": has_conflict}


def _metadata(read: ReadDocument) -> Shown:
    data = read.metadata
    return {
        "title": cut(data.title),
        "keywords": [cut(each) for each in data.keywords[:_MOST_KEYWORDS]],
        "created": cut(data.created),
        "updated": cut(data.updated),
        "revision": read.revision,
    }


# -- a document ------------------------------------------------------------------------------


def document(store: Store, name: str, file: str) -> Shown:
    """Return a document of the project `name`.

    Raises:
        Refusal: If there is no such document, or it cannot be read.
        UnknownError: If no document can have such a name.
    """
    found = existing(store.disk, name)
    read = store.shelf.document(found, checked_file(file))
    first = read.document.front.count("\n") + 1
    shown = _text(read.document.parts, _target(store, found, "knowledge"), first)
    return {
        "project": cut(name),
        "project_key": key_of(name),
        "file": cut(file),
        "key": key_of(file),
        **_metadata(read),
        **shown,
    }


def checked_file(name: str) -> str:
    """Return `name` if a file can have it.

    Raises:
        UnknownError: If no file can have it.
    """
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        raise UnknownError("No document has such a name; choose one from its project.")
    return name


def _text(found: Parts, target: Callable[[str], str], first: int) -> Shown:
    """Return a text as elements, and its chapters with the lines where they begin."""
    nodes, left_out = _nodes(found.text, target, first)
    chapters: list[Shown] = []
    line = first + found.head.count("\n")
    for part in found.parts[:_MOST_LISTED]:
        is_conflict = bool(conflicts(part.text))
        chapters.append({"title": cut(part.title), "line": line, "conflict": is_conflict})
        line += part.text.count("\n")
    return {"nodes": nodes, "left_out": left_out, "chapters": chapters}


def _nodes(
    text: str, target: Callable[[str], str], first: int = 1, *, is_plain: bool = False
) -> tuple[list[markup.Node], int]:
    """Return the elements of a text, with invisible characters escaped; and what is left out."""
    beginning = visible(text[:_MOST_TEXT_CHARS], keep="\n\t")
    nodes, left_out = markup.shown(beginning, target, first, is_plain=is_plain)
    return nodes, left_out + max(0, len(text) - _MOST_TEXT_CHARS)


def _target(store: Store, project: Project, folder: str) -> Callable[[str], str]:
    """Return a function that finds the addresses of links in a text of `project` in `folder`."""
    names = frozenset(store.shelf.names(project))

    def target(link: str) -> str:
        if link.startswith(_WIKI):
            wanted = link.removeprefix(_WIKI)
            candidates = [wanted, f"{wanted}.md", filename(wanted)]
        else:
            path = posixpath.normpath(posixpath.join(folder, link))
            if path == "main.md":
                return address_of(project.id)
            # A main text may name a document without its folder, as agents do.
            is_there = path.startswith("knowledge/") or not folder
            candidates = [path.removeprefix("knowledge/")] if is_there else []
        found = next((each for each in candidates if each in names), "")
        return address_of(project.id, "document", key_of(found)) if found else ""

    return target


# -- a to-do list ----------------------------------------------------------------------------


def todo(store: Store, name: str, number: str) -> Shown:
    """Return a to-do list of the project `name`, with the contents of its tasks.

    Raises:
        Refusal: If there is no such list, or it cannot be listed.
        UnknownError: If no list can have such a number.
    """
    found = existing(store.disk, name)
    one = todos.one(store.disk, found.todos, checked_number(number))
    target = _target(store, found, "")
    left = markup.MOST_CHARS
    tasks: list[Shown] = []
    for task in one.tasks[:_MOST_LISTED]:
        is_plain = len(task.content) > left
        content = task.content[:_MOST_TASK_CHARS] if is_plain else task.content
        left -= 0 if is_plain else len(content)
        nodes, _ = _nodes(content, target, is_plain=is_plain)
        left_out = len(task.content) - len(content)
        tasks.append(_task(task) | {"nodes": nodes, "left_out": left_out})
    return _head(one) | {"project": cut(name), "project_key": key_of(name), "tasks": tasks}


def checked_number(text: str) -> int:
    """Return the number of a to-do list.

    Raises:
        UnknownError: If the text is not a number that a list can have.
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= 6 and int(text)):
        raise UnknownError("No to-do list has such a number; choose one from its project.")
    return int(text)


def _head(todo: Todo) -> Shown:
    return {
        "number": todo.number,
        "description": cut(todo.description, _MOST_LISTED),
        "created": cut(todo.created),
        "total": len(todo.tasks),
        "done": todo.completed_count,
        "problem": cut(todo.problem),
    }


def _task(task: Task) -> Shown:
    return {
        "number": task.number,
        "title": cut(task.title),
        "done": task.completed,
        "has_content": bool(task.content),
        "problem": cut(task.problem),
    }

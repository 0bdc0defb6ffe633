"""Repairs what the doctor finds, in one change; the earlier state stays in the history."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.doctor import of_git
from vector_index_mcp.notes.layout import INDEX, PROJECTS, task_name
from vector_index_mcp.notes.merging.numbers import Numbers
from vector_index_mcp.notes.past.history import versions
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import some
from vector_index_mcp.notes.store.disk import Change
from vector_index_mcp.notes.store.history import contents
from vector_index_mcp.notes.store.writer import Plan, Writer
from vector_index_mcp.notes.texts import matter, todos
from vector_index_mcp.notes.texts.projects import Projects, written
from vector_index_mcp.notes.texts.slugs import folders_of
from vector_index_mcp.notes.texts.todos import Task, Todo

_MOST_VERSIONS = 100  # of a file, among which to look for one that can be read
_LAST = "\U0010ffff"


@dataclass(slots=True)
class Repair:
    """The repairs that are possible."""

    said: list[str] = field(default_factory=list)
    """What will be done, in sentences."""
    puts: dict[str, bytes] = field(default_factory=dict)
    drops: list[str] = field(default_factory=list)
    has_index: bool = False
    """Whether git's index needs a repair, too."""

    @property
    def is_of_files(self) -> bool:
        """Whether any file of the notes changes."""
        return bool(self.puts or self.drops)


def repair_of(store: Store, head: str) -> Repair:
    """Return the repairs that a store needs.

    Args:
        store: The store.
        head: The last commit; empty if there is none.

    Raises:
        Refusal: If the store cannot be read.
    """
    found = Repair()
    _mend_index(store, head, found)
    for folder in Projects(store.disk).folders():
        place = f"{PROJECTS}/{folder}"
        for path in _broken(store, place):
            if data := _last_good(store, head, path):
                found.said.append(f"{path}: its last readable version comes back")
                found.puts[path] = data
        for todo in todos.lists(store.disk, f"{place}/TODO"):
            _number_anew(store, todo, found)
    if words := of_git.damage(store):
        found.said.append(f"{words}: it is made anew from the last commit")
    elif words := of_git.behind(store):
        found.said.append(f"{words}; it is brought up to date")
    found.has_index = bool(words)
    return found


def repair(found: Repair, writer: Writer, store: Store) -> None:
    """Make a repair that a person has approved.

    Raises:
        Refusal: If the repair would be a different one by now, or is not possible.
    """
    if found.is_of_files:
        writer.ask(lambda: plan_of(found, store, writer.tree.commit)).result()
    if found.has_index:
        writer.alone(writer.index.repair).result()


def plan_of(shown: Repair, store: Store, head: str) -> Plan:
    """Return the plan of a repair that a person has approved. The writer calls this.

    Raises:
        Refusal: If the repair would be a different one by now.
    """
    found = repair_of(store, head)
    if (found.puts, found.drops) != (shown.puts, shown.drops):
        raise Refusal(
            Code.INVALID_INPUT, "the store has changed since the preview; run the command again"
        )
    message = f"Repaired {some([*found.puts, *found.drops])}\n\n" + "\n".join(found.said)
    return Plan(Change(found.puts, tuple(found.drops)), message, is_exact=True)


# -- index.json ------------------------------------------------------------------------------


def _mend_index(store: Store, head: str, found: Repair) -> None:
    projects = Projects(store.disk)
    text = store.disk.read(INDEX)  # this raises if it is too large to commit before replacing it
    folders = projects.folders()
    sentences: list[str] = []
    if projects.problem or (text is None and folders):
        values = _last_index(store, head)
        known = _of_strings(values.get("projects"))
        entries: dict[str, Any] = {k: name for k, name in known.items() if name in folders}
        sentences.append(f"{INDEX}: rebuilt from its last good version and the folders")
    else:
        values = json.loads(text) if text is not None else {}
        entries = dict(values.get("projects", {}))
        sentences += _replaced(projects, folders, entries)
    for name in (name for name in folders if name not in entries.values()):
        project = name
        numbers = count(1)
        while project in entries:
            project = f"{name}-{next(numbers)}"
        entries[project] = name
        sentences.append(f"{INDEX}: project {project} gets the folder {PROJECTS}/{name}")
    if sentences:
        found.said += sentences
        found.puts[INDEX] = written({**values, "projects": entries})


def _replaced(projects: Projects, folders: list[str], entries: dict[str, Any]) -> Iterator[str]:
    """Give projects with an unusable entry the folder with their name, if it is free."""
    for project in projects.unusable:
        for name in folders_of(project):
            if name in folders and name not in entries.values():
                entries[project] = name
                yield f"{INDEX}: project {project} gets the folder {PROJECTS}/{name}"
                break


def _last_index(store: Store, head: str) -> dict[str, Any]:
    data = _last_good(store, head, INDEX)
    values = json.loads(data) if data is not None else {}
    return values if isinstance(values, dict) else {}


def _of_strings(values: object) -> Mapping[str, str]:
    entries = values.items() if isinstance(values, dict) else ()
    return {key: name for key, name in entries if isinstance(name, str)}


# -- files -----------------------------------------------------------------------------------


def _broken(store: Store, place: str) -> Iterator[str]:
    """Yield the files of a project that can be read, but not parsed, and missing `index.json`s."""
    names = [name for name, _ in store.disk.entries(f"{place}/knowledge") if name.endswith(".md")]
    paths = [f"{place}/main.md", *(f"{place}/knowledge/{name}" for name in names)]
    for todo in todos.lists(store.disk, f"{place}/TODO"):
        paths += [f"{todo.folder}/{INDEX}"] if todo.problem else []
        paths += [task.path for task in todo.tasks if task.problem]
    for path in paths:
        try:
            data = store.disk.read(path)
        except Refusal:  # it could not be committed, so replacing it would lose it
            continue
        is_missing = data is None and path.endswith(f"/{INDEX}")
        if is_missing or (data is not None and not _is_good(path, data)):
            yield path


def _is_good(path: str, data: bytes) -> bool:
    try:
        text = data.decode()
        return path.endswith(".md") or isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _last_good(store: Store, head: str, path: str) -> bytes | None:
    names = versions(store, head, path)[:_MOST_VERSIONS]
    found = contents(store.repository, names)
    return next((found[name] for name in names if _is_good(path, found[name])), None)


# -- numbers ---------------------------------------------------------------------------------


def _number_anew(store: Store, todo: Todo, found: Repair) -> None:
    """Give a new number to each task that has the same number as an earlier task."""
    taken: set[int] = set()
    numbers = Numbers((todo.number, task.number) for task in todo.tasks)
    readable = (task for task in todo.tasks if not task.problem)
    for task in sorted(readable, key=lambda task: (task.number, _created(store, task), task.path)):
        if task.number not in taken:
            taken.add(task.number)
            continue
        number = numbers.next(todo.number)
        name = task.path.rpartition("/")[2]
        parts = task_name(name)
        assert parts is not None
        found.puts[f"{todo.folder}/TASK-{number:03d}{parts['rest']}"] = (
            store.disk.read(task.path) or b""
        )
        found.drops.append(task.path)
        found.said.append(f"{task.path}: its number {task.number} becomes {number}")


def _created(store: Store, task: Task) -> str:
    """Return a task's time of creation; a task without one sorts last."""
    text = store.disk.read_text(task.path) or ""
    if task.path.endswith(".json"):
        created = json.loads(text).get("created")
    else:
        created = matter.metadata(matter.parted(text)[0]).created
    return created if isinstance(created, str) and created else _LAST

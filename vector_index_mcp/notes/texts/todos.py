"""To-do lists: what their files say, and what they have to say after a change.

A list is a folder with a number. Each of its tasks is a file, whose name has the task's number and
title. The document of the contract has tasks in JSON, the original program wrote them as Markdown:
both are read, JSON is written.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts import matter
from vector_index_mcp.notes.texts.slugs import slug

INDEX = "index.json"
_TASK = re.compile(r"TASK-([0-9]{1,6})(?:-.*)?\.(json|md)", re.DOTALL)
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_LONGEST_SLUG = 100
_MOST_CONFLICT_CHARS = 2_000
_COMPLETED = re.compile(r"^completed[ \t]*:[^\n\r]*", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """A task of a list."""

    number: int
    path: str
    title: str
    content: str
    completed: bool
    problem: str = ""
    """Why its file cannot be read; empty if it can."""
    conflict: str = ""
    """What another machine says of it, in words; empty if both say the same."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A to-do list."""

    number: int
    folder: str
    description: str
    created: str
    tasks: tuple[Task, ...]
    """In the order of their numbers."""
    problem: str = ""
    """Why its own file cannot be read; empty if it can."""
    conflict: str = ""
    """What another machine says of it, in words; empty if both say the same."""

    @property
    def completed_count(self) -> int:
        """How many of its tasks are done."""
        return sum(task.completed for task in self.tasks)

    @property
    def completed(self) -> bool:
        """Whether there are tasks, and all of them are done."""
        return bool(self.tasks) and self.completed_count == len(self.tasks)

    @property
    def problems(self) -> list[str]:
        """What cannot be read of it."""
        all_problems = (self.problem, *(task.problem for task in self.tasks))
        return [problem for problem in all_problems if problem]

    @property
    def conflicts(self) -> list[str]:
        """What two machines have both changed of it."""
        all_conflicts = (self.conflict, *(task.conflict for task in self.tasks))
        return [conflict for conflict in all_conflicts if conflict]

    def task(self, number: int) -> Task:
        """The task with that number.

        Raises:
            Refusal: If there is none, or its file cannot be read.
        """
        for task in self.tasks:
            if task.number == number:
                if task.problem:
                    raise Refusal(Code.INVALID_CONTENT, task.problem, path=task.path)
                return task
        raise Refusal(
            Code.TODO_TASK_NOT_FOUND,
            f"Task #{number} not found in TODO #{self.number}",
            todo_number=self.number,
            task_number=number,
        )


# -- reading ---------------------------------------------------------------------------------


def numbers(disk: Disk, folder: str) -> list[int]:
    """The numbers of the lists in `folder`, in order.

    Raises:
        Refusal: If it cannot be listed.
    """
    found = (name for name, _ in disk.entries(folder) if _NUMBER.fullmatch(name))
    return sorted(int(name) for name in found if disk.is_folder(f"{folder}/{name}"))


def lists(disk: Disk, folder: str) -> Iterator[Todo]:
    """The lists in `folder`, in the order of their numbers.

    Raises:
        Refusal: If they cannot be listed.
    """
    return (_read(disk, folder, number) for number in numbers(disk, folder))


def one(disk: Disk, folder: str, number: int) -> Todo:
    """The list with that number.

    Raises:
        Refusal: If there is none.
    """
    if not disk.is_folder(f"{folder}/{number}"):
        raise Refusal(Code.TODO_NOT_FOUND, f"TODO #{number} not found", todo_number=number)
    return _read(disk, folder, number)


def _read(disk: Disk, folder: str, number: int) -> Todo:
    place = f"{folder}/{number}"
    tasks = []
    for name, _ in disk.entries(place):
        if found := _TASK.fullmatch(name):
            tasks.append(_task(disk, f"{place}/{name}", int(found[1]), found[2]))
    tasks.sort(key=lambda task: (task.number, task.path))
    values, problem = _object(disk, f"{place}/{INDEX}")
    description, created = (values.get(key) for key in ("description", "created"))
    return Todo(
        number,
        place,
        description if isinstance(description, str) else "",
        created if isinstance(created, str) else "",
        tuple(tasks),
        problem,
        _conflict(f"{place}/{INDEX}", values),
    )


def _task(disk: Disk, path: str, number: int, ending: str) -> Task:
    if ending == "md":
        return _task_of_markdown(disk, path, number)
    values, problem = _object(disk, path)
    title, content = (values.get(key) for key in ("title", "content"))
    if not isinstance(title, str):
        title = values.get("description")
    return Task(
        number,
        path,
        title if isinstance(title, str) else "",
        content if isinstance(content, str) else "",
        values.get("completed") is True,
        problem,
        _conflict(path, values),
    )


def _task_of_markdown(disk: Disk, path: str, number: int) -> Task:
    try:
        front, body = matter.parted(disk.read_text(path) or "")
    except Refusal as refusal:
        return Task(number, path, "", "", completed=False, problem=str(refusal))
    first, _, rest = body.strip().partition("\n")
    title = first.removeprefix("# ").strip()
    return Task(number, path, title, rest.strip(), matter.is_true(front, "completed"))


def _conflict(path: str, values: Mapping[str, Any]) -> str:
    """What `merging.objects` has kept of another machine's version, in words."""
    kept = values.get("conflict")
    if not isinstance(kept, dict) or not kept:
        return ""
    shown = json.dumps(kept, ensure_ascii=False)[:_MOST_CONFLICT_CHARS]
    return (
        f'{path} was changed on two machines; another version is kept in it as "conflict": {shown}'
    )


def _object(disk: Disk, path: str) -> tuple[Mapping[str, Any], str]:
    """What a file of JSON holds, or why it cannot be read."""
    try:
        text = disk.read_text(path)
        found = {} if text is None else json.loads(text)
        if isinstance(found, dict):
            return found, "" if text is not None else f"{path} is missing"
        reason = "it is no object"
    except Refusal as refusal:
        return {}, str(refusal)
    except (ValueError, RecursionError) as error:
        reason = str(error)
    return {}, f"{path} cannot be read ({reason}); correct it"


# -- changes ---------------------------------------------------------------------------------


def new_list(
    folder: str, number: int, description: str, tasks: list[tuple[str, str]]
) -> dict[str, bytes]:
    """The files of a new list, by path.

    Args:
        folder: In which lists lie.
        number: Of the list.
        description: Of it.
        tasks: Title and content of each.
    """
    place = f"{folder}/{number}"
    head = {"created": matter.now(), "description": description}
    files = {f"{place}/{INDEX}": _json(head)}
    for task, (title, content) in enumerate(tasks, 1):
        files |= new_task(place, task, title, content)
    return files


def new_task(folder: str, number: int, title: str, content: str) -> dict[str, bytes]:
    """The file of a new task of the list in `folder`."""
    moment = matter.now()
    values = {
        "title": title,
        **({"content": content} if content else {}),
        "completed": False,
        "created": moment,
        "updated": moment,
    }
    name = slug(title)[:_LONGEST_SLUG].rstrip("-")
    return {f"{folder}/TASK-{number:03d}-{name}.json": _json(values)}


def next_number(todo: Todo) -> int:
    """The number of the next task."""
    return max((task.number for task in todo.tasks), default=0) + 1


def completed(disk: Disk, task: Task) -> dict[str, bytes]:
    """The file of `task` once it is done; whatever else it says stays.

    Raises:
        Refusal: If it cannot be read.
    """
    text = disk.read_text(task.path) or ""
    if task.path.endswith(".json"):
        values = json.loads(text)
        return {task.path: _json({**values, "completed": True, "updated": matter.now()})}
    front, body = matter.parted(text)
    if not _COMPLETED.search(front):
        front = matter.with_line(front, "completed: true")
    front = _COMPLETED.sub("completed: true", front, count=1)
    return {task.path: (matter.touched(front, matter.now()) + body).encode()}


def _json(values: Mapping[str, Any]) -> bytes:
    text = json.dumps(values, indent=2, ensure_ascii=False)
    return f"{text}\n".encode("utf-8", "replace")

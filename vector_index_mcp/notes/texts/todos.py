"""Parses the files of to-do lists, and computes their new contents after a change.

A list is a folder whose name is its number. Each task is a file whose name has the task's number
and title. The contract documents tasks in JSON, but the original program wrote them as Markdown:
both are read, and JSON is written.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.notes.layout import INDEX, TODO_NUMBER, task_name
from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Disk
from vector_index_mcp.notes.texts import matter
from vector_index_mcp.notes.texts.slugs import slug

_NUMBER = re.compile(TODO_NUMBER)
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
    """Why the task's file cannot be read; empty if it can."""
    conflict: str = ""
    """A sentence with another machine's version of the task; empty without a conflict."""


@dataclass(frozen=True, slots=True)
class Todo:
    """A to-do list."""

    number: int
    folder: str
    description: str
    created: str
    tasks: tuple[Task, ...]
    """Sorted by number."""
    problem: str = ""
    """Why the list's `index.json` cannot be read; empty if it can."""
    conflict: str = ""
    """A sentence with another machine's version of `index.json`; empty without a conflict."""

    @property
    def completed_count(self) -> int:
        """How many tasks are done."""
        return sum(task.completed for task in self.tasks)

    @property
    def completed(self) -> bool:
        """Whether there are tasks, and all of them are done."""
        return bool(self.tasks) and self.completed_count == len(self.tasks)

    @property
    def problems(self) -> list[str]:
        """Why files of the list cannot be read, in sentences."""
        all_problems = (self.problem, *(task.problem for task in self.tasks))
        return [problem for problem in all_problems if problem]

    @property
    def conflicts(self) -> list[str]:
        """Which files of the list two machines have both changed, in sentences."""
        all_conflicts = (self.conflict, *(task.conflict for task in self.tasks))
        return [conflict for conflict in all_conflicts if conflict]

    def task(self, number: int) -> Task:
        """Return the task with that number.

        Raises:
            Refusal: If there is no such task, or its file cannot be read.
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
            task_numbers=[task.number for task in self.tasks[-MOST_SHOWN:]],
        )


# -- reading ---------------------------------------------------------------------------------


def numbers(disk: Disk, folder: str) -> list[int]:
    """Return the numbers of the lists in `folder`, sorted.

    Raises:
        Refusal: If the folder cannot be listed.
    """
    found = (name for name, _ in disk.entries(folder) if _NUMBER.fullmatch(name))
    return sorted(int(name) for name in found if disk.is_folder(f"{folder}/{name}"))


def lists(disk: Disk, folder: str) -> Iterator[Todo]:
    """Read the lists in `folder`, sorted by number.

    Raises:
        Refusal: If they cannot be listed.
    """
    return (_read(disk, folder, number) for number in numbers(disk, folder))


def one(disk: Disk, folder: str, number: int) -> Todo:
    """Read the list with that number.

    Raises:
        Refusal: If there is no such list.
    """
    if not disk.is_folder(f"{folder}/{number}"):
        raise Refusal(
            Code.TODO_NOT_FOUND,
            f"TODO #{number} not found",
            todo_number=number,
            todo_numbers=numbers(disk, folder)[-MOST_SHOWN:],
        )
    return _read(disk, folder, number)


def _read(disk: Disk, folder: str, number: int) -> Todo:
    place = f"{folder}/{number}"
    tasks = []
    for name, _ in disk.entries(place):
        if found := task_name(name):
            tasks.append(_task(disk, f"{place}/{name}", int(found["number"]), found["ending"]))
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
    """Return a sentence with the version that `merging.objects` has kept; empty without one."""
    kept = values.get("conflict")
    if not isinstance(kept, dict) or not kept:
        return ""
    shown = json.dumps(kept, ensure_ascii=False)[:_MOST_CONFLICT_CHARS]
    return f'{path} was changed on two machines; it holds the other version as "conflict": {shown}'


def _object(disk: Disk, path: str) -> tuple[Mapping[str, Any], str]:
    """Return the object in a JSON file, and why it cannot be read; the latter empty if it can."""
    try:
        text = disk.read_text(path)
        found = {} if text is None else json.loads(text)
        if isinstance(found, dict):
            return found, "" if text is not None else f"{path} is missing"
        reason = "it is no JSON object"
    except Refusal as refusal:
        return {}, str(refusal)
    except (ValueError, RecursionError) as error:
        reason = str(error)
    return {}, f"{path} cannot be read ({reason}); correct the file"


# -- changes ---------------------------------------------------------------------------------


def new_list(
    folder: str,
    number: int,
    description: str,
    tasks: list[tuple[str, str]],
    *,
    created: str = "",
) -> dict[str, bytes]:
    """Return the files of a new list, by path.

    Args:
        folder: The folder that contains the lists.
        number: The list's number.
        description: The list's description.
        tasks: Title and content of each task.
        created: When it was created; by default now.
    """
    place = f"{folder}/{number}"
    head = {"created": created or matter.now(), "description": description}
    files = {f"{place}/{INDEX}": _json(head)}
    for task, (title, content) in enumerate(tasks, 1):
        files |= new_task(place, task, title, content)
    return files


def new_task(
    folder: str, number: int, title: str, content: str, *, is_completed: bool = False
) -> dict[str, bytes]:
    """Return the file of a new task, by path; `folder` is that of its list."""
    moment = matter.now()
    values = {
        "title": title,
        **({"content": content} if content else {}),
        "completed": is_completed,
        "created": moment,
        "updated": moment,
    }
    name = slug(title)[:_LONGEST_SLUG].rstrip("-")
    return {f"{folder}/TASK-{number:03d}-{name}.json": _json(values)}


def next_number(todo: Todo) -> int:
    """Return the number for the next task."""
    return max((task.number for task in todo.tasks), default=0) + 1


def completed(disk: Disk, task: Task) -> dict[str, bytes]:
    """Return the file of `task`, marked as done; everything else in it stays.

    Raises:
        Refusal: If the file cannot be read.
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

"""Parses the paths of a store, and makes names for second versions of files. Pure."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from vector_index_mcp.errors import encodable
from vector_index_mcp.notes.layout import INDEX, PROJECTS, TODO_NUMBER, task_name

_TODO = re.compile(rf"{PROJECTS}/([^/]+)/TODO/({TODO_NUMBER})(?:/(.*))?", re.DOTALL)
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f/\\:*?"<>|]+')
_LONGEST_NAME = 240  # bytes; file systems allow 255, and a temporary file's name is longer
_LONGEST_LABEL = 80
_NAMELESS = "other side"


@dataclass(frozen=True, slots=True, order=True)
class Todo:
    """The place of a to-do list."""

    project: str
    """The name of the project's folder."""
    number: int

    @property
    def folder(self) -> str:
        """The list's folder, with a slash at the end."""
        return f"{PROJECTS}/{self.project}/TODO/{self.number}/"

    def __str__(self) -> str:
        return f"to-do {self.number} of {self.project}"


@dataclass(frozen=True, slots=True)
class Task:
    """The place of a task."""

    todo: Todo
    number: int
    rest: str
    """The part of the file name after the number."""

    @property
    def path(self) -> str:
        """The path of the task's file."""
        return f"{self.todo.folder}TASK-{self.number:03d}{self.rest}"

    def __str__(self) -> str:
        return f"task {self.number} of {self.todo}"


def todo(path: str) -> Todo | None:
    """Return the to-do that the file belongs to, or whose folder has this path; None otherwise."""
    match = _TODO.fullmatch(path)
    return Todo(match[1], int(match[2])) if match else None


def todos(paths: Iterable[str]) -> dict[Todo, list[str]]:
    """Return the files of each to-do."""
    found: dict[Todo, list[str]] = defaultdict(list)
    for path in paths:
        if (each := todo(path)) and path.startswith(each.folder):
            found[each].append(path)
    return found


def task(path: str) -> Task | None:
    """Return the task in the file; None if it is no task's file."""
    match = _TODO.fullmatch(path)
    name = task_name(match[3] or "") if match else None
    if match is None or name is None:
        return None
    return Task(Todo(match[1], int(match[2])), int(name["number"]), name["rest"])


def project(path: str) -> str | None:
    """Return the folder of the file's project; None if the file belongs to none."""
    first, _, rest = path.partition("/")
    name, slash, _ = rest.partition("/")
    return name if first == PROJECTS and slash else None


def shown(path: str) -> str:
    """Return the name for people of what the file contains."""
    if found := task(path):
        return str(found)
    if (found_todo := todo(path)) and path == found_todo.folder + INDEX:
        return str(found_todo)
    return path.removeprefix(f"{PROJECTS}/")


def label_of(text: str) -> str:
    """Return `text` in a form that fits into a heading, a comment and a file name."""
    text = encodable(text)
    return " ".join(text.split())[:_LONGEST_LABEL].strip() or _NAMELESS


def around(paths: Iterable[str]) -> Iterator[str]:
    """Yield all folders above the files."""
    for path in paths:
        while path := path.rpartition("/")[0]:
            yield path


def beside(path: str, label: str, taken: Collection[str]) -> str:
    """Return an unused path in the same folder as `path`, with the label in its name."""
    folder, slash, name = path.rpartition("/")
    bare, dot, ending = name.rpartition(".")
    if not bare or len(ending) > 10:
        bare, dot, ending = name, "", ""
    label = _NOT_IN_NAMES.sub("-", label)
    number = 1
    while True:
        mark = f" ({label})" if number == 1 else f" ({label}, {number})"
        end = mark + dot + ending
        found = folder + slash + _shortened(bare, _LONGEST_NAME - _size(end)) + end
        if found not in taken:
            return found
        number += 1


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _shortened(text: str, size: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= size else data[: max(size, 1)].decode("utf-8", "ignore")

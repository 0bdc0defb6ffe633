"""What the paths of a store stand for, and names for what must stand beside something. Pure."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

INDEX = "index.json"
"""Of a store: which project is in which folder; of a to-do: what it is about."""
PROJECTS = "projects/"

# As the store reads them, which takes more numbers than it gives: those are 1 to 99999.
_TODO = re.compile(r"projects/([^/]+)/TODO/([1-9][0-9]{0,5})(?:/(.*))?", re.DOTALL)
_TASK = re.compile(r"TASK-([0-9]{1,6})((?:-[^/]*)?\.(?:json|md))")
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f/\\:*?"<>|]+')
_LONGEST_NAME = 240  # bytes; file systems take 255, and a temporary file's name is longer
_LONGEST_LABEL = 80
_NAMELESS = "other side"


@dataclass(frozen=True, slots=True, order=True)
class Todo:
    """Where a to-do is."""

    project: str
    """The name of the project's folder."""
    number: int

    @property
    def folder(self) -> str:
        """The beginning of the paths of its files."""
        return f"{PROJECTS}{self.project}/TODO/{self.number}/"

    def __str__(self) -> str:
        return f"to-do {self.number} of {self.project}"


@dataclass(frozen=True, slots=True)
class Task:
    """Where a task is."""

    todo: Todo
    number: int
    rest: str
    """Of the file's name, behind the number."""

    @property
    def path(self) -> str:
        """Of its file."""
        return f"{self.todo.folder}TASK-{self.number:03d}{self.rest}"

    def __str__(self) -> str:
        return f"task {self.number} of {self.todo}"


def todo(path: str) -> Todo | None:
    """The to-do that the file belongs to, or whose folder it should be; None if there is none."""
    match = _TODO.fullmatch(path)
    return Todo(match[1], int(match[2])) if match else None


def todos(paths: Iterable[str]) -> dict[Todo, list[str]]:
    """The files of each to-do."""
    found: dict[Todo, list[str]] = defaultdict(list)
    for path in paths:
        if (each := todo(path)) and path.startswith(each.folder):
            found[each].append(path)
    return found


def task(path: str) -> Task | None:
    """The task in the file; None if it holds none."""
    match = _TODO.fullmatch(path)
    name = _TASK.fullmatch(match[3] or "") if match else None
    if match is None or name is None:
        return None
    return Task(Todo(match[1], int(match[2])), int(name[1]), name[2])


def project(path: str) -> str | None:
    """The folder of the project that the file belongs to; None if it belongs to none."""
    first, _, rest = path.partition("/")
    name, slash, _ = rest.partition("/")
    return name if first == PROJECTS[:-1] and slash else None


def shown(path: str) -> str:
    """What the file holds, as people call it."""
    if found := task(path):
        return str(found)
    if (found_todo := todo(path)) and path == found_todo.folder + INDEX:
        return str(found_todo)
    return path.removeprefix(PROJECTS)


def label_of(text: str) -> str:
    """`text` as it can stand in a heading, a comment and a name."""
    text = text.encode("utf-8", "replace").decode()
    return " ".join(text.split())[:_LONGEST_LABEL].strip() or _NAMELESS


def around(paths: Iterable[str]) -> Iterator[str]:
    """The folders that the files are in."""
    for path in paths:
        while path := path.rpartition("/")[0]:
            yield path


def beside(path: str, label: str, taken: Collection[str]) -> str:
    """A path beside `path`, with the label in its name, that is none of those `taken`."""
    folder, slash, name = path.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 10:
        stem, dot, ending = name, "", ""
    label = _NOT_IN_NAMES.sub("-", label)
    number = 1
    while True:
        mark = f" ({label})" if number == 1 else f" ({label}, {number})"
        end = mark + dot + ending
        found = folder + slash + _shortened(stem, _LONGEST_NAME - _size(end)) + end
        if found not in taken:
            return found
        number += 1


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _shortened(text: str, size: int) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= size else data[: max(size, 1)].decode("utf-8", "ignore")

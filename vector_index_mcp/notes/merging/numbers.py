"""Separates to-do lists and tasks that got the same number on both sides. Pure.

Ours get a new number, because other machines may know theirs already. This happens before files are
compared, so that everything is merged at its new place.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

from vector_index_mcp.notes.layout import INDEX
from vector_index_mcp.notes.merging import objects, places
from vector_index_mcp.notes.merging.places import Task, Todo
from vector_index_mcp.notes.merging.sides import Files, Sides
from vector_index_mcp.notes.texts import matter

_MOST = 99_999


class Numbers:
    """The numbers that are taken, for each project or to-do list."""

    def __init__(self, pairs: Iterable[tuple[object, int]]) -> None:
        """Take the numbers in `pairs`, each with its project or to-do list."""
        self._taken: dict[object, set[int]] = defaultdict(set)
        for place, number in pairs:
            self._taken[place].add(number)

    def next(self, place: object) -> int:
        """Take an unused number in `place`, and return it."""
        taken = self._taken[place]
        number = max(taken, default=0) + 1
        if number > _MOST:
            number = next(n for n in count(1) if n not in taken)
        taken.add(number)
        return number


# -- to-dos ----------------------------------------------------------------------------------


def separate_todos(sides: Sides) -> list[str]:
    """Renumber each of our to-do lists whose number their side uses for a different list.

    Returns:
        What has moved, in sentences.
    """
    numbers = Numbers(
        (found.project, found.number) for path in sides.standing() if (found := places.todo(path))
    )
    base, ours, theirs = map(places.todos, (sides.base, sides.ours, sides.theirs))
    unchanged = places.todos(sides.unchanged)
    notes = []
    for todo in sorted(ours.keys() & theirs.keys()):
        if todo in unchanged or not _are_two(sides, todo, [*ours[todo], *theirs[todo]]):
            continue
        number = numbers.next(todo.project)
        new = Todo(todo.project, number).folder
        paths = {*base.get(todo, ()), *ours[todo]}
        moves = [(path, new + path.removeprefix(todo.folder)) for path in paths]
        _move_ours(sides, moves, todo.folder + INDEX)
        notes.append(f"{todo} became {number}: theirs is another to-do")
    return notes


def _are_two(sides: Sides, todo: Todo, paths: Iterable[str]) -> bool:
    """Return whether the to-do, with files at `paths`, is a different list on each side."""
    index = todo.folder + INDEX
    ours, theirs = sides.ours.get(index), sides.theirs.get(index)
    if not any(path in sides.base for path in paths):
        return ours != theirs
    # The number of a removed list may have been used again: then the times of creation differ.
    moments = created(index, sides.ours), created(index, sides.theirs)
    return (
        all(moments)
        and moments[0] != moments[1]
        and all(
            any(path in tree and tree[path] != sides.base.get(path) for path in paths)
            for tree in (sides.ours, sides.theirs)
        )
    )


def _move_ours(sides: Sides, moves: Sequence[tuple[str, str]], about: str) -> None:
    """Move files of ours, and the files of the base that they derive from.

    Args:
        sides: The sides.
        moves: Old path and new path of each file.
        about: The file that contains the time of creation of the list or task that moves.
    """
    before = created(about, sides.base)
    trees = [sides.ours]
    if before == created(about, sides.ours):
        trees.append(sides.base)
    elif before != created(about, sides.theirs):
        for path, _ in moves:
            sides.base.pop(path, None)
    for tree in trees:
        moved = {new: tree.pop(old) for old, new in moves if old in tree}
        tree.update(moved)


# -- tasks -----------------------------------------------------------------------------------


def separate_tasks(sides: Sides, numbers: Numbers) -> list[str]:
    """Renumber each of our tasks whose number their side uses for a different task.

    Returns:
        What has moved, in sentences.
    """
    ours, theirs = _by_number(sides, sides.ours), _by_number(sides, sides.theirs)
    notes = []
    for todo, number in sorted(ours.keys() & theirs.keys()):
        for path, rest in ours[todo, number]:
            if any(_are_apart(sides, path, other) for other, _ in theirs[todo, number]):
                new = Task(todo, numbers.next(todo), rest)
                _move_ours(sides, [(path, new.path)], path)
                notes.append(f"task {number} of {todo} became {new.number}: theirs is another task")
    return notes


def numbers_of_tasks(sides: Sides) -> Numbers:
    """Return the numbers of tasks that are taken in each to-do list."""
    return Numbers(
        (found.todo, found.number) for path in sides.standing() if (found := places.task(path))
    )


def _by_number(sides: Sides, tree: Files) -> dict[tuple[Todo, int], list[tuple[str, str]]]:
    """Return path and name ending of each task that one side has added or changed, by number."""
    found: dict[tuple[Todo, int], list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(tree):
        if (task := places.task(path)) and tree[path] != sides.base.get(path):
            found[task.todo, task.number].append((path, task.rest))
    return found


def _are_apart(sides: Sides, path: str, other: str) -> bool:
    """Return whether our task at `path` and theirs at `other`, of one number, are different."""
    if path != other:
        return path not in sides.theirs and other not in sides.ours
    if sides.ours[path] == sides.theirs[path]:
        return False
    moments = created(path, sides.ours), created(path, sides.theirs)
    return moments[0] != moments[1] if all(moments) else path not in sides.base


def created(path: str, tree: Files) -> str:
    """Return the time of creation in the file of a to-do list or task; empty if it has none."""
    content = tree.get(path, b"")
    if not path.endswith(".md"):
        value = (objects.parsed(content) or {}).get("created")
        return value if isinstance(value, str) else ""
    return matter.metadata(matter.parted(content.decode("utf-8", "replace"))[0]).created

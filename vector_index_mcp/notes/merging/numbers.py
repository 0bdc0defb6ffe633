"""To-dos and tasks that got the same number on both sides are told apart. Pure.

Ours gives way: theirs may already be known elsewhere. Nothing is compared yet, so what has moved is
merged at its new place like anything else.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count

from vector_index_mcp.notes.merging import objects, places
from vector_index_mcp.notes.merging.places import INDEX, Task, Todo
from vector_index_mcp.notes.merging.sides import Files, Sides
from vector_index_mcp.notes.texts import matter

_MOST = 99_999


class Numbers:
    """Which numbers are taken, and which one is next."""

    def __init__(self, pairs: Iterable[tuple[object, int]]) -> None:
        """Begin with `pairs` of what the numbers are in, and a number."""
        self._taken: dict[object, set[int]] = defaultdict(set)
        for place, number in pairs:
            self._taken[place].add(number)

    def next(self, place: object) -> int:
        """A number that nothing in `place` has; it is taken then."""
        taken = self._taken[place]
        number = max(taken, default=0) + 1
        if number > _MOST:
            number = next(n for n in count(1) if n not in taken)
        taken.add(number)
        return number


# -- to-dos ----------------------------------------------------------------------------------


def separate_todos(sides: Sides) -> list[str]:
    """Give to-dos of ours another number where theirs is another to-do.

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
    """Whether a to-do that both sides have, with files at `paths`, is not the same on both."""
    index = todo.folder + INDEX
    ours, theirs = sides.ours.get(index), sides.theirs.get(index)
    if not any(path in sides.base for path in paths):
        return ours != theirs
    # A to-do that was removed leaves its number to the next one.
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
    """Have files of ours elsewhere, by (old path, new path), and those that they go back to.

    Args:
        sides: Where the files are.
        moves: The files.
        about: The one that says when what moves was created.
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
    """Give tasks of ours another number where theirs is another task.

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
    """Which numbers of tasks are taken, by to-do."""
    return Numbers(
        (found.todo, found.number) for path in sides.standing() if (found := places.task(path))
    )


def _by_number(sides: Sides, tree: Files) -> dict[tuple[Todo, int], list[tuple[str, str]]]:
    """The paths of the tasks that this side has added or changed, and the end of their names."""
    found: dict[tuple[Todo, int], list[tuple[str, str]]] = defaultdict(list)
    for path in sorted(tree):
        if (task := places.task(path)) and tree[path] != sides.base.get(path):
            found[task.todo, task.number].append((path, task.rest))
    return found


def _are_apart(sides: Sides, path: str, other: str) -> bool:
    """Whether two tasks of the same number, `path` of ours, are not the same one."""
    if path != other:
        return path not in sides.theirs and other not in sides.ours
    if sides.ours[path] == sides.theirs[path]:
        return False
    moments = created(path, sides.ours), created(path, sides.theirs)
    return moments[0] != moments[1] if all(moments) else path not in sides.base


def created(path: str, tree: Files) -> str:
    """When the to-do or the task in a file was created; empty where nothing says it."""
    content = tree.get(path, b"")
    if not path.endswith(".md"):
        value = (objects.parsed(content) or {}).get("created")
        return value if isinstance(value, str) else ""
    return matter.metadata(matter.parted(content.decode("utf-8", "replace"))[0]).created

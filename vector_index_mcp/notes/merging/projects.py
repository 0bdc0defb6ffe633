"""Projects that were begun on both sides get the folders that they need. Pure.

Each side gives a new project a folder as it sees the folders. So one project may have two, and two
projects may have the same.
"""

from collections.abc import Iterable
from itertools import count

from vector_index_mcp.notes.merging import objects, places
from vector_index_mcp.notes.merging.places import INDEX, PROJECTS
from vector_index_mcp.notes.merging.sides import Sides


def settle(sides: Sides) -> list[str]:
    """Give each project one folder, and no two of them the same.

    Returns:
        What has moved, in sentences.
    """
    # Where two projects have changed places, none can move before they are told apart.
    return [*_joined(sides), *_separated(sides), *_joined(sides)]


def _joined(sides: Sides) -> list[str]:
    """Have a project that both sides have begun in one folder: if that is free, in ours."""
    base, ours, theirs = _projects(sides)
    notes = []
    for name in sorted((ours.keys() & theirs.keys()) - base.keys()):
        one, other = ours[name], theirs[name]
        if one != other and _can_move(sides, sides.theirs, name, other, one):
            _move(sides.theirs, name, other, one)
            notes.append(f'project "{name}" is in {one}, where ours has it; theirs was in {other}')
        elif one != other and _can_move(sides, sides.ours, name, one, other):
            _move(sides.ours, name, one, other)
            notes.append(f'project "{name}" is in {other}, where theirs has it; ours was in {one}')
    return notes


def _separated(sides: Sides) -> list[str]:
    """Give projects of ours another folder where theirs has put another project."""
    base, ours, theirs = _projects(sides)
    taken = {*base.values(), *ours.values(), *theirs.values()}
    taken |= _folders([*sides.base, *sides.standing()])
    notes = []
    for name, old in ours.items():
        others = [other for other in theirs if theirs[other] == old and ours.get(other) != old]
        new = next(slug for n in count(1) if (slug := f"{old}-{n}") not in taken)
        is_left = (base.get(name) == old and not _is_changed(sides, sides.ours, old)) or (
            any(base.get(other) == old for other in others)
            and not _is_changed(sides, sides.theirs, old)
        )
        is_shared = others and theirs.get(name) != old and not is_left
        if not is_shared or not _can_move(sides, sides.ours, name, old, new):
            continue
        taken.add(new)
        if base.get(name) == old:
            _move_files(sides.base, old, new)
        _move(sides.ours, name, old, new)
        notes.append(f'project "{name}" moved from {old} to {new}: theirs is another project')
    return notes


def _projects(sides: Sides) -> list[dict[str, str]]:
    """The folder of each project, as the base, ours and theirs have it."""
    return [_named(tree) for tree in (sides.base, sides.ours, sides.theirs)]


def _named(tree: dict[str, bytes]) -> dict[str, str]:
    return objects.projects(objects.parsed(tree.get(INDEX))) or {}


def _folders(paths: Iterable[str]) -> set[str]:
    return {found for path in paths if (found := places.project(path))}


def _is_changed(sides: Sides, tree: dict[str, bytes], slug: str) -> bool:
    """Whether one side has written something in a project's folder."""
    inside = [path for path in tree if path.startswith(f"{PROJECTS}{slug}/")]
    return any(tree[path] != sides.base.get(path) for path in inside)


def _can_move(sides: Sides, tree: dict[str, bytes], name: str, old: str, new: str) -> bool:
    """Whether a side can have a project in another folder that it does not have yet."""
    used = [*_named(tree).values()]
    is_free = new not in used and new not in _folders([*tree, *sides.unchanged])
    if not is_free or used.count(old) != 1 or not all(s and "/" not in s for s in (old, new)):
        return False
    if _named(sides.base).get(name) == old:
        return old not in _folders(sides.unchanged)
    # Where something is as it was, a project has only got another name.
    kept = [path for path, content in tree.items() if sides.base.get(path) == content]
    return old not in _folders([*kept, *sides.unchanged])


def _move(tree: dict[str, bytes], name: str, old: str, new: str) -> None:
    _move_files(tree, old, new)
    content = tree[INDEX]
    values = objects.parsed(content) or {}
    values["projects"][name] = new
    tree[INDEX] = objects.written(values, content)


def _move_files(tree: dict[str, bytes], old: str, new: str) -> None:
    before, after = f"{PROJECTS}{old}/", f"{PROJECTS}{new}/"
    moved = {path: content for path, content in tree.items() if path.startswith(before)}
    for path, content in moved.items():
        del tree[path]
        tree[after + path.removeprefix(before)] = content

"""Gives projects that were created on both sides one folder each. Pure.

Each side chooses a folder for a new project without knowing the other side. So one project may have
two folders, and two projects may have the same.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import count

from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.merging import objects, places
from vector_index_mcp.notes.merging.sides import Files, Sides
from vector_index_mcp.notes.names import is_keepable


def settle(sides: Sides) -> list[str]:
    """Give each project one folder, and no two projects the same.

    Returns:
        What has moved, in sentences.
    """
    # If two projects have swapped folders, they can be joined only after they are separated.
    return [*_joined(sides), *_separated(sides), *_joined(sides)]


def _joined(sides: Sides) -> list[str]:
    """Move each project with two folders to one: to ours if their side can use it, else theirs."""
    _, ours, theirs = _projects(sides)
    notes = []
    for name in sorted(ours.keys() & theirs.keys()):
        one, other = ours[name], theirs[name]
        if one == other or _is_left(sides, sides.ours, name) or _is_left(sides, sides.theirs, name):
            continue
        if _can_move(sides, sides.theirs, name, one):
            _move(sides, sides.theirs, name, one)
            notes.append(f'project "{name}" is in {one}, where ours has it; theirs was in {other}')
        elif _can_move(sides, sides.ours, name, other):
            _move(sides, sides.ours, name, other)
            notes.append(f'project "{name}" is in {other}, where theirs has it; ours was in {one}')
    return notes


def _separated(sides: Sides) -> list[str]:
    """Move each of our projects whose folder their side has given to a different project."""
    base, ours, theirs = _projects(sides)
    taken = {*base.values(), *ours.values(), *theirs.values()}
    taken |= _folders([*sides.base, *sides.standing()])
    in_folder: dict[str, list[str]] = defaultdict(list)
    for name, slug in theirs.items():
        in_folder[slug].append(name)
    notes = []
    for name, old in ours.items():
        others = [other for other in in_folder[old] if ours.get(other) != old]
        if not others or theirs.get(name) == old or _is_left(sides, sides.ours, name):
            continue
        new = next(slug for n in count(1) if (slug := f"{old}-{n}") not in taken)
        is_left = any(_is_left(sides, sides.theirs, other) for other in others)
        if not is_left and _can_move(sides, sides.ours, name, new):
            _move(sides, sides.ours, name, new)
            notes.append(f'project "{name}" moved from {old} to {new}: theirs is another project')
    return notes


def _projects(sides: Sides) -> list[dict[str, str]]:
    """Return the folder of each project in the base, in ours and in theirs."""
    return [_named(tree) for tree in (sides.base, sides.ours, sides.theirs)]


def _named(tree: Files) -> dict[str, str]:
    return objects.projects(objects.parsed(tree.get(INDEX))) or {}


def _folders(paths: Iterable[str]) -> set[str]:
    return {found for path in paths if (found := places.project(path))}


def _is_left(sides: Sides, tree: Files, name: str) -> bool:
    """Return whether one side has not changed a project: then the other side decides about it."""
    slug = _named(tree)[name]
    inside = [path for path in tree if path.startswith(_folder(slug))]
    is_old = _named(sides.base).get(name) == slug
    return is_old and not any(tree[path] != sides.base.get(path) for path in inside)


def _can_move(sides: Sides, tree: Files, name: str, new: str) -> bool:
    """Return whether one side can move a project to another folder."""
    named = _named(tree)
    used, old = [*named.values()], named[name]
    is_free = new not in used and new not in _folders([*tree, *sides.unchanged])
    can_be = all("/" not in folder and is_keepable(folder) for folder in (old, new))
    if not (is_free and can_be and used.count(old) == 1):
        return False
    if _named(sides.base).get(name) == old:
        return old not in _folders(sides.unchanged)
    # If a file is unchanged, the project has only been renamed, and its folder must stay.
    kept = [path for path, content in tree.items() if sides.base.get(path) == content]
    return old not in _folders([*kept, *sides.unchanged])


def _move(sides: Sides, tree: Files, name: str, new: str) -> None:
    """Move a project of one side to another folder, and also its files in the base."""
    content = tree[INDEX]
    values = objects.parsed(content) or {}
    old = values["projects"][name]
    _move_files(tree, old, new)
    if _named(sides.base).get(name) == old:
        _move_files(sides.base, old, new)
    values["projects"][name] = new
    tree[INDEX] = objects.written(values, content)


def _move_files(tree: Files, old: str, new: str) -> None:
    for path in [path for path in tree if path.startswith(_folder(old))]:
        tree[_folder(new) + path.removeprefix(_folder(old))] = tree.pop(path)


def _folder(slug: str) -> str:
    return f"{PROJECTS}/{slug}/"

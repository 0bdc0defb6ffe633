"""Merges JSON objects, entry by entry. Pure.

If both sides have changed an entry, ours stays. In the files of to-do lists and their tasks, the
other version is kept in the same file under `conflict`.
"""

import json
from collections.abc import Mapping
from itertools import count
from typing import Any, NamedTuple

from vector_index_mcp.notes.merging.threeway import Verdict, is_later, ordered, verdict

Object = dict[str, Any]

_DEEPEST = 50
_CONFLICT = "conflict"
_COMPLETED = "completed"
_UPDATED = "updated"
_PROJECTS = "projects"


class Entries(NamedTuple):
    """The merged entries of an object."""

    values: Object
    lost: Object
    """Their versions of the entries that both sides have changed."""
    rescued: list[str]
    """The keys of entries that one side has removed and the other has changed; they are kept."""


def parsed(content: bytes | None) -> Object | None:
    """Parse the object in a file; None if there is none, or if it could not be written again."""
    if content is None:
        return None
    try:
        found = json.loads(content.decode("utf-8"))
        if not isinstance(found, dict) or not _is_flat(found):
            return None
        json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError):  # the latter if it is nested too deep
        return None
    return found


def _is_flat(value: Any) -> bool:
    """Return whether the value is nested at most `_DEEPEST` levels deep: more may not be safe."""
    level = [value]
    for _ in range(_DEEPEST):
        held = [each.values() if isinstance(each, dict) else each for each in level]
        level = [inner for each in held for inner in each if isinstance(inner, dict | list)]
        if not level:
            return True
    return False


def written(values: Object, like: bytes) -> bytes:
    """Return `values` as a JSON file, with a line end at its end if `like` has one."""
    end = "\n" if like.endswith(b"\n") else ""
    return (json.dumps(values, ensure_ascii=False, indent=2) + end).encode()


def projects(values: Object | None) -> dict[str, str] | None:
    """Return the folders by project id in a store's `index.json`; None if it is not valid."""
    found = (values or {}).get(_PROJECTS)
    if not isinstance(found, dict):
        return None
    return {name: slug for name, slug in found.items() if isinstance(slug, str)}


def entries(base: Object, ours: Object, theirs: Object) -> Entries:
    """Merge the entries of both sides."""
    found = Entries({}, {}, [])
    for key in ordered(list(ours), list(theirs)):
        mine, other = _held(ours, key), _held(theirs, key)
        decided = verdict(_held(base, key), mine, other)
        value = other if decided is Verdict.THEIRS or mine is None else mine
        if decided is Verdict.OURS:
            value = mine
        if value is not None:
            found.values[key] = value[0]
        if decided is Verdict.RESCUED:
            found.rescued.append(key)
        if decided is Verdict.BOTH:
            found.lost[key] = theirs[key]
    return found


def _held(values: Mapping[str, Any], key: str) -> tuple[Any] | None:
    """Return an entry's value in a tuple, since it may be None; None if there is no such entry."""
    return (values[key],) if key in values else None


def index(base: Object | None, ours: Object, theirs: Object) -> Entries:
    """Merge the `index.json` of a store; the projects in it are merged one by one."""
    before = base or {}
    rest = entries(*({**each, _PROJECTS: None} for each in (before, ours, theirs)))
    old = before.get(_PROJECTS)
    found = entries(old if isinstance(old, dict) else {}, ours[_PROJECTS], theirs[_PROJECTS])
    values = {**rest.values, _PROJECTS: found.values}
    return Entries(values, {**rest.lost, **found.lost}, [*rest.rescued, *found.rescued])


def labelled_of(content: bytes | None) -> Object | None:
    """Parse the object in a file; None also if its `conflict` is no object to keep versions in."""
    found = parsed(content)
    if found is None or not isinstance(found.get(_CONFLICT, {}), dict):
        return None
    return found


def labelled(base: Object | None, ours: Object, theirs: Object, label: str) -> Entries:
    """Merge the files of a task, or the `index.json` of a to-do list.

    The result's `lost` entries are also in its values, under `conflict`.
    """
    sides = [base or {}, ours, theirs]
    found = entries(*({k: v for k, v in s.items() if k != _CONFLICT} for s in sides))
    if ours.get(_COMPLETED) is True or theirs.get(_COMPLETED) is True:
        found.values[_COMPLETED] = True
        found.lost.pop(_COMPLETED, None)
    if _UPDATED in ours and _UPDATED in theirs:
        moments = str(ours[_UPDATED]), str(theirs[_UPDATED])
        found.values[_UPDATED] = (theirs if is_later(moments[1], moments[0]) else ours)[_UPDATED]
        found.lost.pop(_UPDATED, None)
    kept = entries(*(side.get(_CONFLICT, {}) for side in sides))
    for name, values in [*kept.lost.items(), *([(label, found.lost)] if found.lost else [])]:
        kept.values[_free(name, kept.values)] = values
    if kept.values:
        found.values[_CONFLICT] = kept.values
    return found


def _free(name: str, taken: Mapping[str, Any]) -> str:
    others = (f"{name}, {number}" for number in count(2))
    return name if name not in taken else next(other for other in others if other not in taken)

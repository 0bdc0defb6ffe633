"""Merges two trees of files that have a common base. Pure."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from vector_index_mcp.notes.layout import INDEX
from vector_index_mcp.notes.limits import LARGEST_FILE_BYTES
from vector_index_mcp.notes.merging import chapters, numbers, objects, places, projects, tasks
from vector_index_mcp.notes.merging.objects import Object
from vector_index_mcp.notes.merging.places import Task
from vector_index_mcp.notes.merging.sides import Content, Files, Sides, Tree
from vector_index_mcp.notes.merging.threeway import Verdict, verdict

_UNREADABLE = "unreadable"
_Versions = tuple[Content, bytes, bytes]
"""The base, ours and theirs."""


@dataclass(frozen=True, slots=True)
class Merge:
    """The changes that turn our side into the merged one."""

    files: dict[str, Content]
    """Contents to write, by path; None means to remove the file, before anything is written."""
    notes: list[str]
    """Sentences for people: what both sides have changed, and what has a new number."""


def merged(base: Tree, ours: Tree, theirs: Tree, label: str, unchanged: Collection[str]) -> Merge:
    """Merge their side into ours.

    Args:
        base: The files that both sides had in common. This tree and the next two leave out the
            files that are the same on all sides.
        ours: Our side's files.
        theirs: Their side's files.
        label: The name of their side, for titles, comments and file names: its origin and the date.
        unchanged: The paths of all files that are the same on all sides.
    """
    sides = Sides.of(base, ours, theirs, unchanged)
    found = _Merging(sides, places.label_of(label))
    found.run()
    wanted = {path: found.result.get(path) for path in sorted({*ours, *found.result})}
    files = {path: content for path, content in wanted.items() if content != ours.get(path)}
    return Merge(files, found.notes)


class _Merging:
    """A merge under way."""

    def __init__(self, sides: Sides, label: str) -> None:
        self._sides = sides
        self._label = label
        self.result: Files = {}
        self.notes: list[str] = []

    def run(self) -> None:
        """Merge everything."""
        self.notes += projects.settle(self._sides)
        self.notes += numbers.separate_todos(self._sides)
        self._numbers = numbers.numbers_of_tasks(self._sides)
        self.notes += numbers.separate_tasks(self._sides, self._numbers)
        standing = {*self._sides.standing()}
        self._taken = {*standing, *places.around(standing)}
        for path in sorted(self._sides.changed - {INDEX}):
            self._merge(path)
        self._keep_todos()
        self._merge_index()
        self._separate_files_from_folders()

    def _merge(self, path: str) -> None:
        base, ours, theirs = self._versions(path)
        decided = verdict(base, ours, theirs)
        if decided is Verdict.BOTH and ours is not None and theirs is not None:
            self._merge_both(path, (base, ours, theirs))
            return
        content = theirs if decided is Verdict.THEIRS else ours
        if decided is Verdict.RESCUED:
            content = theirs if ours is None else ours
            self._note(
                f"{places.shown(path)} was removed on one side and changed on the other; it is kept"
            )
        if content is not None:
            self.result[path] = content

    def _versions(self, path: str) -> tuple[Content, Content, Content]:
        sides = self._sides
        return sides.base.get(path), sides.ours.get(path), sides.theirs.get(path)

    def _merge_both(self, path: str, versions: _Versions) -> None:
        todo, is_task = places.todo(path), places.task(path) is not None
        is_done = False
        if path.endswith(".json") and (is_task or (todo and path == todo.folder + INDEX)):
            is_done = self._merge_objects(path, versions)
        elif path.endswith(".md"):
            way = self._merge_task_text if is_task else self._merge_chapters
            is_done = way(path, versions)
        if not is_done:
            self._keep_both(path, versions)

    # Each of these merges a file that both sides have changed, or does nothing and returns False.

    def _merge_chapters(self, path: str, versions: _Versions) -> bool:
        texts = _texts(versions)
        found = texts and chapters.merged(*texts, self._label, places.shown(path))
        if not found:
            return False
        data = found[0].encode()
        if len(data) > LARGEST_FILE_BYTES:  # `Disk.read` would refuse to read it
            return False
        self.result[path] = data
        self.notes += found[1]
        return True

    def _merge_task_text(self, path: str, versions: _Versions) -> bool:
        texts = _texts(versions)
        if not texts:
            return False
        text, is_conflict = tasks.merged(*texts)
        self.result[path] = text.encode()
        if is_conflict:
            self._keep_beside(path, versions[2], self._label)
        return True

    def _merge_objects(self, path: str, versions: _Versions) -> bool:
        base, ours, theirs = map(objects.labelled_of, versions)
        if ours is None and theirs is not None:
            self.result[path] = versions[2]
            self._keep_beside(path, versions[1], _UNREADABLE)
            return True
        if ours is None or theirs is None:
            return False
        found = objects.labelled(base, ours, theirs, self._label)
        self.result[path] = _chosen(found.values, versions, (ours, theirs))
        for key in found.lost:
            self._note(
                f'"{key}" of {places.shown(path)} was changed on both sides; '
                "ours stays, theirs is kept with it"
            )
        self._note_rescued(found.rescued, places.shown(path))
        return True

    def _keep_both(self, path: str, versions: _Versions) -> None:
        self.result[path] = versions[1]
        self._keep_beside(path, versions[2], self._label)

    def _keep_beside(self, path: str, content: bytes, label: str) -> None:
        wanted = path
        if task := places.task(path):
            wanted = Task(task.todo, self._numbers.next(task.todo), task.rest).path
        new = self._free(wanted, label)
        self.result[new] = content
        self._note(f'{places.shown(path)} has two versions; one is kept as "{_name(new)}"')

    def _free(self, path: str, label: str) -> str:
        found = places.beside(path, label, self._taken)
        self._taken.add(found)
        return found

    def _note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def _note_rescued(self, names: Iterable[str], where: str) -> None:
        for name in names:
            self._note(
                f'"{name}" of {where} was removed on one side and changed on the other; it is kept'
            )

    # The entry of a project or to-do list stays as long as any of its files exists.

    def _keep_todos(self) -> None:
        there = {*self.result, *self._sides.unchanged}
        for todo in sorted(places.todos(there)):
            index = todo.folder + INDEX
            content = self._sides.base.get(index)
            keepers = [side for side in (self._sides.ours, self._sides.theirs) if index in side]
            if content is None or len(keepers) == 2:  # nobody has removed the list
                continue
            if index not in there:
                self.result[index] = content
                self._note(f"{todo} was removed on one side and changed on the other; it is kept")
            for side in keepers:  # whole: tasks without their neighbours mean little
                self.result |= {
                    path: data
                    for path, data in side.items()
                    if path.startswith(todo.folder) and path not in self.result
                }

    def _merge_index(self) -> None:
        base, ours, theirs = self._versions(INDEX)
        has_ours, has_theirs = (
            objects.projects(objects.parsed(content)) is not None for content in (ours, theirs)
        )
        if has_ours and has_theirs and ours is not None and theirs is not None:
            self._merge_projects((base, ours, theirs))
        elif not has_ours and not has_theirs:
            self._merge(INDEX)
        else:
            good, bad = (ours, theirs) if has_ours else (theirs, ours)
            self.result[INDEX] = good or b""
            if bad is None and base is not None:
                self._note(f"{INDEX} was removed on one side; it is kept")
            elif bad is not None and bad != base:
                self._keep_beside(INDEX, bad, self._label if has_ours else _UNREADABLE)

    def _merge_projects(self, versions: _Versions) -> None:
        base, ours, theirs = (objects.parsed(content) or {} for content in versions)
        found = objects.index(base, ours, theirs)
        named = objects.projects(found.values) or {}
        there = {places.project(path) for path in (*self.result, *self._sides.unchanged)}
        for name, slug in (objects.projects(base) or {}).items():
            is_gone = name not in named and slug not in named.values()
            if is_gone and slug in there:
                found.values["projects"][name] = slug
                self._note(
                    f'project "{name}" was removed on one side and changed on the other; '
                    "the changed files are kept"
                )
        self.result[INDEX] = _chosen(found.values, versions, (ours, theirs))
        for name, other in found.lost.items():
            self._note(f'"{name}" of {INDEX} is {json.dumps(other)} in theirs; ours stays')
        self._note_rescued(found.rescued, INDEX)

    def _separate_files_from_folders(self) -> None:
        folders = {*places.around((*self.result, *self._sides.unchanged))}
        for path in sorted(self.result.keys() & folders):
            if path not in self.result:  # in a folder that has moved
                continue
            new = self._free(path, self._label)
            moved = {path: new}
            if path in self._sides.ours:  # then the folder is theirs
                inner = [each for each in self.result if each.startswith(f"{path}/")]
                moved = {each: new + each.removeprefix(path) for each in inner}
            for old, other in moved.items():
                self.result[other] = self.result.pop(old)
            self._note(
                f'{places.shown(path)} is a file on one side; theirs is kept as "{_name(new)}"'
            )


def _texts(versions: _Versions) -> tuple[str | None, str, str] | None:
    base, ours, theirs = versions
    try:
        return None if base is None else base.decode(), ours.decode(), theirs.decode()
    except UnicodeDecodeError:
        return None


def _chosen(values: Object, versions: _Versions, sides: tuple[Object, Object]) -> bytes:
    """Return the file with `values`: the exact file of a side that has the same values, if any."""
    base, *written = versions
    same = [content for side, content in zip(sides, written, strict=True) if side == values]
    changed = [content for content in same if content != base]
    return next(iter([*changed, *same]), None) or objects.written(values, versions[1])


def _name(path: str) -> str:
    return path.rpartition("/")[2]

"""Checks whether a store is sound. The checks run one after another, independently.

If a check itself fails, that is one more finding, and the other checks still run.
"""

import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from vector_index_mcp.errors import counted, split_remedy
from vector_index_mcp.notes import overview
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.doctor import rights
from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.merging import conflicts
from vector_index_mcp.notes.past.history import entries, head_of
from vector_index_mcp.notes.past.states import tree_of
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import ByHand, some
from vector_index_mcp.notes.store.disk import GIT, WORK
from vector_index_mcp.notes.store.opening import INDEX, PROJECTS
from vector_index_mcp.notes.store.program import GitResult
from vector_index_mcp.notes.store.remote import Remote
from vector_index_mcp.notes.store.writer import Writer
from vector_index_mcp.notes.syncing import Syncing
from vector_index_mcp.notes.texts import matter, todos
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.reading import Read

_OLDEST_GIT = (2, 36)
"""The first version that flushes a commit to the disk before it reports success."""
_VERSION = re.compile(r"git version (\d{1,4})\.(\d{1,4})")
_EXAMINING_SECONDS = 600.0  # for `git fsck`, which reads every object
_ATTEMPTS = 3
_OF_A_LACK = re.compile(r"notice: |broken link from |\s+to |missing (?:blob|tree) ")
_LEFT_SECONDS = 60.0  # an older lock is taken for one that a killed process has left
_RULE, _ENDS = "---", frozenset({"---", "..."})
_LONGEST_FRONT_LINES = 1_000
_REPAIR = "`vector-index-mcp notes doctor --repair`"
_NO_ADVICE = "nothing was changed"
_PUT_BACK = "move it away, and bring back what belongs there from a backup or a clone"
_BY_HAND = f"correct it, or let {_REPAIR} bring back its last good version, if there is one"


class Verdict(StrEnum):
    """The result of a check; the values are shown to people."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result of a check."""

    name: str
    """The check's name."""
    verdict: Verdict
    words: str
    remedy: str = ""
    """What to do; empty if all is well."""


_Problem = tuple[Verdict, str, str]
"""Verdict, words and remedy."""
_Check = Callable[[Store], tuple[str, Sequence[_Problem]]]
"""Returns the words for the case that all is well, and the problems found."""


def examine(store: Store) -> Iterator[Finding]:
    """Run the checks, and yield each finding at once."""
    for name, check in _CHECKS:
        try:
            words, problems = check(store)
        except Refusal as refusal:
            problems = [(Verdict.FAILURE, *_advised(refusal))]
        except (OSError, ValueError, RecursionError) as error:  # a foreign store may hold anything
            words = f"the check itself failed: {type(error).__name__}: {error}"
            problems = [(Verdict.FAILURE, words, "please report this, it is a bug")]
        if not problems:
            yield Finding(name, Verdict.OK, words)
        for verdict, words, remedy in problems[:MOST_SHOWN]:
            yield Finding(name, verdict, words, remedy)
        if len(problems) > MOST_SHOWN:
            words = f"… {len(problems)} in all"
            yield Finding(name, Verdict.WARNING, words, "begin with these")
        if check is _notes and words == overview.NOTHING:
            return


def _advised(refusal: Refusal) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    words, remedy = split_remedy(str(refusal))
    if remedy and remedy != _NO_ADVICE:
        return words, remedy
    return words, _PUT_BACK if refusal.code is Code.INVALID_PATH else "mend that first"


def _failed(words: str, remedy: str) -> _Problem:
    return Verdict.FAILURE, words, remedy


def _warned(words: str, remedy: str) -> _Problem:
    return Verdict.WARNING, words, remedy


# -- the program and the place ---------------------------------------------------------------


def _git(store: Store) -> tuple[str, list[_Problem]]:
    words = store.repository.run("version").output.decode("utf-8", "replace").strip()
    found = _VERSION.match(words)
    if found and (int(found[1]), int(found[2])) < _OLDEST_GIT:
        needed = ".".join(map(str, _OLDEST_GIT))
        remedy = f"install git {needed} or later: older ones may lose a commit in a power failure"
        return words, [_warned(words, remedy)]
    return words, []


def _notes(store: Store) -> tuple[str, list[_Problem]]:
    root = store.disk.root
    if root.exists() and not root.is_dir():
        return "", [_failed(f"{root} is no folder", "name a folder with --home")]
    if not overview.has_notes(store.disk):
        return overview.NOTHING, []
    forbidden = [f"you may not read or write {path}" for path in rights.lacking(root)]
    count = len(list(Projects(store.disk).all()))
    words = f"{counted(count, 'project')} in {root}"
    return words, [_failed(each, rights.remedy(root)) for each in forbidden]


# -- which projects --------------------------------------------------------------------------


def _index(store: Store) -> tuple[str, list[_Problem]]:
    projects = Projects(store.disk)
    if projects.problem:
        words = split_remedy(projects.problem)[0]
        remedy = f"correct it, or let {_REPAIR} rebuild it"
        return "", [_failed(words, remedy)]
    if store.disk.status(INDEX) is None and projects.folders():
        words = f"{INDEX} is missing: each folder counts as a project with the folder's name"
        return "", [_warned(words, f"{_REPAIR} rebuilds it")]
    return f"{INDEX} can be read", []


def _folders(store: Store) -> tuple[str, list[_Problem]]:
    projects = Projects(store.disk)
    problems = [
        _failed(
            f"{INDEX} gives project {project} the folder {projects.entries[project]!r}, which is "
            "not a valid folder name",
            f"correct it there; {_REPAIR} does it if there is a folder with the project's name",
        )
        for project in projects.unusable
    ]
    usable = {k: name for k, name in projects.entries.items() if k not in projects.unusable}
    for name, count in Counter(usable.values()).items():
        if count > 1:
            ids = " and ".join(project for project, folder in usable.items() if folder == name)
            remedy = f"give one of them a folder of its own in {INDEX}, and move its files there"
            words = f"the projects {ids} have the same folder {PROJECTS}/{name}"
            problems.append(_failed(words, remedy))
    problems += _without_folder(store, usable)
    if not projects.problem and store.disk.status(INDEX) is not None:
        problems += _without_entry(projects)
    return "every project has a folder of its own", problems


def _without_folder(store: Store, usable: dict[str, str]) -> Iterator[_Problem]:
    for project, name in usable.items():
        folder = f"{PROJECTS}/{name}"
        if not store.disk.is_folder(folder):
            remedy = f"if it was renamed, rename it back, or correct {INDEX}"
            if commit := _last_with(store, folder):
                command = shlex.join(["restore", "--to", commit[:12], "--", project])
                remedy += f"; if it was deleted, `vector-index-mcp notes {command}` brings it back"
            yield _failed(f"project {project} has no folder {folder}", remedy)


def _last_with(store: Store, folder: str) -> str:
    """Return the last commit in which a folder existed; empty if there is none."""
    for entry in entries(store, head_of(store), [folder], most=1):
        is_there = tree_of(store.repository, entry.commit).below(folder)
        return entry.commit if is_there else entry.parent
    return ""


def _without_entry(projects: Projects) -> Iterator[_Problem]:
    taken = set(projects.entries.values())
    for name in projects.folders():
        if name in taken:
            continue
        folder = f"{PROJECTS}/{name}"
        if name in projects.entries:
            words = f"the folder {folder} belongs to no project: project {name} has another folder"
            yield _failed(words, f"{_REPAIR} makes it a project with another name")
        else:
            words = f"the folder {folder} is not in {INDEX}: it counts as project {name}"
            yield _warned(words, f"{_REPAIR} enters it")


# -- what projects hold ----------------------------------------------------------------------


def _documents(store: Store) -> tuple[str, list[_Problem]]:
    problems: list[_Problem] = []
    count = 0
    for project in Projects(store.disk).all():
        try:
            text = store.disk.read_text(project.main)
            count += text is not None
            problems += _conflicts(project.main, text or "")
        except Refusal as refusal:
            problems.append(_failed(split_remedy(str(refusal))[0], _BY_HAND))
        problems += _out_of_reach(store, project)
        for read in store.shelf.documents(project):
            count += 1
            if isinstance(read, Refusal):
                problems.append(_failed(split_remedy(str(read))[0], _BY_HAND))
            else:
                problems += _of_document(project, read)
    return f"{counted(count, 'text')} can be read", problems


def _of_document(project: Project, read: Read) -> Iterator[_Problem]:
    path = project.document(read.document.name)
    lines = read.document.text.split("\n", _LONGEST_FRONT_LINES)
    if lines[0].rstrip() == _RULE and not any(line.rstrip() in _ENDS for line in lines[1:]):
        words = f"{path} begins with {_RULE} and has no second {_RULE}: its title is not read"
        yield _warned(words, f"end the front matter with a line {_RULE}, or remove the first")
    if not matter.metadata(read.document.front).title and read.document.front:
        words = f"{path} has front matter without a readable title"
        yield _warned(words, "add a line `title: ...`")
    yield from _conflicts(path, read.document.text)


def _conflicts(path: str, text: str) -> Iterator[_Problem]:
    for title in conflicts(text):
        words = f'{path}: "{title}" was changed on two machines'
        yield _warned(words, "keep what is right, and remove one version")


def _out_of_reach(store: Store, project: Project) -> Iterator[_Problem]:
    """Find documents in subfolders of the documents' folder, which no tool reads."""
    here = project.knowledge.count("/") + 1
    below = [
        path
        for path in store.disk.files(project.knowledge)
        if path.endswith(".md") and path.count("/") > here
    ]
    if below:
        words = f"{some(below)}: no tool reads documents in subfolders"
        yield _warned(words, f"move them to {project.knowledge}")


def _todos(store: Store) -> tuple[str, list[_Problem]]:
    problems: list[_Problem] = []
    count = 0
    for project in Projects(store.disk).all():
        for todo in todos.lists(store.disk, project.todos):
            count += len(todo.tasks)
            problems += [_failed(split_remedy(each)[0], _BY_HAND) for each in todo.problems]
            remedy = 'keep what is right in that file, and remove "conflict"'
            problems += [_warned(split_remedy(each)[0], remedy) for each in todo.conflicts]
            numbers = Counter(task.number for task in todo.tasks)
            for number in sorted(n for n, times in numbers.items() if times > 1):
                words = f"{todo.folder} has {numbers[number]} tasks with the number {number}"
                problems.append(_failed(words, f"{_REPAIR} gives the later ones new numbers"))
    return f"{counted(count, 'task')} can be read, each with a number of its own", problems


# -- the history -----------------------------------------------------------------------------


def _repository(store: Store) -> tuple[str, list[_Problem]]:
    if store.disk.status(GIT) is not None and not store.disk.is_folder(GIT):
        words = f"{GIT} is no folder: the notes have no repository of their own"
        return "", [_failed(words, "move it away, and the next change begins a history")]
    if not store.repository.exists:
        remedy = "nothing: the first change creates the repository"
        return "", [_warned("there is no history yet", remedy)]
    store.repository.prepare()
    result = _checked(store)
    if result is None:
        words = "another git command is packing it, so it cannot be examined now"
        return "", [_warned(words, "examine it again when that command has ended")]
    if result.status and _is_of_partial_clone(store, result):
        words, remedy = split_remedy(store.repository.lack)
        return "", [_warned(f"{words}: earlier states are not all known here", remedy)]
    if result.status and (path := next(rights.lacking(store.disk.root / GIT), None)):
        words = f"you may not read or write {GIT}/{path}, so it cannot be examined"
        return "", [_failed(words, rights.remedy(store.disk.root))]
    if result.status:
        remedy = (
            f"bring {GIT} back from a backup or a clone; or move it away, and the next change "
            "begins a new history of the notes as they are"
        )
        return "", [_failed(f"damaged: {_first_line(result)}", remedy)]
    count = len(entries(store, head_of(store)))
    return f"sound, {counted(count, 'commit')}", []


def _checked(store: Store) -> GitResult | None:
    """Return what git thinks of every object; None if packs were replaced at every attempt.

    A pack that another command removes meanwhile looks damaged. People's git may pack at any time:
    after a fetch or a commit, it does so in the background.
    """
    for _ in range(_ATTEMPTS):
        before = _packs(store)
        result = store.repository.run("fsck", "--full", "--no-dangling", seconds=_EXAMINING_SECONDS)
        if not result.status or _packs(store) == before:
            return result
    return None


def _packs(store: Store) -> list[str]:
    return [name for name, _ in store.disk.entries(f"{GIT}/objects/pack")]


def _is_of_partial_clone(store: Store, result: GitResult) -> bool:
    """Return whether git misses nothing but what a partial clone leaves out."""
    lines = [*result.errors.splitlines(), *result.output.decode("utf-8", "replace").splitlines()]
    return bool(store.repository.lack) and all(map(_OF_A_LACK.match, lines))


def _first_line(result: GitResult) -> str:
    lines = [*result.errors.splitlines(), *result.output.decode("utf-8", "replace").splitlines()]
    return next((line for line in lines if not line.startswith("notice:")), "git gives no details")


def _branch(store: Store) -> tuple[str, list[_Problem]]:
    if not store.repository.exists:
        return "there is no branch yet", []
    store.repository.check_is_free()
    branch = store.repository.branch().removeprefix("refs/heads/")
    return f"{branch} is checked out, and no merge or rebase is under way", []


def _locks(store: Store) -> tuple[str, list[_Problem]]:
    now = time.time()
    names = [f"{GIT}/{name}" for name, _ in store.disk.entries(GIT)]
    names += [
        path for part in ("refs", "objects/info") for path in store.disk.files(f"{GIT}/{part}")
    ]
    left = [
        path for path in names if path.endswith(".lock") and _age(store, path, now) > _LEFT_SECONDS
    ]
    problems = [
        _warned(
            f"a git command has left a lock: {path}",
            "if no git command is running there, remove it",
        )
        for path in left
    ]
    if _age(store, f"{WORK}/changing", now) > _LEFT_SECONDS:
        words = "a change was interrupted before it was committed"
        problems.append(_warned(words, "nothing: the next change commits it first"))
    return "no old lock was found", problems


def _age(store: Store, path: str, now: float) -> float:
    status = store.disk.status(path)
    return now - status.st_mtime if status is not None else 0.0


def _not_committed(store: Store) -> tuple[str, list[_Problem]]:
    changed = ByHand(store.disk).changed(tree_of(store.repository, head_of(store)))
    if not changed:
        return "everything is committed", []
    count = counted(len(changed), "file")
    return f"{count} will be committed with the next change: {some(changed)}", []


def _remote(store: Store) -> tuple[str, list[_Problem]]:
    syncing = Syncing(Writer(store.disk, store.repository), Remote(store.disk, store.repository))
    known = syncing.compared() if store.repository.exists else ""
    return f"{known}, as of the last fetch" if known else "there is no remote", []


_CHECKS: Sequence[tuple[str, _Check]] = (
    ("git", _git),
    ("notes", _notes),
    ("index", _index),
    ("folders", _folders),
    ("documents", _documents),
    ("to-dos", _todos),
    ("history", _repository),
    ("branch", _branch),
    ("locks", _locks),
    ("commits", _not_committed),
    ("remote", _remote),
)

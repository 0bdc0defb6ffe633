"""Checks whether a store is sound. The checks run one after another, independently.

If a check itself fails, that is one more finding, and the other checks still run.
"""

import re
import shlex
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from vector_index_mcp.errors import counted, split_remedy
from vector_index_mcp.notes import overview
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.doctor import of_git, rights
from vector_index_mcp.notes.doctor.findings import REPAIR, Finding, Problem, Verdict, failed, warned
from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.limits import MOST_SHOWN
from vector_index_mcp.notes.merging import conflicts
from vector_index_mcp.notes.past.history import entries, head_of
from vector_index_mcp.notes.past.states import tree_of
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.byhand import ByHand, some
from vector_index_mcp.notes.store.remote import Remote
from vector_index_mcp.notes.store.writer import Writer
from vector_index_mcp.notes.syncing import Syncing
from vector_index_mcp.notes.texts import matter, todos
from vector_index_mcp.notes.texts.projects import Project, Projects
from vector_index_mcp.notes.texts.reading import ReadDocument

_OLDEST_GIT = (2, 36)
"""The first version that flushes a commit to the disk before it reports success."""
_VERSION = re.compile(r"git version (\d{1,4})\.(\d{1,4})")
_RULE, _ENDS = "---", frozenset({"---", "..."})
_LONGEST_FRONT_LINES = 1_000
_LEAST_FREE_BYTES = 5_000_000  # for the objects and the packs of some changes
_NO_ADVICE = "nothing was changed"
_PUT_BACK = "move it away, and bring back what belongs there from a backup or a clone"
_BY_HAND = f"correct it, or let {REPAIR} bring back its last good version, if there is one"


_Check = Callable[[Store], tuple[str, Sequence[Problem]]]
"""Returns the words for the case that all is well, and the problems found."""


def examine(store: Store, *, trouble: str = "") -> Iterator[Finding]:
    """Run the checks, and yield each finding at once.

    Args:
        store: The store.
        trouble: Why there are no notes here, with a remedy, if something is wrong; otherwise empty.
    """
    for name, check in _CHECKS:
        words = ""
        try:
            words, problems = check(store)
        except Refusal as refusal:
            problems = [(Verdict.FAILURE, *_advised(refusal))]
        except (OSError, ValueError, RecursionError) as error:  # a foreign store may hold anything
            words = f"the check itself failed: {type(error).__name__}: {error}"
            problems = [(Verdict.FAILURE, words, "please report this, it is a bug")]
        is_empty = words == overview.NOTHING
        if is_empty and trouble:
            problems = [failed(*split_remedy(trouble))]
        if not problems:
            yield Finding(name, Verdict.OK, words)
        for verdict, words, remedy in problems[:MOST_SHOWN]:
            yield Finding(name, verdict, words, remedy)
        if len(problems) > MOST_SHOWN:
            words = f"… {len(problems)} in all"
            yield Finding(name, Verdict.WARNING, words, "begin with these")
        if is_empty:
            return


def _advised(refusal: Refusal) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    words, remedy = split_remedy(str(refusal))
    if remedy and remedy != _NO_ADVICE:
        return words, remedy
    return words, _PUT_BACK if refusal.code is Code.INVALID_PATH else "mend that first"


# -- the program and the place ---------------------------------------------------------------


def _git(store: Store) -> tuple[str, list[Problem]]:
    words = store.repository.run("version").output.decode("utf-8", "replace").strip()
    found = _VERSION.match(words)
    if found and (int(found[1]), int(found[2])) < _OLDEST_GIT:
        needed = ".".join(map(str, _OLDEST_GIT))
        remedy = f"install git {needed} or later: older ones may lose a commit in a power failure"
        return words, [warned(words, remedy)]
    return words, []


def _notes(store: Store) -> tuple[str, list[Problem]]:
    root = store.disk.root
    if root.exists() and not root.is_dir():
        return "", [failed(f"{root} is no folder", "name a folder with --home")]
    if not overview.has_notes(store.disk):
        return overview.NOTHING, []
    if rights.is_read_only(root):
        words = f"the file system of {root} is read-only: nothing can be written down"
        return "", [failed(words, "mount it so that it can be written")]
    forbidden = [f"you may not read or write {path}" for path in rights.lacking(root)]
    free = shutil.disk_usage(root).free
    if free < _LEAST_FREE_BYTES:
        words = f"{root} has {free / 1e6:.1f} MB of free space: a change may not fit"
        return "", [failed(words, "free some space")]
    count = len(list(Projects(store.disk).all()))
    words = f"{counted(count, 'project')} in {root}"
    return words, [failed(each, rights.remedy(root)) for each in forbidden]


# -- which projects --------------------------------------------------------------------------


def _index(store: Store) -> tuple[str, list[Problem]]:
    projects = Projects(store.disk)
    if projects.problem:
        words = split_remedy(projects.problem)[0]
        remedy = f"correct it, or let {REPAIR} rebuild it"
        return "", [failed(words, remedy)]
    if store.disk.status(INDEX) is None and projects.folders():
        words = f"{INDEX} is missing: each folder counts as a project with the folder's name"
        return "", [warned(words, f"{REPAIR} rebuilds it")]
    return f"{INDEX} can be read", []


def _folders(store: Store) -> tuple[str, list[Problem]]:
    projects = Projects(store.disk)
    problems = [
        failed(
            f"{INDEX} gives project {project} the folder {projects.entries[project]!r}, which is "
            "not a valid folder name",
            f"correct it there; {REPAIR} does it if there is a folder with the project's name",
        )
        for project in projects.unusable
    ]
    usable = {k: name for k, name in projects.entries.items() if k not in projects.unusable}
    for name, count in Counter(usable.values()).items():
        if count > 1:
            ids = " and ".join(project for project, folder in usable.items() if folder == name)
            remedy = f"give one of them a folder of its own in {INDEX}, and move its files there"
            words = f"the projects {ids} have the same folder {PROJECTS}/{name}"
            problems.append(failed(words, remedy))
    problems += _without_folder(store, projects)
    if not projects.problem and store.disk.status(INDEX) is not None:
        problems += _without_entry(projects)
    return "every project has a folder of its own", problems


def _without_folder(store: Store, projects: Projects) -> Iterator[Problem]:
    for project in projects.without_folder():
        remedy = f"if it was renamed, rename it back, or correct {INDEX}"
        if commit := _last_with(store, project.folder):
            command = shlex.join(["restore", "--to", commit[:12], "--", project.id])
            remedy += f"; if it was deleted, `vector-index-mcp notes {command}` brings it back"
        yield failed(f"project {project.id} has no folder {project.folder}", remedy)


def _last_with(store: Store, folder: str) -> str:
    """Return the last commit in which a folder existed; empty if there is none."""
    for entry in entries(store, head_of(store), [folder], most=1):
        is_there = tree_of(store.repository, entry.commit).below(folder)
        return entry.commit if is_there else entry.parent
    return ""


def _without_entry(projects: Projects) -> Iterator[Problem]:
    taken = set(projects.entries.values())
    for name in projects.folders():
        if name in taken:
            continue
        folder = f"{PROJECTS}/{name}"
        if name in projects.entries:
            words = f"the folder {folder} belongs to no project: project {name} has another folder"
            yield failed(words, f"{REPAIR} makes it a project with another name")
        else:
            words = f"the folder {folder} is not in {INDEX}: it counts as project {name}"
            yield warned(words, f"{REPAIR} enters it")


# -- what projects hold ----------------------------------------------------------------------


def _documents(store: Store) -> tuple[str, list[Problem]]:
    problems: list[Problem] = []
    count = 0
    for project in Projects(store.disk).all():
        try:
            text = store.disk.read_text(project.main)
            count += text is not None
            problems += _conflicts(project.main, text or "")
        except Refusal as refusal:
            problems.append(failed(split_remedy(str(refusal))[0], _BY_HAND))
        problems += _out_of_reach(store, project)
        for read in store.shelf.documents(project):
            count += 1
            if isinstance(read, Refusal):
                problems.append(failed(split_remedy(str(read))[0], _BY_HAND))
            else:
                problems += _of_document(project, read)
    return f"{counted(count, 'text')} can be read", problems


def _of_document(project: Project, read: ReadDocument) -> Iterator[Problem]:
    path = project.document(read.document.name)
    lines = read.document.text.split("\n", _LONGEST_FRONT_LINES)
    if lines[0].rstrip() == _RULE and not any(line.rstrip() in _ENDS for line in lines[1:]):
        words = f"{path} begins with {_RULE} and has no second {_RULE}: its title is not read"
        yield warned(words, f"end the front matter with a line {_RULE}, or remove the first")
    if not matter.metadata(read.document.front).title and read.document.front:
        words = f"{path} has front matter without a readable title"
        yield warned(words, "add a line `title: ...`")
    yield from _conflicts(path, read.document.text)


def _conflicts(path: str, text: str) -> Iterator[Problem]:
    for title in conflicts(text):
        words = f'{path}: "{title}" was changed on two machines'
        yield warned(words, "keep what is right, and remove one version")


def _out_of_reach(store: Store, project: Project) -> Iterator[Problem]:
    """Find documents in subfolders of the documents' folder, which no tool reads."""
    here = project.knowledge.count("/") + 1
    below = [
        path
        for path in store.disk.files(project.knowledge)
        if path.endswith(".md") and path.count("/") > here
    ]
    if below:
        words = f"{some(below)}: no tool reads documents in subfolders"
        yield warned(words, f"move them to {project.knowledge}")


def _todos(store: Store) -> tuple[str, list[Problem]]:
    problems: list[Problem] = []
    count = 0
    for project in Projects(store.disk).all():
        for todo in todos.lists(store.disk, project.todos):
            count += len(todo.tasks)
            problems += [failed(split_remedy(each)[0], _BY_HAND) for each in todo.problems]
            remedy = 'keep what is right in that file, and remove "conflict"'
            problems += [warned(split_remedy(each)[0], remedy) for each in todo.conflicts]
            numbers = Counter(task.number for task in todo.tasks)
            for number in sorted(n for n, times in numbers.items() if times > 1):
                words = f"{todo.folder} has {numbers[number]} tasks with the number {number}"
                problems.append(failed(words, f"{REPAIR} gives the later ones new numbers"))
    return f"{counted(count, 'task')} can be read, each with a number of its own", problems


# -- the commits ----------------------------------------------------------------------------


def _not_committed(store: Store) -> tuple[str, list[Problem]]:
    changed = ByHand(store.disk).edited(tree_of(store.repository, head_of(store)))
    if not changed:
        return "everything is committed", []
    count = counted(len(changed), "file")
    return f"{count} will be committed with the next change: {some(changed)}", []


def _remote(store: Store) -> tuple[str, list[Problem]]:
    syncing = Syncing(Writer(store.disk, store.repository), Remote(store.disk, store.repository))
    known = syncing.compared() if store.repository.exists else ""
    return known or "there is no remote", []


_CHECKS: Sequence[tuple[str, _Check]] = (
    ("git", _git),
    ("notes", _notes),
    ("index", _index),
    ("folders", _folders),
    ("documents", _documents),
    ("to-dos", _todos),
    ("history", of_git.repository),
    ("branch", of_git.branch),
    ("locks", of_git.locks),
    ("staging", of_git.staging),
    ("commits", _not_committed),
    ("remote", _remote),
)

"""Checks of a store's git repository: its objects, its branch, its locks, its index."""

import re
import time

from vector_index_mcp.errors import counted, split_remedy
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.doctor import rights
from vector_index_mcp.notes.doctor.findings import REPAIR, Problem, failed, warned
from vector_index_mcp.notes.past.history import entries, head_of
from vector_index_mcp.notes.store.byhand import some
from vector_index_mcp.notes.store.disk import GIT, WORK
from vector_index_mcp.notes.store.git_index import GitIndex
from vector_index_mcp.notes.store.program import GitResult

_EXAMINING_SECONDS = 600.0  # for `git fsck`, which reads every object
_ATTEMPTS = 3
_OF_A_LACK = re.compile(r"notice: |broken link from |\s+to |missing (?:blob|tree) ")
_LEFT_SECONDS = 60.0  # an older lock is taken for one that a killed process has left


def repository(store: Store) -> tuple[str, list[Problem]]:
    """Have git examine every object."""
    if store.disk.status(GIT) is not None and not store.disk.is_folder(GIT):
        words = f"{GIT} is no folder: the notes have no repository of their own"
        if store.disk.is_file(GIT):  # of a linked work tree, a submodule or a separate repository
            remedy = "name another folder, or make a clone with `git clone` and name that"
            return "", [failed(f"{words}, but share that of another folder", remedy)]
        return "", [failed(words, "move it away, and the next change begins a history")]
    if not store.repository.exists:
        remedy = "nothing: the first change creates the repository"
        return "", [warned("there is no history yet", remedy)]
    store.repository.prepare()
    result = _checked(store)
    if result is None:
        words = "another git command is packing it, so it cannot be examined now"
        return "", [warned(words, "examine it again when that command has ended")]
    if result.status and _is_of_partial_clone(store, result):
        words, remedy = split_remedy(store.repository.lack)
        return "", [warned(f"{words}: earlier states are not all known here", remedy)]
    if result.status and (path := next(rights.lacking(store.disk.root / GIT), None)):
        words = f"you may not read or write {GIT}/{path}, so it cannot be examined"
        return "", [failed(words, rights.remedy(store.disk.root))]
    if result.status:
        remedy = (
            f"bring {GIT} back from a backup or a clone; or move it away, and the next change "
            "begins a new history of the notes as they are"
        )
        return "", [failed(f"damaged: {_first_line(result)}", remedy)]
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


def branch(store: Store) -> tuple[str, list[Problem]]:
    """Check that a branch is checked out, and that no merge is under way."""
    if not store.repository.exists:
        return "there is no branch yet", []
    store.repository.check_is_free()
    branch = store.repository.branch().removeprefix("refs/heads/")
    return f"{branch} is checked out, and no merge or rebase is under way", []


def locks(store: Store) -> tuple[str, list[Problem]]:
    """Look for what killed processes have left."""
    now = time.time()
    names = [f"{GIT}/{name}" for name, _ in store.disk.entries(GIT)]
    names += [
        path for part in ("refs", "objects/info") for path in store.disk.files(f"{GIT}/{part}")
    ]
    left = [
        path for path in names if path.endswith(".lock") and _age(store, path, now) > _LEFT_SECONDS
    ]
    problems = [
        warned(
            f"a git command has left a lock: {path}",
            "if no git command is running there, remove it",
        )
        for path in left
    ]
    if _age(store, f"{WORK}/changing", now) > _LEFT_SECONDS:
        words = "a change was interrupted before it was committed"
        problems.append(warned(words, "nothing: the next change commits it first"))
    return "no old lock was found", problems


def _age(store: Store, path: str, now: float) -> float:
    status = store.disk.status(path)
    return now - status.st_mtime if status is not None else 0.0


def staging(store: Store) -> tuple[str, list[Problem]]:
    """Check that git's index has what the commits have: `git commit` records what it has."""
    if words := damage(store):
        return "", [failed(f"{words}: no git command works there", f"{REPAIR} makes it anew")]
    if words := behind(store):
        return "", [
            warned(words, f"{REPAIR} brings it up to date, if no git command holds .git/index.lock")
        ]
    return "git's index is up to date", []


def damage(store: Store) -> str:
    """Return what is wrong with git's index; empty if git can read it, or there is none.

    Raises:
        Refusal: If it cannot be read.
    """
    return GitIndex(store.disk, store.repository).damage() if store.repository.exists else ""


def behind(store: Store) -> str:
    """Say which commits an index that git can read does not have; empty if it has all.

    Raises:
        Refusal: If git cannot read it, or the history.
    """
    index = GitIndex(store.disk, store.repository)
    paths = index.behind() if store.repository.exists else []
    if not paths:
        return ""
    count = counted(len(paths), "file")
    return (
        f"the last commit has a newer state of {count} than git's index ({some(paths)}): "
        "a `git commit` would undo that"
    )

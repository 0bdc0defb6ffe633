"""What all calls share: the store, the two kinds of calls, and the check of revisions."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from vector_index_mcp.errors import counted
from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.history import contents, id_of, versions_of
from vector_index_mcp.notes.store.line_ends import plain
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts.projects import Project, Projects, existing
from vector_index_mcp.notes.texts.reading import Shelf, revision_of

Given: TypeAlias = Mapping[str, Any]
"""The arguments of a call, already checked."""
Answer: TypeAlias = dict[str, Any]
_MOST_COMPARED_CHARS = 200_000  # difflib takes minutes for megabytes
_MOST_DIFFERENCE_CHARS = 10_000
_MOST_VERSIONS = 100  # of a file, among which to look for a revision


@dataclass(frozen=True, slots=True)
class Store:
    """The parts of a store that calls read."""

    disk: Disk
    shelf: Shelf
    repository: Repository


Read = Callable[[Store, Given], Answer]
"""A call that only reads: it returns the answer."""
Write = Callable[[Store, Given], Plan]
"""A call that changes something: it returns the plan, whose `result` is the answer.

The writer calls it while no other change is under way.
"""


def planned(write: Write, store: Store, given: Given) -> Plan:
    """Return the plan of a call that changes something. The writer calls this.

    Raises:
        Refusal: If the call cannot be answered, or nobody knows whose folder it would change.
    """
    Projects(store.disk).check()
    return write(store, given)


def project_of(store: Store, given: Given) -> Project:
    """Return the project that the arguments name.

    Raises:
        Refusal: If there is no such project.
    """
    return existing(store.disk, given["project_id"])


def found_project(store: Store, given: Given) -> Project | None:
    """Return the project that the arguments name; None if there is no such project.

    Raises:
        Refusal: If the store cannot be read, or `index.json` gives the project a bad folder.
    """
    return Projects(store.disk).find(given["project_id"])


def plan_of(
    project: Project, done: str, puts: Mapping[str, bytes], answer: Answer, *drops: str
) -> Plan:
    """Return the plan of a change to one project.

    Args:
        project: The project whose files change.
        done: What the change does, for the commit's message.
        puts: New contents of files, by path.
        answer: The answer to the call.
        drops: The files and folders to remove.
    """
    return Plan(Change(puts, drops), f"Update knowledge for {project.id}: {done}", answer)


def check_revision(store: Store, given: Given, path: str, data: bytes) -> None:
    """Check that a change was made from the current text. Without a `revision` it passes.

    Args:
        store: The store that has the file.
        given: The arguments of the call, which may contain a `revision`.
        path: The file's path.
        data: The file's current content.

    Raises:
        Refusal: If the change was made from another text; shows what has changed since.
    """
    wanted = given.get("revision")
    if not wanted or _has_revision(data, wanted):
        return
    current = revision_of(data)
    old = _text_with(store, path, wanted)
    if old is None:
        raise Refusal(
            Code.NOT_FOUND,
            f"No text of these notes ever had the revision {wanted}; {path.rpartition('/')[2]} has "
            f"the revision {current} now. Read it again. Nothing was changed",
            revision=wanted,
            current_revision=current,
        )
    raise Refusal(
        Code.INVALID_INPUT,
        f"This change was made from revision {wanted}, but {path.rpartition('/')[2]} has the "
        f"revision {current} now. Read it again. Nothing was changed",
        revision=wanted,
        current_revision=current,
        changes=_difference(wanted, old, data),
    )


def _has_revision(data: bytes, revision: str) -> bool:
    return any(id_of(text).startswith(revision) for text in (plain(data), data))


def _text_with(store: Store, path: str, revision: str) -> bytes | None:
    """Return the text that has a revision; None if the history has no such text."""
    repository = store.repository
    result = repository.run("cat-file", "blob", revision)
    if not result.status:
        return result.output
    # git has no object with the id of a text with LF whose line ends are CRLF in the history.
    names = versions_of(repository, repository.commit_of(repository.branch()), path)
    found = contents(repository, names[:_MOST_VERSIONS]).values()
    return next((text for text in found if _has_revision(text, revision)), None)


def _difference(revision: str, old: bytes, new: bytes) -> str:
    if max(len(old), len(new)) > _MOST_COMPARED_CHARS:
        return f"the text had {counted(len(old), 'byte')} and has {len(new):,} now"
    lines = difflib.unified_diff(
        old.decode("utf-8", "replace").splitlines(),
        new.decode("utf-8", "replace").splitlines(),
        f"revision {revision}",
        f"revision {revision_of(new)}",
        lineterm="",
        n=1,
    )
    return "\n".join(lines)[:_MOST_DIFFERENCE_CHARS]

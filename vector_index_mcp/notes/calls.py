"""What a call needs: the store, and the kinds of calls there are."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from vector_index_mcp.notes.refusal import Code, Refusal
from vector_index_mcp.notes.store.disk import Change, Disk
from vector_index_mcp.notes.store.history import id_of
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.store.writer import Plan
from vector_index_mcp.notes.texts.projects import Mapping as Projects
from vector_index_mcp.notes.texts.projects import Project, existing
from vector_index_mcp.notes.texts.reading import Shelf, revision_of

Given: TypeAlias = Mapping[str, Any]
"""Arguments that are as they should be."""
Answer: TypeAlias = dict[str, Any]
_MOST_COMPARED_CHARS = 200_000  # difflib takes minutes for megabytes
_MOST_DIFFERENCE_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class Store:
    """What calls read."""

    disk: Disk
    shelf: Shelf
    repository: Repository


Read = Callable[[Store, Given], Answer]
"""Answers from what is there."""
Write = Callable[[Store, Given], Plan]
"""Plans a change while nobody else makes one; the plan's result is the answer."""


def project_of(store: Store, given: Given) -> Project:
    """The project that is meant.

    Raises:
        Refusal: If there is none.
    """
    return existing(store.disk, given["project_id"])


def found_project(store: Store, given: Given) -> Project | None:
    """The project that is meant; None if there is none.

    Raises:
        Refusal: If it cannot be found out.
    """
    return Projects(store.disk).find(given["project_id"])


def plan_of(
    project: Project, done: str, puts: Mapping[str, bytes], answer: Answer, *drops: str
) -> Plan:
    """The plan of a change of one project.

    Args:
        project: Whose files change.
        done: What the commit says of it.
        puts: New contents of files.
        answer: To the call.
        drops: Files and folders that go away.
    """
    return Plan(Change(puts, drops), f"Update knowledge for {project.id}: {done}", answer)


def check_revision(store: Store, given: Given, path: str, data: bytes) -> None:
    """Make sure that a change was made from the text that is there now.

    Args:
        store: Where it lies.
        given: May name a `revision`.
        path: Of the file.
        data: What it holds.

    Raises:
        Refusal: If it was made from another one; says what has changed since.
    """
    wanted = given.get("revision")
    if not wanted or id_of(data).startswith(wanted):
        return
    current = revision_of(data)
    said = store.repository.run("cat-file", "blob", wanted)
    if said.status:
        raise Refusal(
            Code.NOT_FOUND,
            f"No text of these notes ever had revision {wanted}; {path.rpartition('/')[2]} is at "
            f"revision {current}. Nothing was changed",
            revision=wanted,
            current_revision=current,
        )
    raise Refusal(
        Code.INVALID_INPUT,
        f"This change was made from revision {wanted}, and {path.rpartition('/')[2]} is at "
        f"revision {current} now; read it again. Nothing was changed",
        revision=wanted,
        current_revision=current,
        changes=_difference(wanted, said.output, data),
    )


def _difference(revision: str, old: bytes, new: bytes) -> str:
    if max(len(old), len(new)) > _MOST_COMPARED_CHARS:
        return f"it had {len(old)} bytes, and has {len(new)}"
    lines = difflib.unified_diff(
        old.decode("utf-8", "replace").splitlines(),
        new.decode("utf-8", "replace").splitlines(),
        f"revision {revision}",
        f"revision {revision_of(new)}",
        lineterm="",
        n=1,
    )
    return "\n".join(lines)[:_MOST_DIFFERENCE_CHARS]

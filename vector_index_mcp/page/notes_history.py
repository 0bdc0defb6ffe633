"""Prepares the history of the notes for the page: commits, and the differences of each.

Git computes the differences; the store's own settings of git do not influence them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.errors import UnknownError
from vector_index_mcp.foreign import visible
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.past import history
from vector_index_mcp.notes.past.history import Entry
from vector_index_mcp.notes.past.pieces import ALL, Piece
from vector_index_mcp.notes.past.states import Past
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.texts.projects import Projects
from vector_index_mcp.page.notes_views import cut, head_of

_MOST_ENTRIES = 100
_MOST_SKIPPED = 10_000_000
_MOST_LINES = 2_000
"""The most lines of a difference that are shown."""
_LONGEST_LINE_CHARS = 1_000
_MOST_FILES = 200
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NOTHING = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The hash of the empty tree, which is the same in every repository."""
_STATES = {"A": "new", "D": "deleted", "M": "changed", "T": "changed"}
_BEGIN = b"diff --git "
_OPTIONS = ("diff-tree", "-r", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")


@dataclass(frozen=True, slots=True)
class Subject:
    """The project, or the part of one, that a history is about."""

    project: str | None
    """The id of the project, which may be deleted; None for all projects."""
    piece: Piece = ALL
    """The part of the project."""


def entries(store: Store, subject: Subject, skipped: int) -> dict[str, Any]:
    """Return the commits that changed something, newest first.

    Args:
        store: The store.
        subject: What was changed.
        skipped: How many of the newest commits to leave out.

    Raises:
        Refusal: If the history cannot be read.
    """
    head = head_of(store)
    if subject.project is None:
        found = history.entries(store, head)
    else:
        found = history.entries_of(store, head, subject.project, subject.piece)
    skipped = min(max(skipped, 0), _MOST_SKIPPED)
    shown = found[skipped : skipped + _MOST_ENTRIES]
    return {
        "total": len(found),
        "skipped": skipped,
        "entries": [_entry(entry, subject) for entry in shown],
    }


def _entry(entry: Entry, subject: Subject) -> dict[str, Any]:
    what = entry.what_of(subject.project or "")
    return {"commit": entry.commit, "when": entry.when, "who": cut(entry.who), "what": cut(what)}


# -- differences -----------------------------------------------------------------------------


def difference(store: Store, subject: Subject, commit: str) -> dict[str, Any]:
    """Return the difference that a commit made: its files, and each with its changed lines.

    Args:
        store: The store.
        subject: The project, or the part of one, to which the difference is limited.
        commit: The commit.

    Raises:
        Refusal: If the difference cannot be read.
        UnknownError: If there is no such commit.
    """
    parent = _parent_of(store, commit)
    places = None if subject.project is None else _places(store, subject, commit, parent)
    if places is not None and not places:
        return {"files": [], "total_files": 0, "left_out": 0}
    sides = (parent or _NOTHING, commit, "--", *(places or ()))
    names = _names(store.repository, *sides)
    texts = _texts(store.repository, *sides)
    files, left, left_out = [], _MOST_LINES, 0
    for number, (state, path) in enumerate(names):
        if number >= _MOST_FILES:
            break
        # For a link that becomes a file, git prints two patches: one removes it, one adds the file.
        text = [line for _ in range(1 + (state == "T")) for line in next(texts, ())]
        left_out += max(0, len(text) - left)
        shown = [_line(line) for line in text[:left]]
        left -= len(shown)
        name = _within(path, places)
        files.append({"path": cut(name), "state": _STATES.get(state, "changed"), "lines": shown})
    return {"files": files, "total_files": len(names), "left_out": left_out}


def _parent_of(store: Store, commit: str) -> str:
    """Return the parent of a commit; empty if it has none."""
    if not _COMMIT.fullmatch(commit):
        raise UnknownError("This address names no change; choose one from the history.")
    listed = store.repository.run("rev-list", "--parents", "--max-count=1", commit, "--")
    if listed.status:
        raise UnknownError(f"The history has no change {commit[:12]} now; choose another one.")
    return next(iter(listed.output.decode("ascii").split()[1:]), "")


def _places(store: Store, subject: Subject, *commits: str) -> list[str]:
    """Return the paths of the subject in these commits; its folder may differ between them."""
    found: dict[str, None] = {}
    for commit in filter(None, commits):
        known = Projects(Past(store.repository, commit))
        if known.problem:  # then assume the present folders
            known = Projects(store.disk)
        project = known.find(subject.project or "")
        if project is not None:
            found[f"{project.folder}/{subject.piece.path}".rstrip("/")] = None
    return list(found)


def _names(repository: Repository, *sides: str) -> list[tuple[str, str]]:
    """Return the changed files in git's order, each with a letter for the kind of change."""
    output = history.git(repository, *_OPTIONS, "--name-status", "-z", *sides)
    fields = output.decode("utf-8", "surrogateescape").split("\0")
    return [(state[:1], path) for state, path in zip(fields[::2], fields[1::2], strict=False)]


def _texts(repository: Repository, *sides: str) -> Iterator[list[bytes]]:
    """Yield the lines of each file's difference, without git's heading."""
    output = history.git(repository, *_OPTIONS, "--patch", "--text", *sides)
    lines: list[bytes] | None = None
    is_heading = True
    for line in output.split(b"\n"):
        if line.startswith(_BEGIN):
            if lines is not None:
                yield lines
            lines, is_heading = [], True
        elif line.startswith(b"@@"):
            is_heading = False
        if lines is not None and not is_heading and line:
            lines.append(line)
    if lines is not None:
        yield lines


def _line(line: bytes) -> tuple[str, str]:
    """Return the mark of a line of a difference, such as "+", and its text."""
    text = line[: 4 * _LONGEST_LINE_CHARS].decode("utf-8", "replace")
    if text.startswith("@@"):
        return "@", visible(text)
    return text[0], visible(cut(text[1:], _LONGEST_LINE_CHARS), keep="\t")


def _within(path: str, places: list[str] | None) -> str:
    """Return a path for the page: below its project, if the difference is limited to one."""
    return path if places is None else path.split("/", 2)[-1]

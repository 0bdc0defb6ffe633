"""Reads the git history of the notes: commits, versions of files, and states at a moment.

A project may have had several folders over time, and a folder may have belonged to several
projects. The `index.json` of each commit shows which folder belonged to which project.
"""

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from vector_index_mcp.errors import SettingsError, UnknownError
from vector_index_mcp.notes.calls import Store
from vector_index_mcp.notes.layout import INDEX, PROJECTS
from vector_index_mcp.notes.names import is_keepable
from vector_index_mcp.notes.past.moments import moment_of
from vector_index_mcp.notes.past.pieces import Piece
from vector_index_mcp.notes.store.history import contents, versions_of
from vector_index_mcp.notes.store.program import failure
from vector_index_mcp.notes.store.repository import Repository
from vector_index_mcp.notes.texts.projects import Projects
from vector_index_mcp.notes.texts.slugs import folders_of

_NAME = re.compile(rb"[0-9a-f]{40}")
_COMMIT = re.compile(r"[0-9a-f]{4,40}")
_FROM_HEAD = re.compile(r"HEAD((?:[~^][0-9]{0,6}){0,20})")
_FORMAT = "--format=%H%x00%P%x00%ct%x00%an%x00%s"
_FIELDS = 5
_MOST_DIGITS = 11  # of a time in seconds; a longer one is beyond what `datetime` can express
_PREFIX = "Update knowledge for "
_Text = TypeVar("_Text", str, bytes)


@dataclass(frozen=True, slots=True)
class Entry:
    """A commit, as it is shown to people."""

    commit: str
    parent: str
    """The id of its first parent; empty for the first commit."""
    when: int
    """In seconds since 1970."""
    who: str
    """The author's name."""
    what: str
    """The first line of the message."""

    def what_of(self, project: str) -> str:
        """Return the message without the project's name, for a place that shows it anyway."""
        return self.what.removeprefix(f"{_PREFIX}{project}: ").removeprefix(_PREFIX)


def git(repository: Repository, *arguments: str, given: bytes = b"") -> bytes:
    """Run a git command that takes paths literally, without wildcards; return its output.

    Raises:
        Refusal: If the command fails.
    """
    result = repository.run("--literal-pathspecs", *arguments, given=given)
    if result.status:
        raise failure(arguments[0], result)
    return result.output


# -- commits ---------------------------------------------------------------------------------


def head_of(store: Store) -> str:
    """Return the id of the last commit, after making sure git can run; empty if there is none.

    Raises:
        Refusal: If it cannot be read, or a link in the store would lead git elsewhere.
    """
    repository = store.repository
    if not repository.exists:
        return ""
    repository.prepare()
    return repository.commit_of(repository.branch())


def entries(
    store: Store, head: str, paths: Sequence[str] = (), most: int | None = None
) -> list[Entry]:
    """Return the commits up to `head`, each before its parents.

    Args:
        store: The store.
        head: The id of a commit; if empty, there are no commits.
        paths: Only commits that changed one of these files and folders count; if empty, all do.
        most: The most commits to return; None for all.

    Raises:
        Refusal: If they cannot be read.
    """
    if not head:
        return []
    options = ["-z", "--no-show-signature", _FORMAT, *([f"-n{most}"] if most is not None else [])]
    output = git(store.repository, "log", *options, head, "--", *paths)
    fields = output.decode("utf-8", "replace").split("\0")
    return [
        Entry(commit, parents.partition(" ")[0], _seconds(when), who, what)
        for commit, parents, when, who, what in _grouped(fields, _FIELDS)
    ]


def _seconds(text: str) -> int:
    """Parse a commit's time; 0 if it is no valid time."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0


def entries_of(store: Store, head: str, project: str, piece: Piece) -> list[Entry]:
    """Return the commits up to `head` that have changed a project, each before its parents.

    Their times play no part: the clock of one machine may be wrong.

    Args:
        store: The store.
        head: The id of a commit; if empty, there are no commits.
        project: The project's id; the project may be deleted.
        piece: The part of the project that counts.

    Raises:
        Refusal: If they cannot be read.
    """
    found: dict[str, Entry] = {}
    folders = _folders_of(store, head, project)
    paths = [f"{PROJECTS}/{folder}/{piece.path}".rstrip("/") for folder in folders]
    for folder, path in zip(folders, paths, strict=True):
        listed = entries(store, head, [path])
        commits = {c for entry in listed for c in (entry.commit, entry.parent) if c}
        own = _where_it_lies(store.repository, sorted(commits), project, folder)
        # The project has the folder after the commit if it was created, before it if deleted.
        found |= {e.commit: e for e in listed if own.intersection((e.commit, e.parent))}
    if len(paths) == 1:
        return list(found.values())
    return [found[each.commit] for each in entries(store, head, paths) if each.commit in found]


def _grouped(fields: Sequence[_Text], size: int) -> Iterable[Sequence[_Text]]:
    return zip(*[iter(fields)] * size, strict=False)


# -- folders of projects ---------------------------------------------------------------------


def _folders_of(store: Store, head: str, project: str) -> list[str]:
    """Return the folders that a project has, had, or would have without an entry."""
    found = [Projects(store.disk).entries.get(project, ""), *folders_of(project)]
    names = versions(store, head, INDEX)
    for data in contents(store.repository, names).values():
        found.append((_entries_in(data) or {}).get(project, ""))
    return [name for name in dict.fromkeys(found) if _is_usable(name)]


def _is_usable(name: str) -> bool:
    """Return whether `name` can be passed to git as a folder's name."""
    try:
        data = os.fsencode(name)
    except UnicodeEncodeError:  # JSON can contain characters that no file name can have
        return False
    return is_keepable(name) and not set(b"/\n\0").intersection(data)


def _where_it_lies(
    repository: Repository, commits: Sequence[str], project: str, folder: str
) -> set[str]:
    """Return those of the commits in which the folder exists and belongs to the project."""
    if not commits:
        return set()
    asked = [f"{commit}:{path}" for commit in commits for path in (INDEX, f"{PROJECTS}/{folder}")]
    given = os.fsencode("".join(f"{each}\n" for each in asked))
    output = git(repository, "cat-file", "--batch-check=%(objectname)", given=given)
    names = [line.decode() if _NAME.fullmatch(line) else "" for line in output.split(b"\n")[:-1]]
    indexes = contents(repository, [name for name in names[::2] if name])
    known = {name: _entries_in(data) for name, data in indexes.items()} | {"": {}}
    return {
        commit
        for commit, (index, place) in zip(commits, _grouped(names, 2), strict=True)
        if place and _is_in(known[index], project, folder)
    }


def _entries_in(data: bytes) -> dict[str, str] | None:
    """Return the folders by project in an `index.json`; None if it cannot be parsed."""
    try:
        projects = json.loads(data)["projects"]
        return {key: name for key, name in projects.items() if isinstance(name, str)}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None


def _is_in(entries_then: "Mapping[str, str] | None", project: str, folder: str) -> bool:
    if entries_then is None:  # unknown: assume the folder that it had at another time
        return True
    if project in entries_then:
        return entries_then[project] == folder
    return folder in folders_of(project) and folder not in entries_then.values()


# -- versions --------------------------------------------------------------------------------


def versions(store: Store, head: str, path: str) -> list[str]:
    """Return the object ids of all contents that a file had, newest first, on all machines.

    Raises:
        Refusal: If they cannot be read.
    """
    if not head:
        return []
    return versions_of(store.repository, head, path)


def last_changes(store: Store, head: str, folder: str) -> dict[str, int]:
    """Return when each file below a folder was last changed, in seconds since 1970, by path.

    Raises:
        Refusal: If the history cannot be read.
    """
    if not head:
        return {}
    output = git(
        store.repository, "log", "-z", "--name-only", "--no-renames", "--first-parent", "-m",
        "--format=%x00%ct", head, "--", folder,
    )  # fmt: skip
    return _newest(output)


def _newest(output: bytes) -> dict[str, int]:
    """Return the first time that git prints for each file, which is the newest.

    For each commit, git prints an empty field, the time, a line feed and the names.
    """
    found: dict[str, int] = {}
    when, is_time_next, is_first = 0, False, False
    for each in output.split(b"\0"):
        if not each:
            is_time_next = True
        elif is_time_next:
            when, is_time_next, is_first = _seconds(each.decode("ascii")), False, True
        else:
            name = each.removeprefix(b"\n") if is_first else each
            found.setdefault(os.fsdecode(name), when)
            is_first = False
    return found


def entry_of(store: Store, commit: str) -> Entry:
    """Return the entry for one commit.

    Raises:
        Refusal: If it cannot be read.
    """
    return entries(store, commit, most=1)[0]


# -- moments ---------------------------------------------------------------------------------


def commit_at(store: Store, head: str, project: str, when: str) -> str:
    """Return the commit that has the project's state at a moment; empty if it was before the first.

    Several machines may have written at that time, each with a history of its own. The commit is
    the last one, on any of them, that has changed the project. If there is none, it is the last
    commit of this machine.

    Args:
        store: The store.
        head: The last commit; empty if there is none.
        project: The project's id.
        when: The moment as a person wrote it: a commit, a date, a day, how long ago.

    Raises:
        Refusal: If the history cannot be read.
        SettingsError: If the moment cannot be understood.
    """
    if not head:
        return ""
    if found := _named_commit(store, head, when):
        return found
    moment = moment_of(when, datetime.now())
    if moment < 0:  # git takes it for a moment far ahead, and keeps no commit of that time
        return ""
    until = f"--min-age={moment}"
    folders = [f"{PROJECTS}/{name}" for name in _folders_of(store, head, project)]
    last = git(store.repository, "rev-list", "-1", until, head, "--", *folders) if folders else b""
    if not last:
        last = git(store.repository, "rev-list", "-1", "--first-parent", until, head)
    return _text(last)


def past_commit(store: Store, head: str, project: str, when: str) -> str:
    """Return the same as `commit_at`, for a moment at which there must have been a store.

    Raises:
        UnknownError: If it was before the first commit.
    """
    found = commit_at(store, head, project, when)
    if not found:
        since = f"there were no notes yet at {when!r}" if head else "there is no history yet"
        raise UnknownError(f"{since}; `vector-index-mcp notes log` shows what happened when")
    return found


def _named_commit(store: Store, head: str, when: str) -> str:
    name = ""
    if _COMMIT.fullmatch(when):
        name = when
    elif match := _FROM_HEAD.fullmatch(when):
        name = f"{head}{match[1]}"
    if not name:
        return ""
    result = store.repository.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if result.status and name != when:
        raise SettingsError(f"{when} would be before the first commit; name a later one")
    return "" if result.status else _text(result.output)


def _text(output: bytes) -> str:
    return output.decode("ascii").strip()

"""What happened to the notes, as their history in git tells it: commits, versions, moments.

A project may have lain in several folders, and a folder may have been that of several projects, one
after the other: `index.json` of each commit says which was whose.
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
from vector_index_mcp.notes.past.moments import moment_of
from vector_index_mcp.notes.past.pieces import Piece
from vector_index_mcp.notes.store.history import PLAIN, contents
from vector_index_mcp.notes.store.opening import INDEX, PROJECTS
from vector_index_mcp.notes.store.repository import Repository, failure
from vector_index_mcp.notes.texts.projects import Mapping as Projects
from vector_index_mcp.notes.texts.slugs import slug

_NAME = re.compile(rb"[0-9a-f]{40}")
_COMMIT = re.compile(r"[0-9a-f]{4,40}")
_FROM_HEAD = re.compile(r"HEAD((?:[~^][0-9]{0,6}){0,20})")
_FORMAT = "--format=%H%x00%P%x00%ct%x00%an%x00%s"
_FIELDS = 5
_MOST_DIGITS = 11  # of a time that is still some day
_UNUSABLE = frozenset({"", ".", ".."})
_PREFIX = "Update knowledge for "
_Text = TypeVar("_Text", str, bytes)


@dataclass(frozen=True, slots=True)
class Entry:
    """A commit, as people are told of it."""

    commit: str
    parent: str
    """The one that it follows; empty for the first."""
    when: int
    """In seconds since 1970."""
    who: str
    what: str

    def what_of(self, project: str) -> str:
        """What was done, where it is known to which project."""
        return self.what.removeprefix(f"{_PREFIX}{project}: ").removeprefix(_PREFIX)


def git(repository: Repository, *arguments: str, given: bytes = b"") -> bytes:
    """What a command of git prints that takes paths to the letter.

    Raises:
        Refusal: If it fails.
    """
    said = repository.run("--literal-pathspecs", *arguments, given=given)
    if said.status:
        raise failure(arguments[0], said)
    return said.output


# -- commits ---------------------------------------------------------------------------------


def head_of(store: Store) -> str:
    """The last commit, from where on the history can be read; empty if there is none.

    Raises:
        Refusal: If it cannot be found, or git would be led elsewhere.
    """
    repository = store.repository
    if not repository.exists:
        return ""
    repository.prepare()
    return repository.commit_of(repository.branch())


def entries(
    store: Store, head: str, paths: Sequence[str] = (), most: int | None = None
) -> list[Entry]:
    """The commits up to `head`, newest first.

    Args:
        store: The store.
        head: A commit; empty for none.
        paths: Files and folders of which one was changed; none of them for all commits.
        most: How many commits; None for all.

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


def _seconds(told: str) -> int:
    """A commit's time; 0 if it does not say one that can be understood."""
    return int(told) if told.isascii() and told.isdigit() and len(told) <= _MOST_DIGITS else 0


def entries_of(store: Store, head: str, project: str, piece: Piece) -> list[Entry]:
    """The commits up to `head` that have changed a project, newest first.

    Args:
        store: The store.
        head: A commit; empty for none.
        project: Its id; it may be gone.
        piece: What of it.

    Raises:
        Refusal: If they cannot be read.
    """
    found: dict[str, Entry] = {}
    for folder in _folders_of(store, head, project):
        path = f"{PROJECTS}/{folder}/{piece.path}".rstrip("/")
        listed = entries(store, head, [path])
        commits = {c for entry in listed for c in (entry.commit, entry.parent) if c}
        own = _where_it_lies(store.repository, sorted(commits), project, folder)
        # Who comes lies there afterwards, who goes before.
        found |= {e.commit: e for e in listed if own.intersection((e.commit, e.parent))}
    return sorted(found.values(), key=lambda entry: -entry.when)


def _grouped(fields: Sequence[_Text], size: int) -> Iterable[Sequence[_Text]]:
    return zip(*[iter(fields)] * size, strict=False)


# -- folders of projects ---------------------------------------------------------------------


def _folders_of(store: Store, head: str, project: str) -> list[str]:
    """The folders in which a project lies, lay, or would lie without an entry."""
    found = [Projects(store.disk).entries.get(project, ""), project, slug(project)]
    names = versions(store, head, INDEX)
    for data in contents(store.repository, names).values():
        found.append((_entries_in(data) or {}).get(project, ""))
    return [name for name in dict.fromkeys(found) if _is_usable(name)]


def _is_usable(name: str) -> bool:
    """Whether git can be asked for a folder of that name."""
    try:
        data = os.fsencode(name)
    except UnicodeEncodeError:  # JSON can write what no name can be
        return False
    return name not in _UNUSABLE and not set(b"/\n\0").intersection(data)


def _where_it_lies(
    repository: Repository, commits: Sequence[str], project: str, folder: str
) -> set[str]:
    """Those of the commits in which there is a folder, and it is the project's."""
    if not commits:
        return set()
    asked = [f"{commit}:{path}" for commit in commits for path in (INDEX, f"{PROJECTS}/{folder}")]
    given = os.fsencode("".join(f"{each}\n" for each in asked))
    told = git(repository, "cat-file", "--batch-check=%(objectname)", given=given)
    names = [line.decode() if _NAME.fullmatch(line) else "" for line in told.split(b"\n")[:-1]]
    indexes = contents(repository, [name for name in names[::2] if name])
    known = {name: _entries_in(data) for name, data in indexes.items()} | {"": {}}
    return {
        commit
        for commit, (index, place) in zip(commits, _grouped(names, 2), strict=True)
        if place and _is_in(known[index], project, folder)
    }


def _entries_in(data: bytes) -> dict[str, str] | None:
    """What an `index.json` says; None if it cannot be understood."""
    try:
        projects = json.loads(data)["projects"]
        return {key: name for key, name in projects.items() if isinstance(name, str)}
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None


def _is_in(entries_then: "Mapping[str, str] | None", project: str, folder: str) -> bool:
    if entries_then is None:  # then it lay where it lay at another time
        return True
    if project in entries_then:
        return entries_then[project] == folder
    return folder in {project, slug(project)} and folder not in entries_then.values()


# -- versions --------------------------------------------------------------------------------


def versions(store: Store, head: str, path: str) -> list[str]:
    """What names the contents that a file had, newest first, on all machines that wrote it.

    Raises:
        Refusal: If they cannot be read.
    """
    if not head:
        return []
    output = git(
        store.repository, "log", "-z", "--raw", "--no-abbrev", "--no-renames", "--full-history",
        "-m", "--format=", head, "--", path,
    )  # fmt: skip
    # Each change is told by modes and names, old and new, and by the path.
    told = (facts.decode("ascii").split(" ") for facts, _ in _grouped(output.split(b"\0"), 2))
    return list(dict.fromkeys(name for _, mode, _, name, _ in told if mode in PLAIN))


def last_changes(store: Store, head: str, folder: str) -> dict[str, int]:
    """When each file in a folder and below was changed last, in seconds since 1970.

    Raises:
        Refusal: If that cannot be read.
    """
    if not head:
        return {}
    output = git(
        store.repository, "log", "-z", "--name-only", "--no-renames", "--first-parent", "-m",
        "--format=%x00%ct", head, "--", folder,
    )  # fmt: skip
    return _newest(output)


def _newest(output: bytes) -> dict[str, int]:
    """The first time that each file is named: an empty field, a time, a line feed, and names."""
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
    """What people are told of a commit.

    Raises:
        Refusal: If it cannot be read.
    """
    return entries(store, commit, most=1)[0]


# -- moments ---------------------------------------------------------------------------------


def commit_at(store: Store, head: str, project: str, when: str) -> str:
    """The commit that tells how a project was at a moment; empty if it was before the first.

    Several machines may have written at that time, each its own history: then it is the last
    commit that has changed the project, on whichever of them. If none has, it is the last one of
    this machine.

    Args:
        store: The store.
        head: The last commit; empty if there is none.
        project: Its id.
        when: What a person wrote: a commit, a date, a day, how long ago.

    Raises:
        Refusal: If the history cannot be read.
        SettingsError: If the moment cannot be understood.
    """
    if not head:
        return ""
    if found := _named_commit(store, head, when):
        return found
    until = f"--min-age={moment_of(when, datetime.now())}"
    folders = [f"{PROJECTS}/{name}" for name in _folders_of(store, head, project)]
    last = git(store.repository, "rev-list", "-1", until, head, "--", *folders) if folders else b""
    if not last:
        last = git(store.repository, "rev-list", "-1", "--first-parent", until, head)
    return _text(last)


def past_commit(store: Store, head: str, project: str, when: str) -> str:
    """As `commit_at`, of a moment at which there was a store.

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
    said = store.repository.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if said.status and name != when:
        raise SettingsError(f"{when} reaches back behind the first commit; name a later one")
    return "" if said.status else _text(said.output)


def _text(output: bytes) -> str:
    return output.decode("ascii").strip()

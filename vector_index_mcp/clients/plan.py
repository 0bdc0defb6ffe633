"""Decides what would change for each client, before anything is written."""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from vector_index_mcp.clients import edits, guide, launch
from vector_index_mcp.clients.catalog import CLIENTS
from vector_index_mcp.clients.client import (
    AGENTS,
    PRIVATE,
    PROJECT,
    SCOPES,
    USER,
    Client,
    Form,
    Scope,
    Shape,
)
from vector_index_mcp.clients.configs import Change, Edit, decoded, edited, read, undoing
from vector_index_mcp.clients.launch import Launch
from vector_index_mcp.clients.served import Served
from vector_index_mcp.clients.target import Target, load, target_of
from vector_index_mcp.errors import ConfigFileError

_RESTART = "if the client is running, restart it"
_BY_NAME = f"have `{launch.PROGRAM}` on the PATH of every shell (uv tool install, pipx install)"
_IMPORTS_AGENTS = re.compile(rf"@(?:\./)?{re.escape(AGENTS)}")

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A planned step for one client, or for one document."""

    title: str
    """The client or the document."""
    change: Change | None = None
    """The change to make; None if there is nothing to do."""
    remark: str = ""
    """Why there is nothing to do."""
    then: str = ""
    """What the user has to do after the change."""
    warning: str = ""
    """What the user should know before agreeing."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A server in a configuration file."""

    keys: Keys
    """The keys that lead to the entry."""
    value: Any
    scope: Scope
    shape: Shape
    """Makes such an entry from a command line."""

    @property
    def name(self) -> str:
        """The name of the server in the file."""
        return self.keys[-1]

    @property
    def words(self) -> list[str]:
        """The command line of the server."""
        return launch.words_of(self.value)


@dataclass(frozen=True, slots=True)
class _Config:
    """A client's configuration file as it was read."""

    client: Client
    project: Path
    target: Target
    data: bytes | None
    entries: Sequence[_Entry]
    forms: Mapping[Scope, Form]
    """The form in which a server of a scope is added."""

    @property
    def path(self) -> Path:
        """The path that the client uses."""
        return self.target.path

    @property
    def names(self) -> set[str]:
        """The names of its servers."""
        return {entry.name for entry in self.entries}

    def ours(self, served: Served) -> list[_Entry]:
        """Return the entries that serve `served`."""
        return [
            entry
            for entry in self.entries
            if launch.serves(entry.words, served, _project_of(entry, self))
        ]

    def adding(self, keys: Keys, value: dict[str, Any]) -> Edit:
        """Return the edit that adds an entry."""
        return partial(_add, self.client, keys, value)

    def removing(self, entries: Iterable[_Entry]) -> Edit:
        """Return the edit that removes entries."""

        def remove(text: str) -> str:
            for entry in entries:
                text = edits.removed(self.client.syntax, text, entry.keys)
            return text

        return remove

    def mending(self, entry: _Entry, words: list[str]) -> Edit:
        """Return the edit that changes the command line of an entry, and nothing else in it."""
        wanted = entry.shape(words)

        def mend(text: str) -> str:
            for key in ("command", "args"):
                if key in wanted and entry.value.get(key) != wanted[key]:
                    keys = (*entry.keys, key)
                    text = edits.replaced(self.client.syntax, text, keys, wanted[key])
            return text

        return mend

    def step(self, scope: Scope, words: Sequence[str], edit: Edit) -> Step:
        """Return the step that makes `edit`.

        Args:
            scope: The scope of the edited entry.
            words: The command line of the entry after the edit.
            edit: The edit.
        """
        change = Change(self.target, self.data, edited(self.path, self.data, edit))
        is_usual = scope == self.client.scope
        then = self.client.then if is_usual else _RESTART
        warning = _warning(self.client, words) if scope == PROJECT else ""
        return Step(self.client.title, change, then=then, warning=warning)


def install(
    client: Client,
    scope: Scope,
    places: Mapping[str, Path],
    wanted: Launch,
    *,
    is_chosen: bool = False,
) -> list[Step]:
    """Return the steps that give `client` an entry.

    Args:
        client: The client.
        scope: The scope of a new entry.
        places: The folders that paths of clients start from, by name.
        wanted: What is to be started, and how.
        is_chosen: Whether a person chose the scope; an entry in another one is then left alone.

    Raises:
        ConfigFileError: If the client's configuration cannot be read or edited.
    """
    path = client.paths(scope, places)[0]
    config = _read(client, SCOPES, path, places)
    others = _readable(client, places, besides=path)
    ours = [(known, entry) for known in (config, *others) for entry in known.ours(wanted.served)]
    for known, entry in sorted(ours, key=lambda found: found[1].scope != scope):
        if is_chosen and entry.scope != scope:
            return [_elsewhere(known, entry, scope)]
        return [_kept_or_mended(known, entry, wanted)]
    name = launch.name_for(
        wanted.served.name, {name for known in (config, *others) for name in known.names}
    )
    words = _words(client, scope, places["project"], wanted.words)
    form = config.forms[scope]
    return [config.step(scope, words, config.adding((*form.keys, name), form.shape(words)))]


def uninstall(
    client: Client,
    scopes: Collection[Scope],
    path: Path,
    places: Mapping[str, Path],
    served: Served,
) -> list[Step]:
    """Return the steps that remove the entries for `served` from one file; none if it has none.

    Raises:
        ConfigFileError: If the file cannot be read or edited.
    """
    config = _read(client, scopes, path, places)
    ours = config.ours(served)
    if not ours or config.data is None:
        return []
    add = config.adding(ours[0].keys, ours[0].value)
    change = undoing(config.target, config.data, add, config.removing(ours))
    return [Step(client.title, replace(change, place=client.place(path, places)))]


def documents(project: Path, clients: Iterable[Client]) -> list[Path]:
    """Return the documents that the agents of these clients read.

    Of several paths that lead to the same file, only one is returned.
    """
    return _different({_document(project, client) for client in clients if client.document})


def every_document(project: Path) -> list[Path]:
    """Return the documents that the agent of any client may read, each file once."""
    return _different({project / name for name in {AGENTS, *(c.document for c in CLIENTS)} if name})


def install_guide(project: Path, path: Path) -> list[Step]:
    """Return the steps that add the section about searching to the document at `path`.

    Raises:
        ConfigFileError: If the document cannot be read.
    """
    target = target_of(path, project)
    before = load(target)
    after = edited(path, before, guide.added)
    if after == before:
        return [Step(path.name, remark="the section about searching is already there")]
    return [Step(path.name, Change(target, before, after))]


def uninstall_guide(project: Path, path: Path, *, is_wanted: bool) -> list[Step]:
    """Return the steps that remove the section from the document at `path`.

    Args:
        project: The project's folder.
        path: The document.
        is_wanted: Remove the section; otherwise the step is only a hint that it is there.

    Raises:
        ConfigFileError: If the removal is wanted and the document cannot be read.
    """
    try:
        target = target_of(path, project)
        data = load(target)
        if data is None or not guide.is_in(decoded(path, data)):
            return []
    except ConfigFileError:
        if is_wanted:
            raise
        return []
    if is_wanted:
        return [Step(path.name, undoing(target, data, guide.added, guide.removed))]
    hint = "still says when to search this project; --agents-md removes that section"
    return [Step(path.name, remark=hint)]


def _document(project: Path, client: Client) -> Path:
    """Return the client's own document; AGENTS.md if it is read instead or imported by it."""
    own = project / client.document
    try:
        data = load(target_of(own, project))
        if data is None:
            return project / AGENTS if client.reads_agents else own
        leads_there = _IMPORTS_AGENTS.search(decoded(own, data)) is not None
    except ConfigFileError:  # this is reported if the document is to be changed
        leads_there = False
    return project / AGENTS if leads_there else own


def _different(paths: Iterable[Path]) -> list[Path]:
    """Return `paths` without those that lead to the same file as another."""
    return list({os.path.realpath(path): path for path in sorted(paths)}.values())


def _elsewhere(config: _Config, entry: _Entry, scope: Scope) -> Step:
    """Return the step for an entry of ours in another scope than a person chose: leave it."""
    return Step(
        config.client.title,
        remark=f"already there, as `{entry.name}` in {config.path}, with --scope {entry.scope}; "
        f"leave --scope out to keep it there, or uninstall it with --scope {entry.scope} before "
        f"you install it with --scope {scope}",
    )


def _kept_or_mended(config: _Config, entry: _Entry, wanted: Launch) -> Step:
    """Return the step for an entry of ours that exists: leave it, or mend its command line."""
    client, there = config.client, f"already there, as `{entry.name}` in {config.path}"
    lacking = launch.lacking(entry.words, wanted.served, _project_of(entry, config))
    is_startable = launch.can_start(entry.words)
    is_kept = is_startable or (entry.scope == PROJECT and launch.is_by_name(entry.words))
    where = f"`{entry.words[0]}` is not on your PATH"
    missing = "" if is_startable else f"{where}; install it permanently"
    if is_kept and not lacking:
        return Step(client.title, remark=f"{there}, but {missing}" if missing else there)
    program = entry.words if is_kept else launch.with_program(entry.words, wanted.program)
    words = _words(client, entry.scope, config.project, [*program, *lacking])
    step = config.step(entry.scope, words, config.mending(entry, words))
    if is_kept and missing:
        step = replace(step, warning="; ".join(filter(None, [missing, step.warning])))
    return step


def _project_of(entry: _Entry, config: _Config) -> Path | None:
    """Return the folder that relative paths of an entry start from; None in the user scope."""
    return None if entry.scope == USER else config.project


def _words(client: Client, scope: Scope, project: Path, words: Sequence[str]) -> list[str]:
    """Return a command line in the form for a file of `scope`."""
    if scope != PROJECT:
        return [*words]
    return launch.for_everyone(words, project, client.folder)


def _warning(client: Client, words: Sequence[str]) -> str:
    """Return a warning about paths of this machine in a file that a team shares; else nothing."""
    if not (paths := launch.of_this_machine(words)):
        return ""
    advice = "--scope user writes a file of your own"
    if PRIVATE in client.files:
        advice = "--scope private writes a file of your own"
    if words[0] in paths:
        advice = f"{_BY_NAME}, or {advice}"
    which = "this path exists" if len(paths) == 1 else "these paths exist"
    return (
        f"{which} only on this machine: {', '.join(paths)}; the entry fails for others who get the "
        f"file through git; {advice}"
    )


def _add(client: Client, keys: Keys, value: dict[str, Any], text: str) -> str:
    return edits.added(client.syntax, text, keys, value)


def _readable(client: Client, places: Mapping[str, Path], besides: Path) -> list[_Config]:
    """Read the client's other files; those that cannot be read are left out without an error."""
    found = []
    for path in dict.fromkeys(p for scope in SCOPES for p in client.paths(scope, places)):
        if path != besides:
            with suppress(ConfigFileError):
                found.append(_read(client, SCOPES, path, places))
    return found


def _read(
    client: Client, scopes: Collection[Scope], path: Path, places: Mapping[str, Path]
) -> _Config:
    """Read the file at `path`, with only the servers of these scopes."""
    here = [s for s in SCOPES if s in scopes and path in client.paths(s, places)]
    project = places["project"]
    target = target_of(path, project if here == [PROJECT] else None)
    data = load(target)
    tables = read(path, data, lambda text: _tables(client, here, client.syntax.read(text), places))
    entries = {
        (*form.keys, name): _Entry((*form.keys, name), value, scope, form.shape)
        for scope, form, servers in tables
        for name, value in servers.items()
    }
    objects = {form.keys for _, form, _ in tables}
    return _Config(
        client,
        project,
        target,
        data,
        [entry for keys, entry in entries.items() if keys not in objects],
        {scope: form for scope, form, _ in tables},
    )


def _tables(
    client: Client, scopes: Iterable[Scope], data: dict[str, Any], places: Mapping[str, Path]
) -> list[tuple[Scope, Form, dict[str, Any]]]:
    """Return the objects in a file that contain servers.

    New servers are added to the last object of a scope.
    """
    found = []
    for scope in scopes:
        first, *others = client.forms(scope, places)
        found.append((scope, first, edits.table_at(data, first.keys)))
        for form in others:
            servers = edits.table_at(data, form.keys[:-1]).get(form.keys[-1])
            # If any value in it is not an object, it is not a list of servers, but a server that
            # happens to have this name.
            if isinstance(servers, dict) and all(isinstance(v, dict) for v in servers.values()):
                found.append((scope, form, servers))
    return found

"""What would change for each client, decided before anything is written."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vector_index_mcp.clients import edits, guide, launch
from vector_index_mcp.clients.catalog import AGENTS, CLIENTS, PROJECT, SCOPES, Client, Scope
from vector_index_mcp.clients.configs import Change, Edit, decoded, edited, read, undoing
from vector_index_mcp.clients.launch import Launch
from vector_index_mcp.clients.served import Served
from vector_index_mcp.clients.target import Target, load, target_of
from vector_index_mcp.errors import ConfigFileError

_RESTART = "if it runs, start it again"
_IMPORTS_AGENTS = "@" + AGENTS


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done for one client, or in one document."""

    title: str
    change: Change | None = None
    """None if there is nothing to do."""
    said: str = ""
    """Why there is nothing to do."""
    then: str = ""
    """What a person does when it is done."""


@dataclass(frozen=True, slots=True)
class _Config:
    """A client's configuration file as it is."""

    client: Client
    scope: Scope
    project: Path
    target: Target
    data: bytes | None
    servers: Mapping[str, Any]

    @property
    def path(self) -> Path:
        """The file, as the client names it."""
        return self.target.path

    def ours(self, served: Served) -> list[str]:
        """The names of the entries that serve `served`."""
        begin = self.project if self.scope == PROJECT else None
        return [
            name
            for name, entry in self.servers.items()
            if launch.serves(launch.words_of(entry), served, begin)
        ]

    def adding(self, name: str, entry: dict[str, Any]) -> Edit:
        """The edit that adds an entry."""
        return partial(_add, self.client, name, entry)

    def removing(self, names: Iterable[str]) -> Edit:
        """The edit that removes entries."""

        def remove(text: str) -> str:
            for name in names:
                text = edits.removed(self.client.syntax, text, (self.client.servers, name))
            return text

        return remove

    def mending(self, name: str, words: list[str]) -> Edit:
        """The edit that changes the command line of an entry, and nothing else in it."""
        entry, wanted = self.servers[name], self.client.shape(words)

        def mend(text: str) -> str:
            for key in ("command", "args"):
                if key in wanted and entry.get(key) != wanted[key]:
                    path = (self.client.servers, name, key)
                    text = edits.replaced(self.client.syntax, text, path, wanted[key])
            return text

        return mend


def install(client: Client, scope: Scope, places: Mapping[str, Path], wanted: Launch) -> list[Step]:
    """The steps that give `client` an entry.

    Raises:
        ConfigFileError: If its configuration cannot be read or edited.
    """
    config = _read(client, scope, client.paths(scope, places)[0], places["project"])
    others = _readable(client, places, besides=config.path)
    for known in (config, *others):
        for name in known.ours(wanted.served):
            words = launch.words_of(known.servers[name])
            if launch.can_start(words):
                return [Step(client.title, said=f"already there, as `{name}` in {known.path}")]
            mend = known.mending(name, launch.with_program(words, wanted.program))
            return [_step(known, edited(known.path, known.data, mend))]
    name = launch.name_for(
        wanted.served.name, {name for known in (config, *others) for name in known.servers}
    )
    add = config.adding(name, client.shape(wanted.words))
    return [_step(config, edited(config.path, config.data, add))]


def uninstall(
    client: Client, scope: Scope, path: Path, project: Path, served: Served
) -> list[Step]:
    """The steps that take the entries for `served` out of one file; none if it has none.

    Raises:
        ConfigFileError: If the file cannot be read or edited.
    """
    config = _read(client, scope, path, project)
    names = config.ours(served)
    if not names or config.data is None:
        return []
    add = config.adding(names[0], config.servers[names[0]])
    return [Step(client.title, undoing(config.target, config.data, add, config.removing(names)))]


def documents(project: Path, clients: Iterable[Client]) -> list[Path]:
    """The documents that the agents of these clients read; each file once, links resolved."""
    return _different({_document(project, client) for client in clients if client.document})


def every_document(project: Path) -> list[Path]:
    """The documents that the agent of any client may read, likewise."""
    return _different({project / name for name in {AGENTS, *(c.document for c in CLIENTS)} if name})


def install_guide(project: Path, path: Path) -> list[Step]:
    """The steps that put the section about searching into the document at `path`.

    Raises:
        ConfigFileError: If it cannot be read.
    """
    target = target_of(path, project)
    before = load(target)
    after = edited(path, before, guide.added)
    if after == before:
        return [Step(path.name, said="the section is already there")]
    return [Step(path.name, Change(target, before, after))]


def uninstall_guide(project: Path, path: Path, *, is_wanted: bool) -> list[Step]:
    """The steps that take the section out of the document at `path`; a hint if not wanted.

    Raises:
        ConfigFileError: If it is wanted and the document cannot be read.
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
    hint = "still says when to search this project; --agents-md takes that out"
    return [Step(path.name, said=hint)]


def _document(project: Path, client: Client) -> Path:
    """The client's own document; AGENTS.md if that is missing, or imports AGENTS.md."""
    own = project / client.document
    try:
        data = load(target_of(own, project))
        leads_there = data is None or _IMPORTS_AGENTS in decoded(own, data)
    except ConfigFileError:  # reported when it is to be changed
        leads_there = False
    return project / AGENTS if leads_there else own


def _different(paths: Iterable[Path]) -> list[Path]:
    """`paths` without those that lead to the same file as another."""
    return list({os.path.realpath(path): path for path in sorted(paths)}.values())


def _step(config: _Config, after: bytes) -> Step:
    change = Change(config.target, config.data, after)
    is_usual = config.scope == config.client.scope
    return Step(config.client.title, change, then=config.client.then if is_usual else _RESTART)


def _add(client: Client, name: str, entry: dict[str, Any], text: str) -> str:
    return edits.added(client.syntax, text, (client.servers, name), entry)


def _readable(client: Client, places: Mapping[str, Path], besides: Path) -> list[_Config]:
    """The client's other files; those that cannot be read are left out without an error."""
    found = []
    for scope in SCOPES:
        for path in client.paths(scope, places):
            if path != besides:
                with suppress(ConfigFileError):
                    found.append(_read(client, scope, path, places["project"]))
    return found


def _read(client: Client, scope: Scope, path: Path, project: Path) -> _Config:
    target = target_of(path, project if scope == PROJECT else None)
    data = load(target)
    servers = read(path, data, lambda text: edits.table(client.syntax.read(text), client.servers))
    return _Config(client, scope, project, target, data, servers)

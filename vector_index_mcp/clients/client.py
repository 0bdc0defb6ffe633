"""Describes one MCP client: its configuration files, and the format of an entry in them."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vector_index_mcp.clients.edits import Syntax
from vector_index_mcp.clients.jsonc import Json

Scope = str
PROJECT, USER, PRIVATE = "project", "user", "private"
SCOPES = (PROJECT, USER, PRIVATE)
"""A team's file in the project, the user's for all projects, and the user's for this project."""
AGENTS = "AGENTS.md"
STARTED_THERE = "."
"""The path of the project's folder, for a client that starts servers in that folder."""
REPOSITORY = "{repository}"
"""In `Client.around`, this key stands for the path of the repository's folder."""

Shape = Callable[[Sequence[str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write servers in a file."""

    keys: tuple[str, ...]
    """The keys that lead to the object with the servers."""
    shape: Shape
    """Makes an entry from a command line."""


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    """The name that `--client` takes."""
    title: str
    """The name for people."""
    source: str
    """Where its format was looked up, and when."""
    servers: str
    """The key of the object with the servers."""
    shape: Shape
    """Makes an entry from a command line."""
    files: Mapping[Scope, tuple[str, ...]]
    """The paths of its configuration files; each begins with the name of a place."""
    signs: tuple[str, ...]
    """Files and folders that exist if the client is installed."""
    command: str = ""
    """The program that is on the PATH if the client is installed."""
    syntax: Syntax = Json()
    """The language of its configuration files."""
    document: str = AGENTS
    """The file of a project that its agent reads as instructions; empty if it reads none."""
    reads_agents: bool = True
    """Whether its agent reads AGENTS.md if the project has no `document`."""
    then: str = ""
    """What the user has to do after an entry was written in the default scope."""
    folder: str = ""
    """How a team's file names the project's folder; empty if the client has no name for it."""
    also: tuple[str, ...] = ()
    """Its former names, which `--client` takes as well."""
    second: Form | None = None
    """Another form of servers, used in files that have an object for it already."""
    around: Mapping[Scope, tuple[str, ...]] = field(default_factory=dict)
    """The keys that lead to the `servers` key in the files of a scope."""

    @property
    def scope(self) -> Scope:
        """The default scope of an entry: the project's if the client reads files of projects."""
        return PROJECT if PROJECT in self.files else USER

    def paths(self, scope: Scope, places: Mapping[str, Path]) -> list[Path]:
        """Return the files that the client may read in `scope`; the existing ones come first."""
        found = [_path(file, places) for file in self.files.get(scope, ())]
        return sorted(found, key=lambda path: not os.path.lexists(path))

    def place(self, file: Path, places: Mapping[str, Path]) -> Path:
        """Return the folder of the place that the path of one of its files begins with."""
        begins = {
            _path(written, places): places[written.partition("/")[0]]
            for files in self.files.values()
            for written in files
        }
        return begins[file]

    def forms(self, scope: Scope, places: Mapping[str, Path]) -> list[Form]:
        """Return the forms that servers may have in the files of `scope`, the usual one first."""
        around = self.around.get(scope, ())
        keys = tuple(k.replace(REPOSITORY, places["repository"].as_posix()) for k in around)
        first = Form((*keys, self.servers), self.shape)
        return [first, *([self.second] if self.second and not around else [])]

    def is_installed(self, places: Mapping[str, Path]) -> bool:
        """Whether the client seems to be installed for this user."""
        if self.command and shutil.which(self.command):
            return True
        return any(os.path.exists(_path(sign, places)) for sign in self.signs)


def _path(file: str, places: Mapping[str, Path]) -> Path:
    place, _, rest = file.partition("/")
    return places[place] / rest

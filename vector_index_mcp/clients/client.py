"""One MCP client: where it keeps its servers, and what an entry looks like there."""

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
"""A file that a team shares, one of the user's for all projects, and one for this project alone."""
AGENTS = "AGENTS.md"
STARTED_THERE = "."
"""The project's folder for a client that starts servers in it."""
REPOSITORY = "{repository}"
"""Stands for the repository's folder among the keys around servers."""

Shape = Callable[[Sequence[str]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write servers in a file."""

    keys: tuple[str, ...]
    """Those that lead to the object that holds the servers."""
    shape: Shape
    """An entry by its command line."""


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    name: str
    """What `--client` takes."""
    title: str
    source: str
    """Where its format was looked up, and when."""
    servers: str
    """The key of the object that holds the servers."""
    shape: Shape
    """An entry by its command line."""
    files: Mapping[Scope, tuple[str, ...]]
    """Where its configuration lies, beginning with the name of a place."""
    signs: tuple[str, ...]
    """Files and folders that exist where it is installed."""
    command: str = ""
    """The program that is on the PATH where it is installed."""
    syntax: Syntax = Json()
    document: str = AGENTS
    """The file of a project that its agent reads as instructions; empty if it reads none."""
    reads_agents: bool = True
    """Whether it reads AGENTS.md where the project has no `document`."""
    then: str = ""
    """What a person does when the entry is in the usual scope."""
    folder: str = ""
    """The project's folder in a file that a team shares; empty if the client has no word for it."""
    also: tuple[str, ...] = ()
    """Names it had before, which `--client` takes as well."""
    second: Form | None = None
    """Another form, used in files that have its object already."""
    around: Mapping[Scope, tuple[str, ...]] = field(default_factory=dict)
    """Keys around the servers in the files of a scope."""

    @property
    def scope(self) -> Scope:
        """Where an entry goes by default: into a file of the project if the client reads one."""
        return PROJECT if PROJECT in self.files else USER

    def paths(self, scope: Scope, places: Mapping[str, Path]) -> list[Path]:
        """The files it may read in `scope`, the one that counts first."""
        found = [_path(file, places) for file in self.files.get(scope, ())]
        return sorted(found, key=lambda path: not os.path.lexists(path))

    def place(self, file: Path, places: Mapping[str, Path]) -> Path:
        """Where the path of one of its files begins."""
        begins = {
            _path(written, places): places[written.partition("/")[0]]
            for files in self.files.values()
            for written in files
        }
        return begins[file]

    def forms(self, scope: Scope, places: Mapping[str, Path]) -> list[Form]:
        """How servers may be written in the files of `scope`, the usual form first."""
        around = self.around.get(scope, ())
        keys = tuple(k.replace(REPOSITORY, places["repository"].as_posix()) for k in around)
        first = Form((*keys, self.servers), self.shape)
        return [first, *([self.second] if self.second and not around else [])]

    def is_installed(self, places: Mapping[str, Path]) -> bool:
        """Whether this user seems to have it."""
        if self.command and shutil.which(self.command):
            return True
        return any(os.path.exists(_path(sign, places)) for sign in self.signs)


def _path(file: str, places: Mapping[str, Path]) -> Path:
    place, _, rest = file.partition("/")
    return places[place] / rest

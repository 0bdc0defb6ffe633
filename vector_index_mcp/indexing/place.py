"""Where an index lies. Imports nothing heavy, since a service needs it before it loads LanceDB."""

import os
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.engine.table_server import Server


@dataclass(frozen=True, slots=True)
class Remote:
    """The user's settings for an index that does not lie on this machine."""

    owner: str = ""
    """The owner's name, which several machines may share; empty: the project gets a name."""
    server: Server = Server()
    """LanceDB's own server, for an index at db://."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index lies, and who owns it."""

    uri: str
    """A folder, or the URI of object storage or a server."""
    owner: str
    """The path of the index's project, or a name that no other index has."""
    home: Path | None = None
    """The project's folder. An index inside it may be foreign: a repository can ship one."""

    @classmethod
    def in_project(cls, project: Path, configured: str) -> "Place":
        """The place of a project's index according to the settings; see `index_uri`."""
        return cls(index_uri(project, configured), str(project), project)


def index_uri(project: Path, configured: str) -> str:
    """The URI of the project's index; a relative path starts at the project.

    Links within the project are not resolved, since the opener has to recognize and refuse them.
    """
    if "://" in configured:
        return configured
    folder = Path(os.path.normpath(project / Path(configured).expanduser()))
    return str(folder if folder.is_relative_to(project) else folder.resolve())

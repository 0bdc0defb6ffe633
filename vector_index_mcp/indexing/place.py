"""Where an index lies. Imports nothing heavy: a service asks before it loads LanceDB."""

import os
from dataclasses import dataclass
from pathlib import Path

from vector_index_mcp.engine.table_server import Server


@dataclass(frozen=True, slots=True)
class Remote:
    """What a user may set about an index that does not lie on this machine."""

    owner: str = ""
    """Its owner's name, which several machines may share; empty for one of the project's own."""
    server: Server = Server()
    """LanceDB's own, for an index at db://."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an index lies, and whose it is."""

    uri: str
    """A folder, or the URI of object storage or a server."""
    owner: str
    """The path of the project whose index it is, or a name that no other index has."""
    home: Path | None = None
    """The project in which it may lie, and with which a foreign index may come; None if none."""

    @classmethod
    def in_project(cls, project: Path, configured: str) -> "Place":
        """The place of a project's index, where the settings say; see `index_uri`."""
        return cls(index_uri(project, configured), str(project), project)


def index_uri(project: Path, configured: str) -> str:
    """The URI of the project's index; a relative folder counts from the project.

    A link within the project is not resolved: whoever opens the index has to see that it is one.
    """
    if "://" in configured:
        return configured
    folder = Path(os.path.normpath(project / Path(configured).expanduser()))
    return str(folder if folder.is_relative_to(project) else folder.resolve())
